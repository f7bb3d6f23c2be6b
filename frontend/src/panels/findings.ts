/** The list of findings: cards, worst first; what is only explained is folded away. */

import {html, LitElement, nothing, type PropertyValues, type TemplateResult} from "lit";
import {copyText} from "../host/clipboard.ts";
import {contextOf, mentionedIn} from "../model/context.ts";
import {inOrder, keyOf} from "../model/findings.ts";
import {fileName, plural} from "../model/format.ts";
import {changedLines, patchOf, triedInWords} from "../model/patch.ts";
import {SEVERITY} from "../model/words.ts";
import type {Diagnosis, Edit, Finding, Passage, Severity, Source, SourceReport} from "../record.ts";
import {findingsStyles} from "./findings_styles.ts";
import {codeIn, firstSentence, prose} from "./prose.ts";
import {shared} from "./styles.ts";
import {termsStyles, termsTable} from "./terms.ts";

export class FindingsPanel extends LitElement {
  static override properties = {
    diagnosis: {attribute: false},
    sources: {attribute: false},
    passages: {attribute: false},
    chosen: {attribute: false},
    pageOf: {attribute: false},
    copied: {state: true},
  };
  declare diagnosis: Diagnosis | null;
  /** Lines of code that the trace knows. */
  declare sources: readonly Source[];
  /** Parts of the user's files that the trace knows. */
  declare passages: readonly Passage[];
  /** Key of the finding whose path is lit. */
  declare chosen: string | null;
  /** Where the page about a cause is; null if there is none. */
  declare pageOf: (cause: string) => string | null;
  declare copied: string;

  /** Whether the chosen card is to be brought into view, once it is there. */
  #mustShow = false;

  static override styles = [shared, findingsStyles, termsStyles];

  constructor() {
    super();
    this.diagnosis = null;
    this.sources = [];
    this.passages = [];
    this.chosen = null;
    this.pageOf = () => null;
    this.copied = "";
  }

  override render(): TemplateResult {
    if (this.diagnosis === null) {
      return html`<p class="healthy">Judging the gradient …</p>`;
    }
    const findings = inOrder(this.diagnosis.findings);
    const of = (severity: Severity): Finding[] => findings.filter((finding) => finding.severity === severity);
    const infos = of("info");
    return html`
      ${this.#section("error", of("error"))} ${this.#section("warning", of("warning"))}
      ${findings.length === infos.length ? html`<p class="healthy">Nothing is wrong with the gradient at this step.</p>` : nothing}
      ${infos.length === 0
        ? nothing
        : html`<details ?open=${infos.some((finding) => keyOf(finding) === this.chosen)}>
            <summary>${infos.length} ${SEVERITY.info.many}</summary>
            ${infos.map((finding) => this.#card(finding))}
          </details>`}
      ${termsTable(this.diagnosis.terms)} ${this.#unverified(this.diagnosis.unverified)}
    `;
  }

  override updated(changed: PropertyValues<this>): void {
    this.#mustShow ||= changed.has("chosen");
    const card = this.#mustShow ? this.renderRoot.querySelector('article[aria-current="true"]') : null;
    if (card !== null) {
      this.#mustShow = false;
      card.scrollIntoView({block: "nearest"});
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
      ${finding.fix === "" ? nothing : this.#fix(finding)} ${finding.edit === null ? nothing : this.#edit(finding, finding.edit)}
      ${finding.tried === null ? nothing : html`<p class="tried">${prose(triedInWords(finding.tried))}</p>`}
      <div class="about" title=${finding.variables.join("\n")}>
        ${about(finding.variables)}<span class="cause">${this.#cause(finding.cause)}${finding.op === null ? nothing : ` · ${finding.op.type}`}</span>
      </div>
    </article>`;
  }

  /** Leads to a page with a program that has it, the reason and the repair. */
  #cause(cause: string): TemplateResult {
    const [words, page] = [cause.replaceAll("_", " "), this.pageOf(cause)];
    return page === null
      ? html`${words}`
      : html`<a href=${page} target="_blank" rel="noopener" title="What it is, a program that has it, and the repair" @click=${(event: Event) => event.stopPropagation()}>${words}</a>`;
  }

  #code(source: SourceReport): TemplateResult {
    const lines = contextOf(this.sources, source);
    return html`<code>${lines.map(
      ({line, code, main, gap}) => html`${gap ? html`<span class="gap" aria-hidden="true">⋮</span>` : nothing}<span class=${main ? "main" : "beside"}><i>${lines.length > 1 ? line : nothing}</i>${code}</span>`,
    )}</code>`;
  }

  #fix(finding: Finding): TemplateResult {
    return html`<div class="fix">
      <span class="title">What to do</span>
      <button class="quiet" @click=${(event: Event) => this.#copy(event, finding)}>
        ${this.copied === keyOf(finding) ? "Copied" : "Copy"}
      </button>
      <div class="text">${prose(finding.fix)}</div>
    </div>`;
  }

  /** The lines that go and come; what is copied has those around them too, as `git apply` wants it. */
  #edit(finding: Finding, edit: Edit): TemplateResult {
    const {old, fresh} = changedLines(edit);
    const key = `edit ${keyOf(finding)}`;
    return html`<div class="fix edit">
      <span class="title">The edit</span>
      <button class="quiet" title="Copy it as a patch, for git apply" @click=${(event: Event) => this.#copyPatch(event, key, edit)}>
        ${this.copied === key ? "Copied" : "Copy patch"}
      </button>
      <div class="diff" role="group" aria-label="Edit of ${edit.file}, line ${edit.line}">
        <span class="where" title=${edit.file}>${fileName(edit.file)}:${edit.line}</span>
        <code>${old.map((line) => html`<del><i>−</i>${line}
</del>`)}${fresh.map((line) => html`<ins><i>+</i>${line}
</ins>`)}</code>
      </div>
    </div>`;
  }

  async #copyPatch(event: Event, key: string, edit: Edit): Promise<void> {
    event.stopPropagation();
    if (await copyText(patchOf(edit, this.passages))) {
      this.copied = key;
    }
  }

  #unverified(sentences: readonly string[]): TemplateResult | typeof nothing {
    if (sentences.length === 0) {
      return nothing;
    }
    return html`<details>
      <summary>Could not be known: ${sentences.length}</summary>
      <ul>
        ${sentences.map((sentence) => html`<li>${sentence}</li>`)}
      </ul>
    </details>`;
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
    return "About no variable in particular";
  }
  return variables.length === 1 ? variables[0] : `${variables[0]} and ${plural(variables.length - 1, "more variable")}`;
}

customElements.define("gf-findings", FindingsPanel);
