/** The heat map: variables by steps. A click selects both; the arrow keys move over it. */

import {html, LitElement, type PropertyValues, type TemplateResult} from "lit";
import type {Overview} from "../api/routes.ts";
import type {Source} from "../api/source.ts";
import {paintHeat, ROW} from "../draw/heat.ts";
import {LIGHT, type Palette} from "../draw/palette.ts";
import {formatNumber, plural} from "../model/format.ts";
import type {FlowGraph} from "../model/graph.ts";
import {cellOf, depthsOf, Heat, orderedRows, ORDERS, quantitiesOf, ticksOf, type Cell, type Order, type Quantity} from "../model/heat.ts";
import {widened, type Scale} from "../model/scale.ts";
import type {Diagnosis} from "../record.ts";
import {given} from "./given.ts";
import {heatLegend} from "./heat_legend.ts";
import {heatStyles} from "./heat_styles.ts";
import {shared} from "./styles.ts";

/** No screen can show more columns distinctly. */
const COLUMNS = 512;
const NARROW = 700;
/** Pixels for the number of a step. */
const TICK = 90;

const WORDS: Record<Exclude<Cell, "finite">, string> = {
  nan: "has NaN",
  inf: "has infinities",
  zero: "exactly zero",
  none: "no gradient",
  unrecorded: "not recorded",
};

export class HeatPanel extends LitElement {
  static override properties = {
    ...given("source", "overview", "graph", "target", "diagnosis", "scale", "at", "selected", "palette"),
    quantity: {state: true},
    order: {state: true},
    filter: {state: true},
    heat: {state: true},
    problem: {state: true},
    pointed: {state: true},
  };
  declare source: Source | null;
  declare overview: Overview | null;
  declare graph: FlowGraph | null;
  declare target: number;
  declare diagnosis: Diagnosis | null;
  /** For norms of gradients, the same as in the graph. */
  declare scale: Scale | null;
  /** Position of the chosen step. */
  declare at: number;
  /** Index of the selected variable; -1 for none. */
  declare selected: number;
  declare palette: Palette;
  declare quantity: Quantity;
  declare order: Order;
  declare filter: string;
  declare heat: Heat | null;
  declare problem: string;
  /** Row and column under the pointer or the keyboard cursor, by position. */
  declare pointed: {readonly row: number; readonly column: number} | null;

  #rows: readonly number[] = [];
  #shownScale: Scale = {low: -4, high: 0};
  #depths: readonly number[] = [];
  #asked = "";
  readonly #resized = new ResizeObserver(() => this.#paint());

  static override styles = [shared, heatStyles];

  constructor() {
    super();
    [this.source, this.overview, this.graph, this.diagnosis, this.scale, this.heat, this.pointed] = [null, null, null, null, null, null, null];
    [this.target, this.at, this.selected] = [0, -1, -1];
    [this.quantity, this.order, this.filter, this.problem] = ["gradient", "depth", "", ""];
    this.palette = LIGHT;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.#resized.observe(this);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#resized.disconnect();
  }

  override willUpdate(changed: PropertyValues<this>): void {
    const {graph, heat} = this;
    if (changed.has("graph") && graph !== null) {
      this.#depths = depthsOf(graph);
    }
    const fits = graph !== null && heat !== null && heat.rows === graph.trace.variables.length;
    if (["heat", "order", "filter", "graph", "scale"].some((name) => changed.has(name as keyof HeatPanel)) || (changed.has("diagnosis") && this.order === "trouble")) {
      this.#rows = fits && heat.columns > 0 ? orderedRows(heat, graph, this.#depths, this.diagnosis, this.order, this.filter) : [];
      this.#shownScale = this.quantity === "gradient" && this.scale !== null ? this.scale : widened(null, ...(heat?.extent() ?? [1, 1]));
    }
  }

  override render(): TemplateResult {
    const {heat} = this;
    return html`
      <div class="bar">
        <select aria-label="Quantity" @change=${(event: Event) => (this.quantity = (event.target as HTMLSelectElement).value as Quantity)}>
          ${quantitiesOf(this.graph?.trace).map(({quantity, title}) => html`<option value=${quantity} ?selected=${quantity === this.quantity}>${title}</option>`)}
        </select>
        <select aria-label="Order of the rows" @change=${(event: Event) => (this.order = (event.target as HTMLSelectElement).value as Order)}>
          ${ORDERS.map(({order, title}) => html`<option value=${order} ?selected=${order === this.order}>${title}</option>`)}
        </select>
        <input type="search" placeholder="Filter by name" aria-label="Filter variables by name" .value=${this.filter} @input=${(event: Event) => (this.filter = (event.target as HTMLInputElement).value)} />
        ${heatLegend(this.#shownScale, this.palette)}
      </div>
      <div class="scroller" tabindex="0" role="application" aria-label="Heat map of variables by steps. Arrow keys move, Enter selects." @scroll=${() => this.#paint()} @pointermove=${this.#move} @pointerleave=${() => (this.pointed = null)} @click=${() => this.#choose()} @keydown=${this.#key}>
        <div class="all" style="height:${this.#rows.length * ROW}px"></div>
        <canvas aria-hidden="true"></canvas>
      </div>
      <div class="axis" aria-hidden="true" style="padding-left:${this.#names}px">${this.#ticks().map(([share, step]) => html`<span style="left:${100 * share}%">${step}</span>`)}</div>
      <div class="said" role="status">${this.problem !== "" ? html`<span class="problem">${this.problem}</span>` : heat === null ? "Reading the steps …" : this.#said(heat)}</div>
    `;
  }

  override updated(changed: PropertyValues<this>): void {
    void this.#load();
    if (changed.has("selected") && this.selected >= 0) {
      this.#bringIn(this.#rows.indexOf(this.selected));
    }
    this.#paint();
  }

  get #names(): number {
    return this.clientWidth < NARROW ? 150 : 240;
  }

  get #scroller(): HTMLElement | null {
    return this.renderRoot?.querySelector(".scroller") ?? null;
  }

  /** Recorded steps below the middle of their columns, the first and the last among them, as far as there is room. */
  #ticks(): readonly (readonly [number, number])[] {
    const {heat, overview} = this;
    if (heat === null || overview === null || heat.columns === 0) {
      return [];
    }
    const room = Math.max(2, Math.floor((this.clientWidth - this.#names) / TICK));
    return ticksOf(heat.columns, room).map((column) => [(column + 0.5) / heat.columns, overview.steps[heat.stepAt(column)]]);
  }

  #said(heat: Heat): string {
    const row = this.pointed === null ? undefined : this.#rows[this.pointed.row];
    if (row === undefined || this.pointed === null) {
      return this.#rows.length === 0 ? "No variable matches." : `${plural(this.#rows.length, "variable")}, ${plural(this.overview?.steps.length ?? 0, "step")}`;
    }
    const {column} = this.pointed;
    const value = heat.at(column, row);
    const cell = cellOf(value);
    const step = this.overview?.steps[heat.stepAt(column)] ?? 0;
    return `${this.graph?.trace.variables[row].name}, step ${step}: ${cell === "finite" ? formatNumber(value) : WORDS[cell]}`;
  }

  #paint(): void {
    const canvas = this.renderRoot?.querySelector("canvas");
    const scroller = this.#scroller;
    const {heat, graph} = this;
    if (!canvas || scroller === null || heat === null || graph === null || scroller.clientWidth === 0) {
      return;
    }
    const view = {width: scroller.clientWidth, height: scroller.clientHeight};
    canvas.style.width = `${view.width}px`;
    canvas.style.height = `${view.height}px`;
    paintHeat(canvas, heat, this.#rows, (row) => graph.trace.variables[row].name, {
      view,
      names: this.#names,
      scrolled: scroller.scrollTop,
      scale: this.#shownScale,
      palette: this.palette,
      column: this.at < 0 || heat.columns === 0 ? -1 : heat.columnOf(this.at),
      selected: this.selected,
    });
  }

  readonly #move = (event: PointerEvent): void => {
    const scroller = this.#scroller;
    if (scroller === null || this.heat === null) {
      return;
    }
    const box = scroller.getBoundingClientRect();
    const row = Math.floor((event.clientY - box.top + scroller.scrollTop) / ROW);
    const share = (event.clientX - box.left - this.#names) / (scroller.clientWidth - this.#names);
    // Over the names it is the row at the chosen step.
    const column = share < 0 ? this.heat.columnOf(Math.max(0, this.at)) : Math.min(this.heat.columns - 1, Math.floor(share * this.heat.columns));
    this.pointed = row < this.#rows.length ? {row, column} : null;
  };

  readonly #key = (event: KeyboardEvent): void => {
    const [dx, dy] = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}[event.key] ?? [0, 0];
    if (event.key === "Enter") {
      this.#choose();
    } else if ((dx !== 0 || dy !== 0) && this.heat !== null && this.#rows.length > 0) {
      const from = this.pointed ?? {row: Math.max(0, this.#rows.indexOf(this.selected)), column: this.heat.columnOf(Math.max(0, this.at))};
      const row = Math.min(this.#rows.length - 1, Math.max(0, from.row + dy));
      this.pointed = {row, column: Math.min(this.heat.columns - 1, Math.max(0, from.column + dx))};
      this.#bringIn(row);
      event.preventDefault();
    }
  };

  #choose(): void {
    if (this.pointed !== null && this.heat !== null) {
      const detail = {variable: this.#rows[this.pointed.row], at: this.heat.stepAt(this.pointed.column)};
      this.dispatchEvent(new CustomEvent("gf-cell", {detail}));
    }
  }

  #bringIn(row: number): void {
    const scroller = this.#scroller;
    if (scroller !== null && row >= 0 && (row * ROW < scroller.scrollTop || (row + 1) * ROW > scroller.scrollTop + scroller.clientHeight)) {
      scroller.scrollTop = row * ROW - scroller.clientHeight / 2;
    }
  }

  /** Requests again when there are more steps, or for another trace, loss or quantity. */
  async #load(): Promise<void> {
    const {overview, graph, source, target, quantity} = this;
    if (overview === null || graph === null || source === null || overview.steps.length === 0) {
      return;
    }
    const wanted = [overview.run, overview.session.id, graph.trace.index, target, quantity, overview.steps.length].join("\n");
    if (wanted === this.#asked) {
      return;
    }
    this.#asked = wanted;
    try {
      const values = await source.heat(overview.run, graph.trace.index, target, quantity, COLUMNS);
      if (wanted === this.#asked) {
        this.problem = "";
        this.heat = new Heat(values, graph.trace.variables.length, overview.steps.length);
      }
    } catch (error) {
      this.problem = error instanceof Error ? error.message : String(error);
      // The next refresh requests it again.
      this.#asked = this.#asked === wanted ? "" : this.#asked;
    }
  }
}

customElements.define("gf-heat", HeatPanel);
