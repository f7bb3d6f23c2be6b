/** The top line: which run, which loss, which step. */

import {html, nothing, type TemplateResult} from "lit";
import type {Scope} from "./scope.ts";
import "./search.ts";
import "./steps.ts";

export function header(scope: Scope): TemplateResult {
  const {store, derived, ask} = scope;
  const {overview, at, target} = store.state;
  return html`<header>
    <button class="quiet" aria-label="Show or hide the findings" title="Show or hide the findings (f)" @click=${ask.toggleSide}>☰</button>
    ${runPicker(scope)} ${lossPicker(scope)}
    <gf-steps
      .steps=${overview?.steps ?? []}
      .at=${at}
      .loss=${overview?.losses[at]?.[target]}
      @gf-step=${(event: CustomEvent<number>) => ask.chooseStep(event.detail)}
    ></gf-steps>
    <gf-search
      .tree=${derived.model?.tree ?? null}
      .index=${derived.searchable}
      @gf-go=${(event: CustomEvent<number>) => ask.go(event.detail)}
      @gf-found=${(event: CustomEvent<readonly number[] | null>) => ask.light(event.detail)}
    ></gf-search>
    <button class="quiet" aria-label="Keys" title="Keys (?)" @click=${ask.toggleKeys}>?</button>
  </header>`;
}

function runPicker({store, ask}: Scope): TemplateResult {
  const {runs, run} = store.state;
  return html`<label class="picker"
    ><span class="muted">Run</span>
    <select aria-label="Run" .value=${run ?? ""} @change=${(event: Event) => ask.chooseRun((event.target as HTMLSelectElement).value)}>
      ${(runs ?? []).map(
        (entry) =>
          html`<option value=${entry.run} ?selected=${entry.run === run}>${entry.name}${entry.error === null ? "" : " (unreadable)"}</option>`,
      )}
    </select>
  </label>`;
}

/** Only where there is a choice. */
function lossPicker({store}: Scope): TemplateResult | typeof nothing {
  const {trace, target} = store.state;
  if (trace === null || trace.targets.length < 2) {
    return nothing;
  }
  return html`<label class="picker"
    ><span class="muted">Loss</span>
    <select aria-label="Loss" @change=${(event: Event) => store.chooseTarget(Number((event.target as HTMLSelectElement).value))}>
      ${trace.targets.map((each, index) => html`<option value=${index} ?selected=${index === target}>${each.name}</option>`)}
    </select>
  </label>`;
}
