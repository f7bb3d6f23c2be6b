/** The differences from the compared run: in one sentence, in findings, in variables, in ops. */

import {html, nothing, type TemplateResult} from "lit";
import type {FindingChange, OpChange, VariableChange} from "../model/compare.ts";
import {verdict} from "../model/compare.ts";
import {formatNumber, plural} from "../model/format.ts";
import {SEVERITY, STATUS} from "../model/words.ts";
import type {Status} from "../record.ts";
import {divergence} from "./divergence.ts";
import {firstSentence, prose} from "./prose.ts";
import type {Scope} from "./scope.ts";

/** Nobody reads a longer list. */
const MANY = 200;
const FINDINGS = {gone: "went", came: "came", stayed: "stayed"} as const;
const ORDER = ["worse", "better", "changed", "new", "gone"] as const;
const ICONS = {worse: "↓", better: "↑", changed: "≠", new: "+", gone: "−"} as const;

export function changesTab(scope: Scope): TemplateResult {
  const {derived, other, otherProblem, view} = scope;
  const {comparison} = derived;
  if (otherProblem !== "") {
    return html`<div class="changes"><p class="problem" role="alert">${otherProblem}</p></div>`;
  }
  if (comparison === null || other === null) {
    return html`<div class="changes"><p class="muted">${view.beside === null ? "Choose a run to compare with at the top: the differences are listed here and marked in the graph." : "Reading the other run …"}</p></div>`;
  }
  const variables = ORDER.flatMap((change) => comparison.variables.filter((each) => each.change === change));
  return html`<div class="changes">
    <p><b role="status">${verdict(comparison)}</b> <span class="muted">${aligned(scope)}</span> ${showButton(scope)}</p>
    ${divergence(scope)}
    ${section("Findings", comparison.findings.map((each) => finding(scope, each)))}
    ${section("Variables", variables.map((each) => variable(scope, each)))}
    ${section("Ops", comparison.ops.map((each) => op(scope, each)))}
  </div>`;
}

function aligned({store, other}: Scope): string {
  const name = other?.overview.name;
  return other?.step === store.step
    ? `Compared with ${name}, both at step ${store.step}.`
    : `Step ${store.step} compared with step ${other?.step} of ${name}, the nearest recorded one.`;
}

function showButton({derived, ask}: Scope): TemplateResult | typeof nothing {
  const changes = derived.condition?.changes;
  const nodes = [...(changes?.marks.keys() ?? [])];
  return nodes.length === 0 ? nothing : html`<button @click=${() => ask.openAround(nodes)}>Open all changes in the graph</button>`;
}

function section(title: string, rows: readonly TemplateResult[]): TemplateResult | typeof nothing {
  if (rows.length === 0) {
    return nothing;
  }
  return html`<section aria-label=${title}>
    <h2>${title} <span class="muted number">${rows.length}</span></h2>
    <ul>${rows.slice(0, MANY)}</ul>
    ${rows.length > MANY ? html`<p class="muted">and ${plural(rows.length - MANY, "more")}</p>` : nothing}
  </section>`;
}

function finding({ask}: Scope, {finding, change}: FindingChange): TemplateResult {
  const words = html`<span class="tag ${change}">${FINDINGS[change]}</span>
    <span class=${finding.severity} title=${SEVERITY[finding.severity].one}>${SEVERITY[finding.severity].icon}</span> ${prose(firstSentence(finding.message)[0])}`;
  return change === "gone"
    ? html`<li><span class="went">${words}</span></li>`
    : html`<li><button class="link" @click=${() => ask.showFinding(finding)}>${words}</button></li>`;
}

function variable({store, derived, other, ask}: Scope, each: VariableChange): TemplateResult {
  const change = each.change as (typeof ORDER)[number];
  const condition = derived.condition;
  const now = norm(condition?.numbers?.gradient(condition.answers.variables[each.variable]?.row ?? -1)?.norm);
  const row = other?.trace.variable_gradients.find((gradient) => gradient.variable === each.other && gradient.target === other.target)?.row ?? -1;
  const before = norm(other?.numbers?.gradient(row)?.norm);
  const words = html`<span class="tag ${change}">${ICONS[change]} ${change}</span> ${each.name}
    <span class="muted number">${status(each.before)} → ${status(each.now)}; gradient ${before} → ${now}</span>`;
  const there = each.variable >= 0 && store.state.trace !== null;
  return html`<li>${there ? html`<button class="link" @click=${() => ask.goToVariable(each.variable)}>${words}</button>` : words}</li>`;
}

function op({derived, ask}: Scope, {op, name, change, words}: OpChange): TemplateResult {
  const node = derived.model?.tree.graph.nodeOfOp[op] ?? -1;
  const told = html`<span class="tag ${change}">${ICONS[change]}</span> ${name} <span class="muted">${words}</span>`;
  return html`<li>${node >= 0 ? html`<button class="link" @click=${() => ask.go(node)}>${told}</button>` : told}</li>`;
}

function status(value: Status | null): string {
  return value === null ? "not there" : STATUS[value].word;
}

function norm(value: number | undefined): string {
  return formatNumber(value);
}
