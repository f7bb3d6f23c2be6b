/** The top lines: run, loss and search; and the step. */

import {html, nothing, type TemplateResult} from "lit";
import {costInWords} from "../model/cost.ts";
import {formatCount, plural} from "../model/format.ts";
import {countsOf, HEALTH} from "../model/runs.ts";
import {exportMenu} from "./export.ts";
import type {Scope} from "./scope.ts";
import "./runs.ts";
import "./search.ts";
import "./timeline.ts";

/** In a narrower frame the list of other runs has no label: see the styles. */
const ROOM_FOR_LABEL = 1400;

export function header(scope: Scope): TemplateResult {
  const {derived, view, store, ask} = scope;
  if (view.all && (store.state.runs?.length ?? 0) > 1) {
    // The rest is about one run.
    return html`<header>
      ${allRunsButton(scope)} ${runPicker(scope)}
      <button class="quiet last" aria-label="Keys" title="Keys (?)" @click=${ask.toggleKeys}>?</button>
    </header>`;
  }
  return html`<header>
    <button class="quiet" aria-label="Show or hide the findings" title="Show or hide the findings (f)" @click=${ask.toggleSide}>☰</button>
    ${allRunsButton(scope)} ${runPicker(scope)} ${earlier(scope)} ${besidePicker(scope)} ${lossPicker(scope)}
    <gf-search
      .tree=${derived.model?.tree ?? null}
      .index=${derived.searchable}
      .statusOf=${derived.statusOf}
      @gf-go=${(event: CustomEvent<number>) => ask.go(event.detail)}
      @gf-found=${(event: CustomEvent<readonly number[] | null>) => ask.light(event.detail)}
    ></gf-search>
    ${exportMenu(scope)}
    <button class="quiet" aria-label="Keys" title="Keys (?)" @click=${ask.toggleKeys}>?</button>
  </header>`;
}

export function timeline({store, derived, ask, playing}: Scope): TemplateResult {
  const {overview, trace, at, target, course} = store.state;
  return html`<gf-timeline
    .steps=${overview?.steps ?? []}
    .losses=${derived.losses(overview, trace, target)}
    .recorded=${store.source.isLive ? (overview?.wall_times.at(-1) ?? null) : null}
    .at=${at}
    .course=${course}
    .playing=${playing}
    @gf-step=${({detail}: CustomEvent<number>) => ask.chooseStep(detail)}
    @gf-play=${ask.togglePlay}
  ></gf-timeline>`;
}

/** The list of all runs instead of one. */
export function allRuns({store, ask}: Scope): TemplateResult {
  const {runs, run, standings} = store.state;
  return html`<gf-runs
    .runs=${runs ?? []}
    .standings=${standings}
    .run=${run}
    .pageOf=${(cause: string) => store.source.pageOf(cause)}
    @gf-run=${({detail}: CustomEvent<string>) => ask.chooseRun(detail)}
    @gf-compare=${({detail: [before, now]}: CustomEvent<readonly string[]>) => ask.compareRuns(before, now)}
    @gf-close=${() => ask.look({all: false})}
  ></gf-runs>`;
}

/** Only if there are several; shows how many of them have problems, as far as known. */
function allRunsButton({store, view, ask}: Scope): TemplateResult | typeof nothing {
  const {runs, standings} = store.state;
  if ((runs?.length ?? 0) < 2) {
    return nothing;
  }
  const counts = countsOf(standings?.runs ?? []);
  const troubled = (["error", "warning"] as const).filter((health) => counts.has(health));
  const words = troubled.map((health) => `${formatCount(counts.get(health) ?? 0)} with ${health}s`).join(", ");
  return html`<button class="all" aria-pressed=${String(view.all)} title="All runs, worst first (a)${words === "" ? "" : `: ${words}`}" @click=${() => ask.look({all: !view.all})}>
    All ${formatCount(runs?.length ?? 0)} runs
    ${troubled.map((health) => html`<span class=${HEALTH[health].tone}><span aria-hidden="true">${HEALTH[health].icon}</span>${formatCount(counts.get(health) ?? 0)}</span>`)}
  </button>`;
}

function runPicker(scope: Scope): TemplateResult {
  const {store, ask} = scope;
  const {runs, run} = store.state;
  const name = runs?.find((entry) => entry.run === run)?.name ?? "";
  return html`<label class="picker" title=${[name, cost(scope)].filter(Boolean).join("\n")}
    ><span class="muted">Run</span>
    <select aria-label="Run" .value=${run ?? ""} @change=${(event: Event) => ask.chooseRun((event.target as HTMLSelectElement).value)}>
      ${(runs ?? []).map(
        (entry) =>
          html`<option value=${entry.run} ?selected=${entry.run === run}>${entry.name}${entry.error === null ? "" : " (unreadable)"}</option>`,
      )}
    </select>
  </label>`;
}

/** Only if the directory was recorded into more than once. */
function earlier({store}: Scope): TemplateResult | typeof nothing {
  const count = store.state.overview?.earlier_sessions ?? 0;
  return count === 0
    ? nothing
    : html`<span class="muted spacious" title="The log directory holds ${plural(count, "earlier recording")}, which this page does not show. Give each training its own directory to see them all.">newest of ${count + 1} recordings</span>`;
}

/** Empty if the log does not contain it, and if there was no step without recording to compare with. */
function cost({store}: Scope): string {
  const known = store.state.overview?.cost ?? null;
  return known === null || known.seconds === 0 || known.recorded === known.steps ? "" : costInWords(known);
}

/** Only if there is another run. */
function besidePicker({store, view, ask}: Scope): TemplateResult | typeof nothing {
  const {runs, run} = store.state;
  const others = (runs ?? []).filter((entry) => entry.run !== run && entry.error === null);
  if (others.length === 0) {
    return nothing;
  }
  const choose = (event: Event): void => {
    const {value} = event.target as HTMLSelectElement;
    ask.look(value === "" ? {beside: null} : {beside: value, tab: "changes"});
  };
  // If there is no space for the label next to the list, it is in the list.
  const nobody = window.innerWidth >= ROOM_FOR_LABEL ? "no other run" : "compare with …";
  return html`<label class="picker beside" title=${others.find((entry) => entry.run === view.beside)?.name ?? ""}
    ><span class="muted wide">Compare with</span>
    <select aria-label="Compare with" @change=${choose}>
      <option value="" ?selected=${view.beside === null}>${nobody}</option>
      ${others.map((entry) => html`<option value=${entry.run} ?selected=${entry.run === view.beside}>${entry.name}</option>`)}
    </select>
  </label>`;
}

/** Only if there is a choice. */
function lossPicker({store, ask}: Scope): TemplateResult | typeof nothing {
  const {trace, target} = store.state;
  if (trace === null || trace.targets.length < 2) {
    return nothing;
  }
  return html`<label class="picker loss" title=${trace.targets[target]?.name ?? ""}
    ><span class="muted">Loss</span>
    <select aria-label="Loss" .value=${trace.targets[target]?.name ?? ""} @change=${(event: Event) => ask.look({loss: (event.target as HTMLSelectElement).value})}>
      ${trace.targets.map(({name}, index) => html`<option value=${name} ?selected=${index === target}>${name}</option>`)}
    </select>
  </label>`;
}
