/** The panel of the selected item: what it is, its statistics at the step and over all steps, its line of code. */

import {html, LitElement, nothing, type PropertyValues, type TemplateResult} from "lit";
import type {Source as DataSource} from "../api/source.ts";
import type {Overview} from "../api/routes.ts";
import {LIGHT, type Palette} from "../draw/palette.ts";
import {detailsOf, type Details, type InputDetail, type TensorDetail} from "../model/details.ts";
import {fileName, formatNumber} from "../model/format.ts";
import {nothingFinite, type Answers, type Statistics, type StepNumbers} from "../model/gradients.ts";
import type {Tree} from "../model/tree.ts";
import {gradientSeries, rangeSeries, weightSeries, type Series} from "../model/series.ts";
import {STATUS} from "../model/words.ts";
import type {Source, Status} from "../record.ts";
import "./chart.ts";
import {block, codeStyles, line} from "./code.ts";
import {detailsStyles} from "./details_styles.ts";
import {breakable} from "./prose.ts";
import {shared} from "./styles.ts";

/** Lists in the panel are no longer than this. */
const FEW = 8;

export class DetailsPanel extends LitElement {
  static override properties = {
    source: {attribute: false},
    overview: {attribute: false},
    tree: {attribute: false},
    item: {attribute: false},
    answers: {attribute: false},
    numbers: {attribute: false},
    status: {attribute: false},
    step: {attribute: false},
    palette: {attribute: false},
    gradientSeries: {state: true},
    weightSeries: {state: true},
    rangeSeries: {state: true},
    problem: {state: true},
  };
  declare source: DataSource | null;
  declare overview: Overview | null;
  declare tree: Tree | null;
  declare item: number;
  declare answers: Answers | null;
  declare numbers: StepNumbers | null;
  /** For the selected variable. */
  declare status: Status | null;
  declare step: number;
  declare palette: Palette;
  declare gradientSeries: readonly Series[];
  declare weightSeries: readonly Series[];
  declare rangeSeries: readonly Series[];
  declare problem: string;

  #details: Details | null = null;
  #asked = "";

  static override styles = [shared, codeStyles, detailsStyles];

  constructor() {
    super();
    this.source = null;
    this.overview = null;
    this.tree = null;
    this.item = -1;
    this.answers = null;
    this.numbers = null;
    this.status = null;
    this.step = -1;
    this.palette = LIGHT;
    this.gradientSeries = [];
    this.weightSeries = [];
    this.rangeSeries = [];
    this.problem = "";
  }

  override willUpdate(): void {
    const known = this.tree !== null && this.answers !== null && this.item >= 0;
    this.#details = known ? detailsOf(this.tree as Tree, this.item, this.answers as Answers) : null;
  }

  override render(): TemplateResult | typeof nothing {
    const details = this.#details;
    if (details === null) {
      return nothing;
    }
    return html`
      <header>
        <div>
          <div class="kind">${details.kind}</div>
          <div class="title">${details.title}</div>
          ${details.name === details.title ? nothing : html`<div class="name">${breakable(details.name)}</div>`}
          ${this.#status()}
        </div>
        <button class="quiet" aria-label="Close the details" title="Close (Escape)" @click=${() => this.#go(-1)}>✕</button>
      </header>
      <h2>Facts</h2>
      <dl>
        ${details.facts.map(([term, text]) => html`<dt>${term}</dt><dd>${text}</dd>`)}
      </dl>
      ${details.source === null ? nothing : this.#code(details.source)} ${details.tensors.map((tensor) => this.#gradient(tensor))}
      ${this.#ranges(details)} ${this.#weights(details)} ${this.#charts()} ${this.#inputs(details.inputs)}
      ${this.#list("Variables inside", details.members)} ${this.#list("Used by", details.users)}
    `;
  }

  override updated(_: PropertyValues<this>): void {
    void this.#loadSeries();
  }

  #status(): TemplateResult | typeof nothing {
    if (this.status === null) {
      return nothing;
    }
    const {icon, word, tone} = STATUS[this.status];
    return html`<span class="status ${tone}"><span aria-hidden="true">${icon}</span> ${word}</span>`;
  }

  #code(source: Source): TemplateResult {
    return html`<h2>Line of code</h2>
      <div class="where" title=${source.file}>${fileName(source.file)}:${source.line} in ${source.function}</div>
      ${source.code === "" ? nothing : html`<div class="code">${block([line(source.code)])}</div>`}`;
  }

  #gradient({name, answer, words}: TensorDetail): TemplateResult {
    const title = `Gradient${name === "" ? "" : `, ${name.toLowerCase()}`}${this.step < 0 ? "" : ` at step ${this.step}`}`;
    const statistics = this.numbers?.gradient(answer.row) ?? null;
    if (statistics === null || answer.outcome !== "value") {
      return html`<h2>${title}</h2>
        <div>${words}</div>`;
    }
    if (nothingFinite(statistics)) {
      return html`<h2>${title}</h2>
        ${this.#notFinite(statistics)}
        <div class="muted">No other element.</div>`;
    }
    const broken = this.#notFinite(statistics);
    return html`<h2>${title}</h2>
      ${broken} ${broken === nothing ? nothing : html`<div class="muted">All other elements:</div>`}
      <dl>
        <dt>Norm</dt><dd>${formatNumber(statistics.norm)}</dd>
        <dt>Max |g|</dt><dd>${formatNumber(statistics.max_abs)}</dd>
        <dt>Mean |g|</dt><dd>${formatNumber(statistics.mean_abs)}</dd>
        <dt>Exact zeros</dt><dd>${percentage(statistics.zero_fraction)}</dd>
      </dl>`;
  }

  /** First, because the statistics after it cover the other elements. */
  #notFinite({nan_count, inf_count}: Statistics): TemplateResult | typeof nothing {
    return nan_count > 0 || inf_count > 0
      ? html`<dl>
            ${nan_count > 0 ? html`<dt>NaN</dt><dd>${formatNumber(nan_count)}</dd>` : nothing}
            ${inf_count > 0 ? html`<dt>Infinite</dt><dd>${formatNumber(inf_count)}</dd>` : nothing}
          </dl>`
      : nothing;
  }

  #ranges({ranges}: Details): TemplateResult | typeof nothing {
    if (ranges.length === 0 || this.numbers === null) {
      return nothing;
    }
    const [smallest, largest] = this.numbers.range(ranges[0]);
    return html`<h2>Input range at step ${this.step}</h2>
      <dl>
        <dt>Smallest</dt><dd>${formatNumber(smallest)}</dd>
        <dt>Largest</dt><dd>${formatNumber(largest)}</dd>
      </dl>`;
  }

  #weights({variable}: Details): TemplateResult | typeof nothing {
    if (variable < 0 || this.numbers === null) {
      return nothing;
    }
    const weight = this.numbers.weightNorm(variable);
    const update = this.numbers.updateNorm(variable);
    return html`<h2>Value</h2>
      ${this.numbers.isFinite(variable) ? nothing : html`<div>NaN or infinite after this step. All other elements:</div>`}
      <dl>
        <dt>Weight norm</dt><dd>${formatNumber(weight)}</dd>
        <dt>Update norm</dt><dd>${formatNumber(update)}</dd>
        <dt>Update / weight</dt><dd>${formatNumber(weight > 0 ? update / weight : NaN)}</dd>
      </dl>`;
  }

  #charts(): TemplateResult | typeof nothing {
    if (this.problem !== "") {
      return html`<h2>Over the steps</h2><div class="problem">${this.problem}</div>`;
    }
    const chart = (title: string, series: readonly Series[]) =>
      series.length === 0
        ? nothing
        : html`<h2>${title}</h2>
            <gf-chart .steps=${this.overview?.steps ?? []} .series=${series} .at=${this.step} .palette=${this.palette} .label=${title}></gf-chart>`;
    return html`${chart("Input range over the steps", this.rangeSeries)} ${chart("Gradient over the steps", this.gradientSeries)} ${chart("Weight and update over the steps", this.weightSeries)}`;
  }

  #inputs(inputs: readonly InputDetail[]): TemplateResult | typeof nothing {
    if (inputs.length === 0) {
      return nothing;
    }
    return html`<h2>Inputs</h2>
      <ul>
        ${inputs.map(
          ({node, name, blocked, words}) => html`<li class=${blocked ? "blocked" : ""}>
            ${node < 0 ? breakable(name) : this.#link(node, name)}
            <div class="words"><span aria-hidden="true">${blocked ? "⊘ " : ""}</span>${words}</div>
          </li>`,
        )}
      </ul>`;
  }

  #list(title: string, items: readonly number[]): TemplateResult | typeof nothing {
    if (items.length === 0) {
      return nothing;
    }
    const nodes = this.tree?.graph.nodes ?? [];
    return html`<h2>${title}</h2>
      <ul>
        ${items.slice(0, FEW).map((item) => html`<li>${this.#link(item, nodes[item].name)}</li>`)}
        ${items.length > FEW ? html`<li class="muted">and ${items.length - FEW} more</li>` : nothing}
      </ul>`;
  }

  #link(node: number, text: string): TemplateResult {
    return html`<button class="link" @click=${() => this.#go(node)}>${breakable(text)}</button>`;
  }

  #go(item: number): void {
    this.dispatchEvent(new CustomEvent<number>("gf-go", {detail: item}));
  }

  /** Requests the series of the first gradient, and of the weights, once for each item and number of steps. */
  async #loadSeries(): Promise<void> {
    const row = this.#details?.tensors[0]?.answer.row ?? -1;
    const variable = this.#details?.variable ?? -1;
    const range = this.#details?.ranges[0] ?? -1;
    const run = this.overview?.run ?? "";
    const wanted = `${run} ${this.overview?.session.id} ${row} ${variable} ${range} ${this.overview?.steps.length}`;
    if (wanted === this.#asked || this.source === null) {
      return;
    }
    this.#asked = wanted;
    try {
      const [gradients, weights, ranges] = await Promise.all([
        row < 0 ? null : this.source.series(run, row),
        variable < 0 ? null : this.source.weights(run, variable),
        range < 0 ? null : this.source.series(run, range),
      ]);
      if (wanted === this.#asked) {
        this.problem = "";
        this.gradientSeries = gradients === null ? [] : gradientSeries(gradients);
        this.weightSeries = weights === null ? [] : weightSeries(weights);
        this.rangeSeries = ranges === null ? [] : rangeSeries(ranges);
      }
    } catch (error) {
      this.problem = error instanceof Error ? error.message : String(error);
      // The next refresh requests it again.
      this.#asked = this.#asked === wanted ? "" : this.#asked;
    }
  }
}

function percentage(fraction: number): string {
  return Number.isNaN(fraction) ? "–" : `${formatNumber(100 * fraction)}\u202f%`;
}

customElements.define("gf-details", DetailsPanel);
