/** Sentences of the record on the page: what stands between backticks is code. */

import {html, type TemplateResult} from "lit";
import {block, line} from "./code.ts";

/** Code of more characters would break between lines of text: it has a line of its own. */
const INLINE = 26;

export function prose(text: string): TemplateResult {
  return html`${text.split("`").map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part))}`;
}

/** The same with lines of their own for long code, in the place of the mark that ends a clause after it. */
export function instruction(text: string): TemplateResult {
  const parts = text.split("`");
  const isLong = (index: number): boolean => index % 2 === 1 && index < parts.length - 1 && parts[index].length > INLINE;
  return html`${parts.map((part, index) => {
    if (index % 2 === 0) {
      return isLong(index - 1) ? withoutMark(part) : part;
    }
    return isLong(index) ? block([line(part)]) : html`<code>${part}</code>`;
  })}`;
}

function withoutMark(text: string): string {
  return text.replace(/^[.,;:]\s*/, "");
}

/** What stands between backticks, a line each; all of the text if nothing does. */
export function codeIn(text: string): string {
  const code = text.split("`").filter((_, index) => index % 2 === 1);
  return code.length === 0 ? text : code.join("\n");
}

/** The first sentence, and the rest. A full stop inside code ends none. */
export function firstSentence(text: string): [string, string] {
  for (const match of text.matchAll(/[.!?:](?=\s)/g)) {
    const end = match.index + 1;
    const inCode = (text.slice(0, end).split("`").length - 1) % 2 === 1;
    if (!inCode) {
      const sentence = text.slice(0, end);
      return [sentence.endsWith(":") ? sentence.slice(0, -1) : sentence, text.slice(end).trim()];
    }
  }
  return [text, ""];
}
