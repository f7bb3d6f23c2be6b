/** Connects the charts to the page's state: the selected variable, and those that were added. */

import {html, type TemplateResult} from "lit";
import {selectedVariable, type Scope} from "./scope.ts";
import "./series.ts";

export function seriesTab(scope: Scope): TemplateResult {
  const {store, derived, view, palette, other, ask} = scope;
  const {overview, trace, target} = store.state;
  const chosen = trace?.variables[selectedVariable(scope)]?.name;
  return html`<gf-series
    .source=${store.source}
    .runs=${derived.drawn(overview, trace, target, other)}
    .names=${derived.charted(view.charted, chosen)}
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
