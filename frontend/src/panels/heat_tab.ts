/** Connects the heat map to the page's state. */

import {html, type TemplateResult} from "lit";
import "./heat.ts";
import {selectedVariable, type Scope} from "./scope.ts";

export function heatTab(scope: Scope): TemplateResult {
  const {store, derived, palette, ask} = scope;
  const {overview, target, scale, at} = store.state;
  return html`<gf-heat
    .source=${store.source}
    .overview=${overview}
    .graph=${derived.model?.tree.graph ?? null}
    .target=${target}
    .diagnosis=${derived.diagnosis}
    .scale=${scale}
    .at=${at}
    .selected=${selectedVariable(scope)}
    .palette=${palette}
    @gf-cell=${({detail}: CustomEvent<{variable: number; at: number}>) => {
      ask.chooseStep(detail.at);
      ask.goToVariable(detail.variable);
    }}
  ></gf-heat>`;
}
