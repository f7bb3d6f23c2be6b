/** Sentences of the record on the page: what stands between backticks is code. */

import {html, type TemplateResult} from "lit";

export function prose(text: string): TemplateResult {
  return html`${text.split("`").map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part))}`;
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
