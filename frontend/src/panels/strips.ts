/** The summary at the top, loading errors, and instructions if there is nothing yet. */

import {html, nothing, type TemplateResult} from "lit";
import type {Course} from "../api/routes.ts";
import {inOrder, keyOf} from "../model/findings.ts";
import {formatCount, plural} from "../model/format.ts";
import type {Diagnosis, VerdictKind} from "../record.ts";
import type {State} from "../state/state.ts";
import {prose} from "./prose.ts";

/** What else may be wrong if there is no finding. */
const NOT_THE_GRADIENT: ReadonlySet<VerdictKind> = new Set<VerdictKind>(["rate", "labels", "batch"]);

/** `chosen`: key of the shown finding; null for none. */
export function summaryStrip(diagnosis: Diagnosis | null, chosen: string | null, go: (step: 1 | -1) => void): TemplateResult | typeof nothing {
  if (diagnosis === null) {
    return html`<div class="summary" role="status">
      <span class="icon" aria-hidden="true">…</span>
      <span class="sentence muted">Analysing the gradient. The findings appear when this is done.</span>
    </div>`;
  }
  const at = inOrder(diagnosis.findings).findIndex((finding) => keyOf(finding) === chosen);
  const found = ["error", "warning"].find((severity) => diagnosis.findings.some((finding) => finding.severity === severity));
  const worst = found ?? (NOT_THE_GRADIENT.has(diagnosis.verdict.kind) ? "warning" : undefined);
  const icon = worst === "error" ? "⊘" : worst === "warning" ? "△" : "✓";
  return html`<div class="summary ${worst ?? "healthy"}" role="status">
    <span class="icon" aria-hidden="true">${icon}</span>
    <span class="sentence">${prose(diagnosis.summary)}</span>
    ${diagnosis.findings.length === 0
      ? nothing
      : html`<span class="go">
          <button class="quiet" title="Previous finding (p)" aria-label="Previous finding" @click=${() => go(-1)}>◂</button>
          <span class="muted">${at < 0 ? plural(diagnosis.findings.length, "finding") : `Finding ${at + 1} of ${formatCount(diagnosis.findings.length)}`}</span>
          <button class="quiet" title="Next finding (n)" aria-label="Next finding" @click=${() => go(1)}>▸</button>
        </span>`}
  </div>`;
}

export function problemsStrip(problems: ReadonlyMap<string, string>): TemplateResult | typeof nothing {
  if (problems.size === 0) {
    return nothing;
  }
  const words = [...new Set(problems.values())];
  return html`<div class="problems" role="alert">${words.map((problem) => html`<div>${problem}</div>`)}</div>`;
}

/** What a link names and is not here. */
export function absentStrip(words: readonly string[], close: () => void): TemplateResult | typeof nothing {
  return words.length === 0
    ? nothing
    : html`<div class="absent" role="alert"><span>${words.join(" ")}</span><button class="quiet" aria-label="Close" title="Close" @click=${close}>✕</button></div>`;
}

/** What of the log was left out: the page shows the rest. */
export function damageStrip(course: Course | null): TemplateResult | typeof nothing {
  const damage = course?.damage ?? "";
  return damage === "" ? nothing : html`<div class="problems" role="note">${damage}</div>`;
}

/** The page before there is anything to show: placeholders. */
export function skeleton(words: string): TemplateResult {
  return html`<div class="skeleton" aria-hidden="true"><i></i><i></i><i></i></div>
    <main class="waiting" role="status">${words}</main>`;
}

/** The progress of a long load, from 0 to 1, and its current activity. */
export function progress(words: string, share: number): TemplateResult {
  return html`<div class="progress" role="status">
    <div class="skeleton boxes" aria-hidden="true"><i></i><i></i><i></i></div>
    <progress max="1" .value=${share} aria-label=${words}></progress>
    <div>${words}</div>
  </div>`;
}

/** Shown instead of data: the message at the top says what is wrong and what to do. */
export function nothingToList(): TemplateResult {
  return html`<p class="unlisted">Nothing to list: the data could not be read. See the message at the top.</p>`;
}

export function nothingToDraw(): TemplateResult {
  return html`<p class="nothing">Nothing to draw: in this step there is no op between a trainable variable and a loss.</p>`;
}

/** A session began, and nothing else can be read. */
export function nothingYet(): TemplateResult {
  return html`<p class="nothing" role="status">
    This run has no step yet. The first recorded step may take a minute. If the training is already past it, the log is truncated or damaged: copy it again, or record a new run.
  </p>`;
}

/** There may be runs, so this does not suggest recording one. */
export function unknownRuns(): TemplateResult {
  return html`<main class="waiting">The runs could not be read. This page retries every few seconds.</main>`;
}

export function emptyState(): TemplateResult {
  return html`<main class="empty">
    <h1>No gradient flow recorded yet</h1>
    <p>Add the callback to <code>fit</code>, with a directory that TensorBoard reads:</p>
    <pre><code>import tb_gradflow

model.fit(x, y, callbacks=[tb_gradflow.GradFlowCallback("logs/run1")])</code></pre>
    <p class="muted">This page looks for new runs every few seconds.</p>
  </main>`;
}

/** Problems of loading, of the graph, and of the chosen run. */
export function problemsOf({runs, run, problems}: State, ofGraph: string): ReadonlyMap<string, string> {
  const error = runs?.find((entry) => entry.run === run)?.error ?? null;
  const all = ofGraph === "" ? problems : new Map([...problems, ["graph", ofGraph]]);
  return error === null ? all : new Map([["run", error]]);
}
