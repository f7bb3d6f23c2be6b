/** The list of findings: cards, worst first; what is only explained is folded away. */

import {css, html, LitElement, nothing, type TemplateResult} from "lit";
import {inOrder, keyOf} from "../model/findings.ts";
import {fileName, plural} from "../model/format.ts";
import {SEVERITY} from "../model/words.ts";
import type {Diagnosis, Finding, Severity} from "../record.ts";
import {firstSentence, prose} from "./prose.ts";
import {shared} from "./styles.ts";

export class FindingsPanel extends LitElement {
  static override properties = {
    diagnosis: {attribute: false},
    chosen: {attribute: false},
    copied: {state: true},
  };
  declare diagnosis: Diagnosis | null;
  /** Key of the finding whose path is lit. */
  declare chosen: string | null;
  declare copied: string;

  static override styles = [
    shared,
    css`
      :host {
        display: block;
        padding: 4px 14px 20px;
      }
      h2 {
        margin: 14px 2px 8px;
        color: var(--gf-muted);
        font-size: 12px;
      }
      article {
        position: relative;
        border: 1px solid var(--gf-line);
        border-left: 3px solid var(--tone);
        border-radius: 8px;
        background: var(--gf-page);
        padding: 10px 12px 11px;
        margin-bottom: 10px;
        cursor: pointer;
      }
      article:hover {
        border-color: var(--gf-nodeLine);
        border-left-color: var(--tone);
      }
      article[aria-current="true"] {
        border-color: var(--gf-accent);
        border-left-color: var(--tone);
        box-shadow: 0 0 0 1px var(--gf-accent);
      }
      .error {
        --tone: var(--gf-bad);
      }
      .warning {
        --tone: var(--gf-warn);
      }
      .info {
        --tone: var(--gf-none);
      }
      .head {
        display: flex;
        align-items: baseline;
        gap: 7px;
        width: 100%;
        border: 0;
        padding: 0;
        background: none !important;
        text-align: left;
        font-weight: 600;
        line-height: 1.4;
      }
      .icon {
        color: var(--tone);
        font-weight: 700;
        flex: none;
      }
      .what {
        overflow-wrap: anywhere;
      }
      p {
        margin: 6px 0 0;
        overflow-wrap: anywhere;
      }
      .line {
        margin-top: 9px;
        border-radius: 6px;
        background: var(--gf-raised);
        padding: 6px 9px;
      }
      .line .where {
        display: block;
        color: var(--gf-muted);
        font-size: 11.5px;
      }
      .line code {
        white-space: pre-wrap;
        overflow-wrap: anywhere;
      }
      .fix {
        display: grid;
        grid-template-columns: 1fr auto;
        align-items: start;
        gap: 4px 6px;
        margin-top: 9px;
      }
      .fix .title {
        color: var(--gf-good);
        font-size: 12px;
        font-weight: 600;
        align-self: center;
      }
      .fix code {
        grid-column: 1 / -1;
        border-left: 2px solid var(--gf-good);
        padding-left: 9px;
        white-space: pre-wrap;
        overflow-wrap: anywhere;
      }
      .fix button {
        font-size: 11.5px;
        padding: 1px 7px;
      }
      .cause {
        display: block;
        margin-top: 1px;
        font-size: 11.5px;
      }
      .about {
        margin-top: 9px;
        color: var(--gf-muted);
        font-size: 12px;
        overflow-wrap: anywhere;
      }
      details > summary {
        cursor: pointer;
        margin: 14px 2px 8px;
        color: var(--gf-muted);
        font-size: 12px;
        font-weight: 600;
      }
      ul {
        margin: 4px 0 0;
        padding-left: 18px;
        color: var(--gf-muted);
        font-size: 12px;
      }
      .healthy {
        margin-top: 14px;
        color: var(--gf-muted);
      }
    `,
  ];

  constructor() {
    super();
    this.diagnosis = null;
    this.chosen = null;
    this.copied = "";
  }

  override render(): TemplateResult {
    if (this.diagnosis === null) {
      return html`<p class="healthy">Reading the findings …</p>`;
    }
    const findings = inOrder(this.diagnosis.findings);
    const of = (severity: Severity): Finding[] => findings.filter((finding) => finding.severity === severity);
    const infos = of("info");
    return html`
      ${this.#section("error", of("error"))} ${this.#section("warning", of("warning"))}
      ${findings.length === infos.length ? html`<p class="healthy">Nothing is wrong with the gradient at this step.</p>` : nothing}
      ${infos.length === 0
        ? nothing
        : html`<details>
            <summary>${infos.length} ${SEVERITY.info.many}</summary>
            ${infos.map((finding) => this.#card(finding))}
          </details>`}
      ${this.#unverified(this.diagnosis.unverified)}
    `;
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
    return html`<article class=${finding.severity} aria-current=${String(key === this.chosen)} @click=${() => this.#choose(finding)}>
      <button class="head" aria-label="Show in the graph: ${one}, ${first}">
        <span class="icon" aria-hidden="true">${icon}</span><span class="what">${prose(first)}</span>
      </button>
      ${rest === "" ? nothing : html`<p>${prose(capitalised(rest))}</p>`}
      ${finding.source === null
        ? nothing
        : html`<div class="line">
            <span class="where" title=${finding.source.file}>${fileName(finding.source.file)}:${finding.source.line}</span>
            <code>${finding.source.code}</code>
          </div>`}
      ${finding.fix === "" ? nothing : this.#fix(finding)}
      <div class="about" title=${finding.variables.join("\n")}>
        ${about(finding.variables)}<span class="cause">${[finding.cause.replaceAll("_", " "), finding.op?.type ?? ""].filter(Boolean).join(" · ")}</span>
      </div>
    </article>`;
  }

  #fix(finding: Finding): TemplateResult {
    return html`<div class="fix">
      <span class="title">Write instead</span>
      <button class="quiet" @click=${(event: Event) => this.#copy(event, finding)}>
        ${this.copied === keyOf(finding) ? "Copied" : "Copy"}
      </button>
      <code>${finding.fix}</code>
    </div>`;
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
    if (await copyText(finding.fix)) {
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

/** The clipboard is there in secure contexts only; elsewhere a selection is copied. */
async function copyText(text: string): Promise<boolean> {
  if (navigator.clipboard !== undefined) {
    return navigator.clipboard.writeText(text).then(() => true, () => false);
  }
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}

customElements.define("gf-findings", FindingsPanel);
