/** The step and the op at which the two compared runs begin to differ, side by side. */

import {html, nothing, type TemplateResult} from "lit";
import type {Divergence} from "../api/routes.ts";
import {beginning, settings, type SideRow} from "../model/divergence.ts";
import {plural} from "../model/format.ts";
import {breakable, prose} from "./prose.ts";
import type {Scope} from "./scope.ts";

/** Nobody reads a longer list. */
const MANY = 20;

/** Nothing where no server can compare them. */
export function divergence(scope: Scope): TemplateResult | typeof nothing {
  const {diverged, view, store, ask} = scope;
  if (!store.source.isLive || view.beside === null) {
    return nothing;
  }
  const {found, problem, isLooking} = diverged;
  const words = isLooking ? "Reading both runs …" : found === null ? "Find the first difference" : "Look again";
  return html`<section class="divergence" aria-label="Where they begin to differ" aria-busy=${String(isLooking)}>
    <h2>Where they begin to differ</h2>
    <p>
      <button aria-disabled=${String(isLooking)} @click=${ask.findDivergence}>${words}</button>
      ${found === null ? nothing : html`${goToStep(scope, found)} ${goToOp(scope, found)}`}
    </p>
    ${found === null && !isLooking && problem === "" ? html`<p class="muted">The first step, of those that both runs have recorded, and in it the first op, at which they differ by more than rounding.</p>` : nothing}
    <div role="status">${problem === "" ? nothing : html`<p class="problem">${problem}</p>`} ${found === null ? nothing : html`<p><b>${prose(found.summary)}</b></p>`}</div>
    ${found === null ? nothing : difference(found)}
  </section>`;
}

function difference(found: Divergence): TemplateResult {
  const words = [found.measured ?? "", found.agreed].filter(Boolean).join(" ");
  const code = found.code ?? [];
  return html`${found.differs ? sides(found) : nothing}
    <p class=${found.differs ? "muted" : ""}>${prose(words)}</p>
    ${ops(found)} ${code.length === 0 ? nothing : html`<h3>Lines of code that differ</h3><pre>${code.join("\n")}</pre>`}`;
}

function sides(found: Divergence): TemplateResult {
  const others = settings(found);
  return html`<table>
    <thead><tr><td></td><th scope="col">A: ${breakable(found.a.run)}</th><th scope="col">B: ${breakable(found.b.run)}</th></tr></thead>
    <tbody>${beginning(found).map(side)}</tbody>
    ${others.length === 0 ? nothing : html`<tbody><tr><th colspan="3" scope="rowgroup">Settings that differ</th></tr>${others.map(side)}</tbody>`}
  </table>`;
}

function side({what, a, b, isCode}: SideRow): TemplateResult {
  const cell = (text: string): TemplateResult => html`<td>${text === "" ? html`<span class="muted">none</span>` : isCode ? html`<code>${text}</code>` : breakable(text)}</td>`;
  return html`<tr><th scope="row">${breakable(what)}</th>${cell(a)}${cell(b)}</tr>`;
}

function ops({ops: found = []}: Divergence): TemplateResult | typeof nothing {
  return found.length === 0
    ? nothing
    : html`<h3>Ops that differ <span class="muted number">${found.length}</span></h3>
        <ul>${found.slice(0, MANY).map(({a, b, difference}) => html`<li><span class="tag">${a === null ? "only in B" : b === null ? "only in A" : "differs"}</span> ${breakable(b ?? a ?? "")} <span class="muted">${prose(difference)}</span></li>`)}</ul>
        ${found.length > MANY ? html`<p class="muted">and ${plural(found.length - MANY, "more")}</p>` : nothing}`;
}

/** Only if another step is shown. */
function goToStep({store, ask}: Scope, {step}: Divergence): TemplateResult | typeof nothing {
  const at = store.state.overview?.steps.indexOf(step ?? -1) ?? -1;
  return at < 0 || step === store.step ? nothing : html`<button @click=${() => ask.chooseStep(at)}>Show step ${step}</button>`;
}

/** Only if the shown graph has it. */
function goToOp({store, derived, ask}: Scope, {op}: Divergence): TemplateResult | typeof nothing {
  const number = store.state.trace?.ops.findIndex(({name}) => name === op?.b?.name) ?? -1;
  const node = derived.model?.tree.graph.nodeOfOp[number] ?? -1;
  return node < 0 ? nothing : html`<button @click=${() => ask.go(node)}>Show the op in the graph</button>`;
}
