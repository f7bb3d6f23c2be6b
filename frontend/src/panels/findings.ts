/** The list of findings: cards, worst first; explained findings are folded away. */

import {html, LitElement, nothing, type PropertyValues, type TemplateResult} from "lit";
import {copyText} from "../host/clipboard.ts";
import {contextOf, mentionedIn} from "../model/context.ts";
import {comparedBy, comparedIn} from "../model/curves.ts";
import {inOrder, keyOf} from "../model/findings.ts";
import {fileName, plural} from "../model/format.ts";
import {patchOf, shownLines, triedInWords, untriedInWords} from "../model/patch.ts";
import type {Stop} from "../model/stops.ts";
import {SEVERITY} from "../model/words.ts";
import type {Diagnosis, Edit, Finding, Passage, Severity, Source, SourceReport, Tried} from "../record.ts";
import {block, codeStyles, diff, line as coloured} from "./code.ts";
import {courses, coursesStyles} from "./courses.ts";
import {findingsStyles} from "./findings_styles.ts";
import {follow, followStyles} from "./follow.ts";
import {codeIn, firstSentence, instruction, prose} from "./prose.ts";
import {shared} from "./styles.ts";
import {termsStyles, termsTable} from "./terms.ts";

export class FindingsPanel extends LitElement {
  static override properties = {
    diagnosis: {attribute: false},
    sources: {attribute: false},
    passages: {attribute: false},
    chosen: {attribute: false},
    pageOf: {attribute: false},
    stops: {attribute: false},
    selected: {attribute: false},
    timeSeries: {attribute: false},
    step: {attribute: false},
    copied: {state: true},
  };
  declare diagnosis: Diagnosis | null;
  /** Lines of code in the trace. */
  declare sources: readonly Source[];
  /** Parts of the user's files in the trace. */
  declare passages: readonly Passage[];
  /** Key of the finding whose path is lit. */
  declare chosen: string | null;
  /** The address of the page about a cause; null if there is none. */
  declare pageOf: (cause: string) => string | null;
  /** The path of the chosen finding; empty if it has none. */
  declare stops: readonly Stop[];
  /** The item that is shown in the graph; -1 for none. */
  declare selected: number;
  /** The address of the run's scalars in TensorBoard; null if it has none. */
  declare timeSeries: string | null;
  declare step: number;
  declare copied: string;

  /** Whether to scroll to the chosen card, once it exists. */
  #mustShow = false;

  static override styles = [shared, codeStyles, findingsStyles, coursesStyles, followStyles, termsStyles];

  constructor() {
    super();
    this.diagnosis = null;
    this.sources = [];
    this.passages = [];
    this.chosen = null;
    this.pageOf = () => null;
    [this.stops, this.selected, this.timeSeries, this.step] = [[], -1, null, -1];
    this.copied = "";
  }

  override render(): TemplateResult {
    if (this.diagnosis === null) {
      return html`<p class="healthy">Analysing the gradient …</p>`;
    }
    const findings = inOrder(this.diagnosis.findings);
    const of = (severity: Severity): Finding[] => findings.filter((finding) => finding.severity === severity);
    const infos = of("info");
    return html`
      ${this.#section("error", of("error"))} ${this.#section("warning", of("warning"))}
      ${findings.length === infos.length ? html`<p class="healthy">No problem was found with the gradient at this step.</p>` : nothing}
      ${infos.length === 0
        ? nothing
        : html`<details ?open=${infos.some((finding) => keyOf(finding) === this.chosen)}>
            <summary>${infos.length} ${SEVERITY.info.many}</summary>
            ${infos.map((finding) => this.#card(finding))}
          </details>`}
      ${this.#fit()} ${termsTable(this.diagnosis.terms)} ${this.#sentences("Ruled out", this.diagnosis.verdict.ruled_out)} ${this.#sentences("Not known", this.diagnosis.unverified)}
    `;
  }

  override updated(changed: PropertyValues<this>): void {
    this.#mustShow ||= changed.has("chosen");
    const card = this.#mustShow ? this.renderRoot.querySelector('article[aria-current="true"]') : null;
    if (card !== null) {
      this.#mustShow = false;
      card.scrollIntoView({block: "nearest"});
    }
    if (changed.has("selected")) {
      this.#showStop();
    }
  }

  /** Scrolls only the list of the path: a reader of the card is not moved away from it. */
  #showStop(): void {
    const stop = this.renderRoot.querySelector<HTMLElement>('.follow [aria-current="step"]');
    const list = stop?.closest("ol");
    if (stop == null || list == null) {
      return;
    }
    const [seen, whole] = [stop.getBoundingClientRect(), list.getBoundingClientRect()];
    list.scrollTop += Math.min(0, seen.top - whole.top) + Math.max(0, seen.bottom - whole.bottom);
    if (this.shadowRoot?.activeElement?.closest(".follow li") != null) {
      stop.focus({preventScroll: true});
    }
  }

  #section(severity: Severity, findings: readonly Finding[]): TemplateResult | typeof nothing {
    if (findings.length === 0) {
      return nothing;
    }
    return html`<section aria-label=${SEVERITY[severity].many}>
      <h2>${plural(findings.length, SEVERITY[severity].one)}</h2>
      ${findings.map((finding) => this.#card(finding))}
    </section>`;
  }

  #card(finding: Finding): TemplateResult {
    const {icon, one} = SEVERITY[finding.severity];
    const key = keyOf(finding);
    const [first, rest] = firstSentence(finding.message);
    const source = finding.source ?? mentionedIn(finding.message, this.sources);
    return html`<article class=${finding.severity} aria-current=${String(key === this.chosen)} @click=${() => this.#choose(finding)}>
      <button class="head" aria-label="Show in the graph: ${one}, ${first}">
        <span class="icon" aria-hidden="true">${icon}</span><span class="what">${prose(first)}</span>
      </button>
      ${rest === "" ? nothing : html`<p>${prose(capitalised(rest))}</p>`}
      ${source === null
        ? nothing
        : html`<div class="line">
            <span class="where" title=${source.file}>${fileName(source.file)}:${source.line}</span>
            ${this.#code(source)}
          </div>`}
      ${this.#evidence(finding)} ${finding.fix === "" ? nothing : this.#fix(finding)} ${this.#edits(finding)}
      ${key === this.chosen ? follow(this.stops, this.selected, (node) => this.#go(node)) : nothing}
      <div class="about" title=${finding.variables.join("\n")}>
        ${about(finding.variables)}
        <div class="foot">
          <span class="cause">${this.#cause(finding.cause)}${finding.op === null ? nothing : ` · ${finding.op.type}`}</span>${this.#elsewhere()}
        </div>
      </div>
    </article>`;
  }

  /** Links to a page with an example program, the reason and the fix. */
  #cause(cause: string): TemplateResult {
    const [words, page] = [cause.replaceAll("_", " "), this.pageOf(cause)];
    return page === null
      ? html`${words}`
      : html`<a href=${page} target="_blank" rel="noopener" title="What it is, an example program, and the fix" @click=${(event: Event) => event.stopPropagation()}>${words}</a>`;
  }

  /** A TensorBoard address cannot contain a step, so the text names it. */
  #elsewhere(): TemplateResult | typeof nothing {
    return this.timeSeries === null
      ? nothing
      : html`<a class="series" href=${this.timeSeries} target="_blank" rel="noopener" title="The scalars of this run in TensorBoard's Time Series: go to step ${this.step} there" @click=${(event: Event) => event.stopPropagation()}>Scalars at step ${this.step} ↗</a>`;
  }

  #code(source: SourceReport): TemplateResult {
    const lines = contextOf(this.sources, source);
    return block(
      lines.map(
        ({line, code, main, gap}) =>
          html`${gap ? html`<span class="gap" aria-hidden="true">⋮</span>` : nothing}<span class=${main ? "main" : "beside"}>${lines.length > 1 ? html`<i>${line}</i>` : nothing}${main ? coloured(code) : code}</span>`,
      ),
    );
  }

  /** What came out when the step ran once more with one thing changed. */
  #evidence({evidence}: Finding): TemplateResult | typeof nothing {
    return evidence.length === 0
      ? nothing
      : html`<div class="evidence">
          <span class="title">Tried in this step</span>
          ${evidence.map(({text}) => html`<p>${prose(text)}</p>`)}
        </div>`;
  }

  #fix(finding: Finding): TemplateResult {
    return html`<div class="fix">
      <span class="title">What to do</span>
      <button class="quiet" @click=${(event: Event) => this.#copy(event, finding)}>
        ${this.copied === keyOf(finding) ? "Copied" : "Copy"}
      </button>
      <div class="text">${instruction(finding.fix)}</div>
    </div>`;
  }

  #edits(finding: Finding): TemplateResult | typeof nothing {
    const {edit, tried, cost} = finding;
    if (edit === null) {
      return nothing;
    }
    const said = tried === null ? untriedInWords(finding) : triedInWords(tried);
    return html`${this.#edit(`edit ${keyOf(finding)}`, "The edit", edit, tried, [said, cost])} ${this.#alternatives(finding)}`;
  }

  /**
   * The removed and added lines; the copied patch also has the lines around them, for `git apply`. Then the result of
   * the edit, and its cost.
   */
  #edit(key: string, title: string, edit: Edit, tried: Tried | null, said: readonly string[]): TemplateResult {
    const {old, fresh} = shownLines(edit);
    return html`<div class="fix edit">
      <span class="title">${title}</span>
      <button class="quiet" title="Copy it as a patch for git apply" @click=${(event: Event) => this.#copyPatch(event, key, edit)}>
        ${this.copied === key ? "Copied" : "Copy patch"}
      </button>
      <div class="diff" role="group" aria-label="Edit of ${edit.file}, line ${edit.line}">
        <span class="where" title=${edit.file}>${fileName(edit.file)}:${edit.line}</span>
        ${diff(old, fresh)}
      </div>
      <p class="tried">${prose(said.filter((sentence) => sentence !== "").join(" "))}</p>
      ${tried === null || tried.trained === null ? nothing : courses(comparedBy(tried.trained))}
    </div>`;
  }

  #alternatives(finding: Finding): TemplateResult | typeof nothing {
    const {alternatives} = finding;
    return alternatives.length === 0
      ? nothing
      : html`<details class="alternatives" @click=${(event: Event) => event.stopPropagation()}>
          <summary>${alternatives.length === 1 ? "Another edit" : `${alternatives.length} other edits`}</summary>
          ${alternatives.map(({edit, cost, tried}, place) =>
            this.#edit(`edit ${place} ${keyOf(finding)}`, `Or: ${cost}`, edit, tried, [tried === null ? "" : triedInWords(tried)]),
          )}
        </details>`;
  }

  async #copyPatch(event: Event, key: string, edit: Edit): Promise<void> {
    event.stopPropagation();
    if (await copyText(patchOf(edit, this.passages))) {
      this.copied = key;
    }
  }

  #fit(): TemplateResult | typeof nothing {
    const fit = this.diagnosis?.fit ?? null;
    const compared = fit === null ? null : comparedIn(fit);
    if (fit === null || compared === null) {
      return nothing;
    }
    return html`<details>
      <summary>The batch of step ${fit.step} alone, for ${compared.steps} steps, rolled back</summary>
      ${courses(compared)}
    </details>`;
  }

  #sentences(label: string, sentences: readonly string[]): TemplateResult | typeof nothing {
    if (sentences.length === 0) {
      return nothing;
    }
    return html`<details>
      <summary>${label}: ${sentences.length}</summary>
      <ul>
        ${sentences.map((sentence) => html`<li>${sentence}</li>`)}
      </ul>
    </details>`;
  }

  #go(node: number): void {
    this.dispatchEvent(new CustomEvent<number>("gf-stop", {detail: node}));
  }

  #choose(finding: Finding): void {
    this.dispatchEvent(new CustomEvent<Finding>("gf-finding", {detail: finding}));
  }

  async #copy(event: Event, finding: Finding): Promise<void> {
    event.stopPropagation();
    if (await copyText(codeIn(finding.fix))) {
      this.copied = keyOf(finding);
    }
  }
}

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function about(variables: readonly string[]): string {
  if (variables.length === 0) {
    return "Not about a single variable";
  }
  return variables.length === 1 ? variables[0] : `${variables[0]} and ${plural(variables.length - 1, "more variable")}`;
}

customElements.define("gf-findings", FindingsPanel);
