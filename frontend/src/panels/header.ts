/** The top line: which run, which loss, which step. */

import {html, nothing, type TemplateResult} from "lit";
import type {State} from "../state/store.ts";
import "./steps.ts";

export interface Choices {
  toggleSide(): void;
  chooseRun(run: string): void;
  chooseTarget(target: number): void;
  /** By position among the recorded steps. */
  chooseStep(at: number): void;
}

export function header(state: State, choices: Choices): TemplateResult {
  const {overview, at, target} = state;
  return html`<header>
    <button class="quiet" aria-label="Show or hide the findings" title="Show or hide the findings" @click=${choices.toggleSide}>☰</button>
    ${runPicker(state, choices)} ${lossPicker(state, choices)}
    <gf-steps
      .steps=${overview?.steps ?? []}
      .at=${at}
      .loss=${overview?.losses[at]?.[target]}
      @gf-step=${(event: CustomEvent<number>) => choices.chooseStep(event.detail)}
    ></gf-steps>
  </header>`;
}

function runPicker({runs, run}: State, {chooseRun}: Choices): TemplateResult {
  return html`<label class="picker"
    ><span class="muted">Run</span>
    <select aria-label="Run" .value=${run ?? ""} @change=${(event: Event) => chooseRun((event.target as HTMLSelectElement).value)}>
      ${(runs ?? []).map(
        (entry) =>
          html`<option value=${entry.run} ?selected=${entry.run === run}>${entry.name}${entry.error === null ? "" : " (unreadable)"}</option>`,
      )}
    </select>
  </label>`;
}

/** Only where there is a choice. */
function lossPicker({trace, target}: State, {chooseTarget}: Choices): TemplateResult | typeof nothing {
  if (trace === null || trace.targets.length < 2) {
    return nothing;
  }
  return html`<label class="picker"
    ><span class="muted">Loss</span>
    <select aria-label="Loss" @change=${(event: Event) => chooseTarget(Number((event.target as HTMLSelectElement).value))}>
      ${trace.targets.map((each, index) => html`<option value=${index} ?selected=${index === target}>${each.name}</option>`)}
    </select>
  </label>`;
}
