/** The drawer at the bottom: its tabs, how many variables are in trouble, and what is behind the chosen tab. */

import {html, nothing, type TemplateResult} from "lit";
import {formatCount} from "../model/format.ts";
import {isTroubled, rowsOf, type Row} from "../model/rows.ts";
import {TABS, TITLES, type Tab} from "../state/view.ts";
import {changesTab} from "./changes_tab.ts";
import {heatTab} from "./heat_tab.ts";
import {selectedVariable, type Scope} from "./scope.ts";
import {seriesTab} from "./series_tab.ts";
import "./splitter.ts";
import "./variables.ts";

export function drawer(scope: Scope): TemplateResult {
  const {view, onlyTroubled, ask} = scope;
  const rows = rowsIn(scope);
  const troubled = rows.filter(isTroubled).length;
  const unfolded = view.tab !== null;
  return html`<section class="drawer ${unfolded ? "unfolded" : ""}" aria-label="Numbers">
    ${unfolded ? html`<gf-splitter></gf-splitter>` : nothing}
    <div class="handles">
      <button class="fold quiet" aria-label="Show or hide what is below the graph" title="Show or hide (t)" aria-expanded=${String(unfolded)} @click=${() => ask.look({tab: unfolded ? null : "variables"})}>
        <span aria-hidden="true">${unfolded ? "▾" : "▸"}</span>
      </button>
      <div role="tablist" aria-label="Numbers">${TABS.map((tab) => handle(scope, tab, rows.length))}</div>
      ${troubled === 0
        ? nothing
        : html`<button class="count" aria-pressed=${String(view.tab === "variables" && onlyTroubled)} title="Show only these, or all" @click=${() => ask.toggleTroubled()}>
            ${formatCount(troubled)} without a usable gradient
          </button>`}
    </div>
    ${view.tab === null ? nothing : content(scope, view.tab, rows, troubled)}
  </section>`;
}

function handle({view, ask}: Scope, tab: Tab, count: number): TemplateResult {
  return html`<button role="tab" class="handle" aria-selected=${String(view.tab === tab)} @click=${() => ask.look({tab: view.tab === tab ? null : tab})}>
    ${TITLES[tab]} ${tab === "variables" ? html`<span class="muted number">${formatCount(count)}</span>` : nothing}
  </button>`;
}

function content(scope: Scope, tab: Tab, rows: readonly Row[], troubled: number): TemplateResult {
  const {onlyTroubled, ask} = scope;
  const contents: Record<Tab, () => TemplateResult> = {
    variables: () => html`<gf-variables
      .rows=${rows}
      .onlyTroubled=${onlyTroubled && troubled > 0}
      .selected=${selectedVariable(scope)}
      @gf-variable=${(event: CustomEvent<number>) => ask.goToVariable(event.detail)}
    ></gf-variables>`,
    heat: () => heatTab(scope),
    series: () => seriesTab(scope),
    changes: () => changesTab(scope),
  };
  return contents[tab]();
}

function rowsIn({derived}: Scope): readonly Row[] {
  const {condition, diagnosis} = derived;
  if (condition === null) {
    return [];
  }
  const {tree, answers, numbers} = condition;
  return derived.once("rows", [condition], () => rowsOf(tree.graph.trace, diagnosis, answers, numbers));
}
