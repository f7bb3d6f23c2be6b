/** The drawer at the bottom: its handle, how many variables are in trouble, and the table. */

import {html, nothing, type TemplateResult} from "lit";
import {formatCount} from "../model/format.ts";
import {isTroubled, rowsOf, type Row} from "../model/rows.ts";
import {selectedVariable, type Scope} from "./scope.ts";
import "./variables.ts";

export function drawer(scope: Scope): TemplateResult {
  const {view, onlyTroubled, ask} = scope;
  const rows = rowsIn(scope);
  const troubled = rows.filter(isTroubled).length;
  const unfolded = view.tab !== null;
  return html`<section class="drawer ${unfolded ? "unfolded" : ""}" aria-label="Variables">
    <div class="handles">
      <button class="handle" aria-expanded=${String(unfolded)} @click=${() => ask.look({tab: unfolded ? null : "variables"})}>
        <span aria-hidden="true">${unfolded ? "▾" : "▸"}</span> Variables <span class="muted number">${formatCount(rows.length)}</span>
      </button>
      ${troubled === 0
        ? nothing
        : html`<button class="count" aria-pressed=${String(unfolded && onlyTroubled)} title="Show only these, or all" @click=${() => ask.toggleTroubled()}>
            ${formatCount(troubled)} without a usable gradient
          </button>`}
    </div>
    ${unfolded
      ? html`<gf-variables
          .rows=${rows}
          .onlyTroubled=${onlyTroubled && troubled > 0}
          .selected=${selectedVariable(scope)}
          @gf-variable=${(event: CustomEvent<number>) => ask.goToVariable(event.detail)}
        ></gf-variables>`
      : nothing}
  </section>`;
}

function rowsIn({derived}: Scope): readonly Row[] {
  const {condition, diagnosis} = derived;
  if (condition === null) {
    return [];
  }
  const {tree, answers, numbers} = condition;
  return derived.once("rows", [condition], () => rowsOf(tree.graph.trace, diagnosis, answers, numbers));
}
