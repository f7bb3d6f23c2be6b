/** The graph, with the legend and the panel of the selected item over it. */

import {css, html, nothing, type TemplateResult} from "lit";
import "./details.ts";
import "./graph.ts";
import "./legend.ts";
import type {Legend} from "./legend.ts";
import type {Marks} from "../draw/marks.ts";
import type {Measure} from "../model/measure.ts";
import {ROOM_FOR_DETAILS} from "../state/panes.ts";
import {edgeOf} from "./edge.ts";
import {besideGraph} from "./room.ts";
import type {Scope} from "./scope.ts";
import {nothingToDraw, nothingYet, progress} from "./strips.ts";

export const stageStyles = css`
  .details {
    position: absolute;
    z-index: 1;
    top: 0;
    right: 0;
    bottom: 0;
    width: var(--gf-details);
    max-width: 100%;
    border-left: 1px solid var(--gf-line);
  }
  .stage {
    position: relative;
    flex: 1;
    min-height: 0;
  }
  gf-graph {
    position: absolute;
    inset: 0;
  }
`;

export function stage(scope: Scope): TemplateResult {
  const {derived, view, selected, palette, ask, sizes} = scope;
  const {addresses} = derived;
  const covered = selected >= 0 && window.innerWidth >= ROOM_FOR_DETAILS ? sizes.details : 0;
  const beside = besideGraph(scope);
  return html`<div class="stage">
    <gf-graph
      .model=${derived.model}
      .condition=${derived.condition}
      .initiallyOpen=${derived.initiallyOpen}
      .open=${derived.openIn(view)}
      .worst=${derived.worst}
      .judged=${derived.judged}
      .path=${derived.pathOf(view.finding)}
      .found=${lit(scope)}
      .covered=${covered}
      .selected=${selected}
      .palette=${palette}
      @gf-select=${({detail}: CustomEvent<number>) => ask.select(detail)}
      @gf-marks=${explain}
      @gf-open=${({detail}: CustomEvent<ReadonlySet<number>>) => ask.look({open: addresses?.namesOf(detail) ?? null})}
    ></gf-graph>
    ${derived.isEmpty ? nothingToDraw() : nothing}
    <gf-legend .hidden=${derived.condition === null} .measured=${derived.condition?.measured ?? null} .judged=${derived.judged} .room=${window.innerWidth - beside - covered} .palette=${palette} @gf-measure=${({detail}: CustomEvent<Measure>) => ask.look({measure: detail})}></gf-legend>
    ${waiting(scope)} ${details(scope)}
  </div>`;
}

/** The legend is next to the graph. */
function explain({detail, currentTarget}: CustomEvent<Marks>): void {
  const legend = (currentTarget as HTMLElement).parentElement?.querySelector<Legend>("gf-legend") ?? null;
  if (legend !== null) {
    legend.marks = detail;
  }
}

/** What is being loaded before anything can be drawn. */
function waiting({store, derived}: Scope): TemplateResult | typeof nothing {
  const {runs, run, overview, trace, problems} = store.state;
  if (derived.model !== null || derived.problem !== "" || problems.size > 0) {
    return nothing;
  }
  if (overview !== null && overview.traces.length === 0) {
    return nothingYet();
  }
  const name = runs?.find((entry) => entry.run === run)?.name ?? run;
  return progress(
    overview === null ? `Reading the steps of ${name} …` : trace === null ? `Reading the graph of ${name} …` : `Analysing the gradient of ${name} …`,
    overview === null ? 0.2 : trace === null ? 0.5 : 0.8,
  );
}

/** The results of a search; or, on the tab of changes, the changes. */
function lit({found, view, derived}: Scope): ReadonlySet<number> | null {
  const changes = view.tab === "changes" && view.finding === null ? derived.condition?.changes : null;
  return found ?? (changes && changes.items.size > 0 ? changes.items : null);
}

function details(scope: Scope): TemplateResult | typeof nothing {
  const {derived: {condition, diagnosis}, store, selected, palette, ask} = scope;
  if (selected < 0 || condition === null) {
    return nothing;
  }
  const node = condition.tree.graph.nodes[selected];
  const status = node?.kind === "variable" ? (diagnosis?.variables[node.index]?.status ?? null) : null;
  return html`<aside class="details" aria-label="Details">
    ${edgeOf("details", scope)}
    <gf-details class="scroller"
      .source=${store.source}
      .overview=${store.state.overview}
      .tree=${condition.tree}
      .item=${selected}
      .answers=${condition.answers}
      .numbers=${condition.numbers}
      .status=${status}
      .step=${store.step}
      .palette=${palette}
      @gf-go=${({detail}: CustomEvent<number>) => ask.go(detail)}
    ></gf-details>
  </aside>`;
}
