/** The choice of a term above the graph, and what of it is drawn. */

import {css, html, nothing, type TemplateResult} from "lit";
import {lineColours} from "../draw/palette.ts";
import {formatNumber} from "../model/format.ts";
import {termsOf} from "../model/term_view.ts";
import type {Scope} from "./scope.ts";

export const termBarStyles = css`
  .term-bar {
    display: flex;
    flex: none;
    flex-wrap: wrap;
    align-items: center;
    gap: 4px 6px;
    border-bottom: 1px solid var(--gf-line);
    padding: 5px 12px;
    font-size: 12px;
  }
  .term-bar button {
    display: flex;
    align-items: center;
    gap: 5px;
    max-width: 220px;
    border-radius: 11px;
    padding: 1px 9px;
    font-size: 12px;
  }
  .term-bar button[aria-pressed="true"] {
    border-color: var(--gf-accent);
    background: var(--gf-accentSoft);
  }
  .term-bar button span {
    overflow: hidden;
    text-overflow: ellipsis;
    white-space: nowrap;
  }
  .term-bar i {
    flex: none;
    width: 9px;
    height: 9px;
    border-radius: 5px;
  }
`;

/** Nothing if the loss has no terms, or if they were not measured. */
export function termBar({store, derived, view, palette, ask}: Scope): TemplateResult | typeof nothing {
  const {trace, target, numbers} = store.state;
  const terms = trace === null ? [] : termsOf(trace, target);
  if (trace === null || terms.length === 0 || derived.model === null) {
    return nothing;
  }
  const colours = lineColours(palette);
  const choose = (name: string): void => ask.look({term: name === view.term ? "" : name});
  const chosen = derived.term < 0 ? null : trace.terms[derived.term];
  return html`<div class="term-bar" role="group" aria-label="Terms of the loss">
    <span class="muted">Gradient of</span>
    <button aria-pressed=${String(chosen === null)} @click=${() => ask.look({term: ""})}>the whole loss</button>
    ${terms.map((term, at) => {
      const {name, row} = trace.terms[term];
      return html`<button aria-pressed=${String(term === derived.term)} title="Only the gradient of the term ${name}" @click=${() => choose(name)}>
        <i style="background:${colours[at % colours.length]}"></i><span>${name}</span> <span class="muted number">${formatNumber(numbers?.norm(row))}</span>
      </button>`;
    })}
    ${chosen === null ? nothing : html`<span class="muted" role="note">${note(trace.term_tensors ?? [], derived.term)}</span>`}
  </div>`;
}

function note(tensors: readonly {readonly term: number}[], term: number): string {
  const where = tensors.some((each) => each.term === term) ? "variables and outputs of layers" : "variables";
  return `The gradient of a single term was measured at ${where}, not at the tensors between them. Findings refer to the whole loss.`;
}
