/** Python code on the page: in its own lines, all of which can be seen at any width, and in colours. */

import {css, html, nothing, type TemplateResult} from "lit";
import type {ShownLine} from "../model/patch.ts";
import {piecesOf, type Piece} from "../model/python.ts";

/** The colours of one line. `changed`: the ranges to mark. */
export function coloured(pieces: readonly Piece[], changed: readonly [number, number] = [0, 0]): TemplateResult {
  const [from, end] = changed;
  const parts = (of: readonly Piece[]): (TemplateResult | string)[] => of.map(({kind, text}) => (kind === "plain" ? text : html`<span class=${kind}>${text}</span>`));
  return html`${parts(pieces.slice(0, from))}${from < end ? html`<mark>${parts(pieces.slice(from, end))}</mark>` : nothing}${parts(pieces.slice(end))}`;
}

export function line(code: string): TemplateResult {
  return coloured(piecesOf(code));
}

/** Lines of code below one another. A long one goes on below, further to the right. */
export function block(lines: readonly TemplateResult[]): TemplateResult {
  return html`<code class="block"><span class="lines">${lines}</span></code>`;
}

/** Removed and added lines. */
export function diff(old: readonly ShownLine[], fresh: readonly ShownLine[]): TemplateResult {
  return block([
    ...old.map(({pieces, changed}) => html`<del><i>−</i>${coloured(pieces, changed)}
</del>`),
    ...fresh.map(({pieces, changed}) => html`<ins><i>+</i>${coloured(pieces, changed)}
</ins>`),
  ]);
}

export const codeStyles = css`
  .block {
    --hanging: 4ch;
    display: block;
    white-space: pre-wrap;
    overflow-wrap: anywhere;
    tab-size: 4;
  }
  .block .lines {
    display: block;
    padding-left: var(--hanging);
    text-indent: calc(-1 * var(--hanging));
  }
  .block .keyword {
    color: var(--gf-keyword);
  }
  .block .string {
    color: var(--gf-string);
  }
  .block .number {
    color: var(--gf-number);
  }
  .block .comment {
    color: var(--gf-comment);
    font-style: italic;
  }
  .block :is(del, ins) {
    display: block;
    margin-left: calc(-1 * var(--hanging));
    padding: 0 9px 0 calc(9px + var(--hanging));
    text-decoration: none;
  }
  .block del {
    background: var(--gf-gone);
  }
  .block ins {
    background: var(--gf-come);
  }
  .block mark {
    border-radius: 2px;
    color: inherit;
    background: none;
  }
  .block del mark {
    background: var(--gf-goneMark);
  }
  .block ins mark {
    background: var(--gf-comeMark);
  }
  .block :is(del, ins) > i {
    display: inline-block;
    width: 14px;
    text-indent: 0;
    font-style: normal;
    font-weight: 700;
    user-select: none;
  }
  .block del > i {
    color: var(--gf-bad);
  }
  .block ins > i {
    color: var(--gf-good);
  }
`;
