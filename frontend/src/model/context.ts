/** A line of code among the lines around it, as far as the record contains them: those of other ops. */

import type {Source} from "../record.ts";
import {fileName} from "./format.ts";

export interface Line {
  readonly line: number;
  readonly code: string;
  /** Whether it is the main line. */
  readonly main: boolean;
  /** Whether lines before it are missing. */
  readonly gap: boolean;
}

/** Lines at most this far away belong to it. */
const AROUND = 6;

export function contextOf(sources: readonly Source[], {file, line, code}: Pick<Source, "file" | "line" | "code">): readonly Line[] {
  const known = new Map<number, string>([[line, code]]);
  for (const each of sources) {
    if (sameFile(each.file, file) && Math.abs(each.line - line) <= AROUND && each.code !== "" && !known.has(each.line)) {
      known.set(each.line, each.code);
    }
  }
  const lines = [...known.keys()].sort((a, b) => a - b);
  return lines.map((at, index) => ({
    line: at,
    code: known.get(at) as string,
    main: at === line,
    gap: index > 0 && at > lines[index - 1] + 1,
  }));
}

/** A report may have shortened the path. */
function sameFile(a: string, b: string): boolean {
  return a === b || a.endsWith(`/${b}`) || b.endsWith(`/${a}`);
}

/** The line that a sentence names, if no op is the cause: the line that requests the gradient. */
export function mentionedIn(message: string, sources: readonly Source[]): Source | null {
  const words = new Set(message.split(/[\s()`,;]+/).map((word) => word.replace(/\.$/, "")));
  return sources.find(({file, line, code}) => code !== "" && words.has(`${fileName(file)}:${line}`)) ?? null;
}
