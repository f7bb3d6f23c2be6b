/** Charts of several variables, in one run or two, on a logarithmic axis. */

import {css, html, LitElement, nothing, type PropertyValues, type TemplateResult} from "lit";
import type {Source} from "../api/source.ts";
import {LIGHT, lineColours, type Palette} from "../draw/palette.ts";
import {formatCount} from "../model/format.ts";
import {Heat, quantitiesOf, type Quantity} from "../model/heat.ts";
import {unnumbered} from "../model/compare.ts";
import {chartOf, spread, trackOf, type Series, type Track} from "../model/series.ts";
import type {Trace} from "../record.ts";
import type {Drawn} from "../state/derived.ts";
import {chartPanelStyles} from "./chart.ts";
import {given} from "./given.ts";
import {shared} from "./styles.ts";

const COLUMNS = 512;
/** More lines cannot be followed. */
const MOST = 12;

export class SeriesPanel extends LitElement {
  static override properties = {
    ...given("source", "runs", "names", "step", "palette"),
    quantity: {state: true},
    heats: {state: true},
    problem: {state: true},
  };
  declare source: Source | null;
  /** The shown run, then the compared one. */
  declare runs: readonly Drawn[];
  /** Names of variables; if there are none, all variables are summarised. */
  declare names: readonly string[];
  declare step: number;
  declare palette: Palette;
  declare quantity: Quantity;
  declare heats: readonly Heat[];
  declare problem: string;

  #asked = "";
  #loaded = "";
  #chart: {steps: readonly number[]; series: readonly Series[]} = {steps: [], series: []};

  static override styles = [
    shared,
    chartPanelStyles,
    css`
      :host {
        display: flex;
        flex: 1;
        flex-direction: column;
        min-height: 0;
        padding: 0 14px 6px;
      }
      .chip {
        display: flex;
        align-items: center;
        gap: 5px;
        padding: 1px 7px;
        border-radius: 10px;
        font-size: 12px;
      }
      .chip i {
        width: 10px;
        height: 10px;
        border-radius: 5px;
      }
    `,
  ];

  constructor() {
    super();
    this.source = null;
    [this.runs, this.names, this.heats] = [[], [], []];
    [this.step, this.quantity, this.problem] = [-1, "gradient", ""];
    this.palette = LIGHT;
  }

  override willUpdate(changed: PropertyValues<this>): void {
    if (["heats", "names", "runs"].some((name) => changed.has(name as keyof SeriesPanel))) {
      this.#chart = this.#loaded === this.#wanted && this.heats.length === this.runs.length ? chartOf(this.#tracks()) : {steps: [], series: []};
    }
  }

  override render(): TemplateResult {
    const colours = lineColours(this.palette);
    const all = this.runs[0]?.trace.variables ?? [];
    return html`
      <div class="bar">
        <select aria-label="Quantity" @change=${(event: Event) => (this.quantity = (event.target as HTMLSelectElement).value as Quantity)}>
          ${quantitiesOf(this.runs[0]?.trace).map(({quantity, title}) => html`<option value=${quantity} ?selected=${quantity === this.quantity}>${title}</option>`)}
        </select>
        <input type="search" list="variables" placeholder="Add a variable" aria-label="Add a variable" @change=${this.#add} />
        <datalist id="variables">${all.map(({name}) => html`<option value=${name}></option>`)}</datalist>
        ${this.names.map(
          (name, index) => html`<button class="chip" title="Remove ${name}" aria-label="Remove ${name}" @click=${() => this.#tell(this.names.filter((each) => each !== name))}>
            <i style="background:${colours[index % colours.length]}"></i>${name} <span aria-hidden="true">✕</span>
          </button>`,
        )}
        ${this.names.length === 0 ? html`<span class="muted">${all.length === 1 ? "The only variable" : `All ${formatCount(all.length)} variables; select one in the graph or the table, or add some here.`}</span>` : nothing}
        ${this.runs.length > 1 ? html`<span class="muted">– – – ${this.runs[1].overview.name}</span>` : nothing}
      </div>
      ${this.problem === "" ? nothing : html`<div class="problem" role="alert">${this.problem}</div>`}
      <gf-chart fills .fills=${true} .steps=${this.#chart.steps} .series=${this.#chart.series} .at=${this.step} .palette=${this.palette} .label=${"Series over the steps"}></gf-chart>
    `;
  }

  override updated(): void {
    void this.#load();
  }

  get #wanted(): string {
    const runs = this.runs.map(({overview, trace, target}) => [overview.run, overview.session.id, trace.index, target, overview.steps.length].join(" "));
    return [this.quantity, ...runs].join("\n");
  }

  #tracks(): readonly Track[] {
    return this.runs.flatMap(({overview, trace}, run): readonly Track[] => {
      const heat = this.heats[run];
      const suffix = this.runs.length > 1 ? ` (${overview.name})` : "";
      if (this.names.length === 0) {
        return spread(heat, trace.variables.map((_, row) => row), overview.steps, suffix, run > 0);
      }
      return this.names.slice(0, MOST).flatMap((name, colour) => {
        const row = rowNamed(trace, name);
        return row < 0 ? [] : [trackOf(heat, row, overview.steps, `${name}${suffix}`, colour, run > 0)];
      });
    });
  }

  readonly #add = (event: Event): void => {
    const field = event.target as HTMLInputElement;
    if (this.runs[0]?.trace.variables.some(({name}) => name === field.value)) {
      this.#tell([...new Set([...this.names, field.value])]);
      field.value = "";
    }
  };

  #tell(names: readonly string[]): void {
    this.dispatchEvent(new CustomEvent<readonly string[]>("gf-charted", {detail: names}));
  }

  async #load(): Promise<void> {
    const {source, runs, quantity} = this;
    const wanted = this.#wanted;
    if (source === null || runs.length === 0 || wanted === this.#asked) {
      return;
    }
    this.#asked = wanted;
    try {
      const heats = await Promise.all(
        runs.map(async ({overview, trace, target}) => {
          const values = await source.heat(overview.run, trace.index, target, quantity, COLUMNS);
          return new Heat(values, trace.variables.length, overview.steps.length);
        }),
      );
      if (wanted === this.#asked) {
        [this.problem, this.#loaded, this.heats] = ["", wanted, heats];
      }
    } catch (error) {
      this.problem = error instanceof Error ? error.message : String(error);
      // The next refresh requests it again.
      this.#asked = this.#asked === wanted ? "" : this.#asked;
    }
  }
}

/** The variable with a name, or with a name that differs only by numbers; -1 if there is none. */
function rowNamed({variables}: Trace, name: string): number {
  const exact = variables.findIndex((variable) => variable.name === name);
  return exact >= 0 ? exact : variables.findIndex((variable) => unnumbered(variable.name) === unnumbered(name));
}

customElements.define("gf-series", SeriesPanel);
