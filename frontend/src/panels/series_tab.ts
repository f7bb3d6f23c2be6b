/** Connects the charts to the page's state: the selected variable, and those that were added. */

import {html, type TemplateResult} from "lit";
import {selectedVariable, type Scope} from "./scope.ts";
import type {Drawn} from "./series.ts";
import "./series.ts";

export function seriesTab(scope: Scope): TemplateResult {
  const {store, derived, view, palette, other, ask} = scope;
  const {overview, trace, target} = store.state;
  const chosen = trace?.variables[selectedVariable(scope)]?.name;
  const names = derived.once("charted", [view.charted, chosen], () => [...new Set([...view.charted, ...(chosen === undefined ? [] : [chosen])])]);
  const runs = derived.once("drawn", [overview, trace, target, other], (): readonly Drawn[] => {
    const shown = overview === null || trace === null || overview.steps.length === 0 ? [] : [{overview, trace, target}];
    return shown.length > 0 && other !== null && other.overview.steps.length > 0 ? [...shown, other] : shown;
  });
  return html`<gf-series
    .source=${store.source}
    .runs=${runs}
    .names=${names}
    .step=${store.step}
    .palette=${palette}
    @gf-charted=${({detail}: CustomEvent<readonly string[]>) => {
      const letGo = chosen !== undefined && !detail.includes(chosen);
      if (letGo) {
        ask.select(-1);
      }
      ask.look({charted: detail.filter((name) => name !== chosen || view.charted.includes(name))});
    }}
  ></gf-series>`;
}
