/** The drawer at the bottom: its tabs, the number of variables with problems, and the content of the chosen tab. */

import {html, nothing, type TemplateResult} from "lit";
import {formatCount} from "../model/format.ts";
import {isTroubled, type Row} from "../model/rows.ts";
import {TABS, TITLES, type Tab} from "../state/view.ts";
import {edgeOf} from "./edge.ts";
import {changesTab} from "./changes_tab.ts";
import {heatTab} from "./heat_tab.ts";
import {selectedVariable, type Asked, type Scope} from "./scope.ts";
import {seriesTab} from "./series_tab.ts";
import {nothingToList, problemsOf} from "./strips.ts";
import {termsTab} from "./terms_tab.ts";
import "./variables.ts";

export function drawer(scope: Scope): TemplateResult {
  const {view, onlyTroubled, ask} = scope;
  const rows = scope.derived.rows();
  const troubled = rows.filter(isTroubled).length;
  const unfolded = view.tab !== null;
  return html`<section class="drawer ${unfolded ? "unfolded" : ""}" aria-label="Numbers">
    ${unfolded ? edgeOf("drawer", scope) : nothing}
    <div class="handles">
      <button class="fold quiet" aria-label="Show or hide the panel below the graph" title="Show or hide (t)" aria-expanded=${String(unfolded)} @click=${() => ask.look({tab: unfolded ? null : "variables"})}>
        <span aria-hidden="true">${unfolded ? "▾" : "▸"}</span>
      </button>
      <div role="tablist" aria-label="Numbers" @keydown=${(event: KeyboardEvent) => walk(event, ask)}>${TABS.map((tab) => handle(scope, tab, rows.length))}</div>
      ${troubled === 0
        ? nothing
        : html`<button class="count" aria-pressed=${String(view.tab === "variables" && onlyTroubled)} title="Show only these, or all" @click=${() => ask.toggleTroubled()}>
            ${formatCount(troubled)} with a problem
          </button>`}
    </div>
    ${view.tab === null
      ? nothing
      : html`<div role="tabpanel" id="numbers" class="panel" aria-label=${TITLES[view.tab]}>${isUnreadable(scope) ? nothingToList() : content(scope, view.tab, rows, troubled)}</div>`}
  </section>`;
}

function handle({view, ask}: Scope, tab: Tab, count: number): TemplateResult {
  // One stop of the Tab key for all of them: arrow keys move between them.
  const first = tab === (view.tab ?? TABS[0]);
  return html`<button role="tab" class="handle" tabindex=${first ? 0 : -1} aria-selected=${String(view.tab === tab)} aria-controls=${view.tab === tab ? "numbers" : nothing} @click=${() => ask.look({tab: view.tab === tab ? null : tab})}>
    ${TITLES[tab]} ${tab === "variables" ? html`<span class="muted number">${formatCount(count)}</span>` : nothing}
  </button>`;
}

/** Arrow keys move from one tab to the next, wrapping around. */
function walk(event: KeyboardEvent, ask: Asked): void {
  const handles = [...(event.currentTarget as Element).children] as HTMLElement[];
  const at = handles.indexOf(event.target as HTMLElement);
  const last = handles.length - 1;
  const goals: Record<string, number> = {ArrowLeft: at === 0 ? last : at - 1, ArrowRight: at === last ? 0 : at + 1, Home: 0, End: last};
  const next = goals[event.key];
  if (at >= 0 && next !== undefined) {
    event.preventDefault();
    ask.look({tab: TABS[next]});
    handles[next].focus();
  }
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
    terms: () => termsTab(scope),
    changes: () => changesTab(scope),
  };
  return contents[tab]();
}

/** Whether nothing is known about the run, and nothing will be. */
function isUnreadable({store, derived}: Scope): boolean {
  return derived.condition === null && problemsOf(store.state, derived.problem).size > 0;
}

