/** The terms of the loss: which layer each trains at this step, and their shares over the steps. */

import {css, html, LitElement, nothing, type TemplateResult} from "lit";
import type {Source} from "../api/source.ts";
import type {Overview} from "../api/routes.ts";
import {LIGHT, type Palette} from "../draw/palette.ts";
import {layersReached, stepsOf, TERM_QUANTITIES, termSeries, type TermQuantity} from "../model/term_series.ts";
import {termNamed, termsOf} from "../model/term_view.ts";
import type {TermReport, Trace} from "../record.ts";
import {chartPanelStyles} from "./chart.ts";
import {given} from "./given.ts";
import type {Scope} from "./scope.ts";
import {shared} from "./styles.ts";
import {termsStyles, termsTable} from "./terms.ts";

const COLUMNS = 512;
const ALL = "";

/** Connects the panel to the page's state. */
export function termsTab(scope: Scope): TemplateResult {
  const {store, derived, view, palette, ask} = scope;
  const {overview, trace, target} = store.state;
  if (trace === null || overview === null || termsOf(trace, target).length === 0) {
    return html`<p class="unlisted">${NOT_MEASURED}</p>`;
  }
  return html`<gf-terms
    .source=${store.source}
    .overview=${overview}
    .trace=${trace}
    .target=${target}
    .terms=${(derived.diagnosis?.terms ?? []).filter((term) => term.target === target)}
    .chosen=${view.term}
    .step=${store.step}
    .palette=${palette}
    @gf-term=${({detail}: CustomEvent<string>) => ask.look({term: detail === view.term ? "" : detail})}
  ></gf-terms>`;
}

const NOT_MEASURED =
  "No terms: this loss is not a sum of several terms, or the run was recorded without terms=True. With terms=True, recorded steps also measure the gradient of each term.";

export class TermsPanel extends LitElement {
  static override properties = {
    ...given("source", "overview", "trace", "target", "terms", "chosen", "step", "palette"),
    quantity: {state: true},
    layer: {state: true},
    numbers: {state: true},
    problem: {state: true},
  };
  declare source: Source | null;
  declare overview: Overview | null;
  declare trace: Trace | null;
  declare target: number;
  /** Of the shown step. */
  declare terms: readonly TermReport[];
  /** Name of the term that the graph shows; empty for none. */
  declare chosen: string;
  declare step: number;
  declare palette: Palette;
  declare quantity: TermQuantity;
  /** Name of the layer in the chart; empty for all of them together. */
  declare layer: string;
  declare numbers: Float32Array | null;
  declare problem: string;

  #asked = "";

  static override styles = [
    shared,
    chartPanelStyles,
    termsStyles,
    css`
      :host {
        display: flex;
        flex: 1;
        gap: 18px;
        min-height: 0;
        padding: 0 14px 6px;
      }
      .matrix {
        flex: 0 1 auto;
        min-width: 200px;
        max-width: 55%;
        overflow: auto;
      }
      .matrix .terms {
        margin: 0;
      }
      .chart {
        display: flex;
        flex: 1 1 340px;
        flex-direction: column;
        min-width: 0;
      }
    `,
  ];

  constructor() {
    super();
    [this.source, this.overview, this.trace, this.numbers] = [null, null, null, null];
    [this.target, this.step, this.terms] = [-1, -1, []];
    [this.chosen, this.layer, this.problem, this.quantity] = ["", ALL, "", "share"];
    this.palette = LIGHT;
  }

  override render(): TemplateResult | typeof nothing {
    const {trace, overview} = this;
    if (trace === null || overview === null) {
      return nothing;
    }
    const layers = layersReached(trace, this.target);
    const layer = layers.includes(this.layer) ? this.layer : ALL;
    const width = trace.terms.length + trace.term_gradients.length;
    const known = this.numbers !== null && width > 0 ? this.numbers : new Float32Array();
    const series = termSeries(trace, this.target, known, this.quantity, layer === ALL ? null : layer);
    return html`
      <div class="matrix" tabindex="0" role="region" aria-label="Terms by layers">
        ${termsTable(this.terms, {chosen: this.chosen, layer, ownName: (name) => ownName(trace, this.target, name), choose: (name) => this.#tell(name), show: (name) => (this.layer = name === this.layer ? ALL : name)})}
      </div>
      <div class="chart">
        <div class="bar">
          <select aria-label="Quantity" @change=${(event: Event) => (this.quantity = (event.target as HTMLSelectElement).value as TermQuantity)}>
            ${TERM_QUANTITIES.map(({quantity, title}) => html`<option value=${quantity} ?selected=${quantity === this.quantity}>${title}</option>`)}
          </select>
          ${this.quantity === "value" ? nothing : this.#layers(layers, layer)}
        </div>
        ${this.problem === "" ? nothing : html`<div class="problem" role="alert">${this.problem}</div>`}
        <gf-chart .fills=${true} .steps=${stepsOf(known.length / Math.max(1, width), overview.steps)} .series=${series} .at=${this.step} .palette=${this.palette} .label=${"Terms over the steps"}></gf-chart>
      </div>
    `;
  }

  override updated(): void {
    void this.#load();
  }

  #layers(layers: readonly string[], chosen: string): TemplateResult {
    return html`<select aria-label="Layer" @change=${(event: Event) => (this.layer = (event.target as HTMLSelectElement).value)}>
      <option value=${ALL} ?selected=${chosen === ALL}>of all layers</option>
      ${layers.map((layer) => html`<option value=${layer} ?selected=${layer === chosen}>of ${layer}</option>`)}
    </select>`;
  }

  #tell(name: string): void {
    this.dispatchEvent(new CustomEvent<string>("gf-term", {detail: name}));
  }

  async #load(): Promise<void> {
    const {source, overview, trace} = this;
    if (source === null || overview === null || trace === null) {
      return;
    }
    const wanted = [overview.run, overview.session.id, trace.index, overview.steps.length].join(" ");
    if (wanted === this.#asked) {
      return;
    }
    this.#asked = wanted;
    try {
      const numbers = await source.terms(overview.run, trace.index, COLUMNS);
      if (wanted === this.#asked) {
        [this.problem, this.numbers] = ["", numbers];
      }
    } catch (error) {
      this.problem = error instanceof Error ? error.message : String(error);
      // The next refresh requests it again.
      this.#asked = this.#asked === wanted ? "" : this.#asked;
    }
  }
}

function ownName(trace: Trace, target: number, name: string): string {
  const before = `${trace.targets[target]?.name}/`;
  return termNamed(trace, target, name) < 0 && name.startsWith(before) ? name.slice(before.length) : name;
}

customElements.define("gf-terms", TermsPanel);
