/** An edit as a unified diff, and its result as a sentence, as in `tb_gradflow/serve/terminal/patch.py`. */

import type {Edit, Finding, Passage, Tried} from "../record.ts";
import {differing, linesOfPieces, type Piece} from "./python.ts";

/** Context lines around an edit, as far as the log has them. `git apply` cannot place a diff without context. */
const CONTEXT = 3;
const NAMED = 3;
const SPECIAL = /["\\\u0000-\u001f\u007f]/g;

/** The removed and the added lines. */
export function changedLines({before, after}: Edit): {readonly old: readonly string[]; readonly fresh: readonly string[]} {
  return {old: before.split("\n"), fresh: after === "" ? [] : after.split("\n")};
}

export interface ShownLine {
  readonly pieces: readonly Piece[];
  /** The changed pieces of each line, as ranges; none if there is no line to compare with. */
  readonly changed: readonly [from: number, end: number];
}

/** The same for display: without the common indentation, and with the differences marked. */
export function shownLines(edit: Edit): {readonly old: readonly ShownLine[]; readonly fresh: readonly ShownLine[]} {
  const {old, fresh} = changedLines(edit);
  const margin = marginOf([...old, ...fresh]);
  const pieces = (lines: readonly string[]) => (lines.length === 0 ? [] : linesOfPieces(lines.map((line) => line.slice(margin)).join("\n")));
  const [before, after] = [pieces(old), pieces(fresh)];
  const isPaired = before.length === after.length;
  const shown = (lines: typeof before, end: 1 | 2): ShownLine[] =>
    lines.map((line, at) => {
      const difference = isPaired ? differing(before[at], after[at]) : ([0, 0, 0] as const);
      return {pieces: line, changed: [difference[0], difference[end]]};
    });
  return {old: shown(before, 1), fresh: shown(after, 2)};
}

/** Number of white-space characters with which all lines begin; empty lines do not count. */
function marginOf(lines: readonly string[]): number {
  const starts = lines.filter((line) => line.trim() !== "").map((line) => line.slice(0, line.length - line.trimStart().length));
  const [first = "", ...others] = starts;
  const common = others.reduce((known, start) => {
    let same = 0;
    while (same < known.length && known[same] === start[same]) {
      same += 1;
    }
    return known.slice(0, same);
  }, first);
  return common.length;
}

/** The lines of both, each with its sign. An edit of two places has lines between them that it keeps. */
function compared(old: readonly string[], fresh: readonly string[]): string[] {
  // The length of the longest common subsequence of what begins at each pair of lines.
  const common = Array.from({length: old.length + 1}, () => new Array<number>(fresh.length + 1).fill(0));
  for (let at = old.length - 1; at >= 0; at -= 1) {
    for (let to = fresh.length - 1; to >= 0; to -= 1) {
      common[at][to] = old[at] === fresh[to] ? common[at + 1][to + 1] + 1 : Math.max(common[at + 1][to], common[at][to + 1]);
    }
  }
  const lines: string[] = [];
  let [at, to] = [0, 0];
  while (at < old.length || to < fresh.length) {
    if (at < old.length && to < fresh.length && old[at] === fresh[to]) {
      lines.push(` ${old[at]}`);
      [at, to] = [at + 1, to + 1];
    } else if (at < old.length && (to === fresh.length || common[at + 1][to] >= common[at][to + 1])) {
      lines.push(`-${old[at]}`);
      at += 1;
    } else {
      lines.push(`+${fresh[to]}`);
      to += 1;
    }
  }
  return lines;
}

/** The patch for `git apply`. */
export function patchOf(edit: Edit, passages: readonly Passage[]): string {
  const {old, fresh} = changedLines(edit);
  const [before, after] = around(edit, passages);
  const first = edit.line - before.length;
  const kept = before.length + after.length;
  const lines = [...before.map((line) => ` ${line}`), ...compared(old, fresh), ...after.map((line) => ` ${line}`)];
  const head = `@@ -${first},${kept + old.length} +${kept + fresh.length > 0 ? first : first - 1},${kept + fresh.length} @@`;
  return `${[`--- ${path("a", edit.file)}`, `+++ ${path("b", edit.file)}`, head, ...lines].join("\n")}\n`;
}

function around(edit: Edit, passages: readonly Passage[]): readonly [readonly string[], readonly string[]] {
  for (const {file, line, text, after = []} of passages) {
    const lines = text.split("\n");
    const [begin, end] = [edit.line - line, edit.end_line - line + 1];
    if (file === edit.file && begin >= 0 && lines.slice(begin, end).join("\n") === edit.before) {
      return [lines.slice(Math.max(0, begin - CONTEXT), begin), [...lines.slice(end), ...after].slice(0, CONTEXT)];
    }
  }
  return [[], []];
}

/** In git's form: quoted if necessary, and followed by a tab if it has a space. */
function path(side: string, file: string): string {
  const whole = `${side}/${file}`;
  const quoted = whole.replace(SPECIAL, (found) => `\\${found.charCodeAt(0).toString(8).padStart(3, "0")}`);
  return quoted !== whole ? `"${quoted}"` : whole.includes(" ") ? `${whole}\t` : whole;
}

/** The result of the edit in the step that was explained, and in the steps that were trained with it. */
export function triedInWords(tried: Tried): string {
  const {works, loss, gradient_norm, with_others, step} = tried;
  const norms = gradient_norm.slice(0, NAMED).map(({variable, norm, written}) => `\`${written === "" ? variable : written}\` now gets a gradient of norm ${figures(norm)}`);
  const more = gradient_norm.length - NAMED;
  const [before = null, after = null] = loss;
  const said = [
    ...(norms.length === 0 ? ["no variable gets a gradient"] : norms),
    ...(more > 0 ? [`so ${more === 1 ? "does" : "do"} ${more} more`] : []),
    lossInWords(before, after),
  ];
  const others = with_others ? " together with the edits of other findings" : "";
  const when = step === null ? "this batch" : `the batch of step ${step}`;
  const sentence = `Tried on ${when}${others}${works ? "" : ", but it does not work"}: ${said.join("; ")}.`;
  return [sentence, trainedInWords(tried), keptInWords(tried)].filter((each) => each !== "").join(" ");
}

function trainedInWords({trained, not_trained}: Tried): string {
  if (trained === null) return not_trained;
  const without = trained.without.every((loss) => loss === null) ? "" : `; without it ${course(trained.without)}`;
  return `Trained for ${trained.steps} steps with it: loss ${course(trained.loss)}${without}.`;
}

function course(losses: readonly (number | null)[]): string {
  return losses.map((loss) => (loss === null ? "not finite" : figures(loss))).join(" to ");
}

const KEPT = [
  ["forward", "the forward values"],
  ["shape", "the shapes"],
  ["checkpoint", "the checkpoint"],
] as const;

function keptInWords({keeps}: Tried): string {
  const said = KEPT.filter(([name]) => keeps.includes(name)).map(([, words]) => words);
  return said.length === 0 ? "" : `It keeps ${[said.slice(0, -1).join(", "), said[said.length - 1]].filter((part) => part !== "").join(" and ")}.`;
}

function lossInWords(before: number | null, after: number | null): string {
  if (after === null) return "the loss is not finite";
  if (before === null) return `the loss is now ${figures(after)}`;
  return figures(before) === figures(after) ? `the loss stays at ${figures(after)}` : `the loss goes from ${figures(before)} to ${figures(after)}`;
}

function figures(value: number): string {
  return String(Number(value.toPrecision(3)));
}

/** Why the result of an edit is not known. */
export function untriedInWords({not_tried, severity}: Finding): string {
  const forInformation = severity === "info" ? "The edit has not been run: what is only information may be meant, and its edits are not tried." : "";
  return not_tried || forInformation || "The edit has not been run: `tb-gradflow run --try-fixes PROGRAM` tries it, and so does `tb_gradflow.explain(..., try_fixes=True)` on a batch.";
}
