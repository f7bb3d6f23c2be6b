/** Sentences of the record on the page: text in backticks is code. */

import {html, type TemplateResult} from "lit";
import {block, line} from "./code.ts";

/** Longer code would wrap inside the text, so it gets its own line. */
const INLINE = 26;

export function prose(text: string): TemplateResult {
  return html`${text.split("`").map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part))}`;
}

/** A name with slashes, which may be broken after each of them. */
export function breakable(name: string): TemplateResult {
  return html`${name.split("/").map((part, index) => (index === 0 ? part : html`/<wbr />${part}`))}`;
}

/** The same as `prose`, with separate lines for long code, instead of the punctuation mark after it. */
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

/** The texts in backticks, one on each line; the whole text if there are none. */
export function codeIn(text: string): string {
  const code = text.split("`").filter((_, index) => index % 2 === 1);
  return code.length === 0 ? text : code.join("\n");
}

/** The first sentence, and the rest. A full stop inside code does not end a sentence. */
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
