/**
 * Series over the steps on a logarithmic axis. Values that a logarithm cannot show leave a gap, and a sign at the
 * bottom.
 */

import {css, html, LitElement, unsafeCSS, type PropertyValues, type TemplateResult} from "lit";
import uPlot from "uplot";
import uplotStyles from "uplot/dist/uPlot.min.css?inline";
import {formatNumber} from "../model/format.ts";
import type {Series} from "../model/series.ts";
import type {Palette} from "../draw/palette.ts";
import {LIGHT, lineColours} from "../draw/palette.ts";
import {shared} from "./styles.ts";

/** The height of a chart whose element does not set one. */
const HEIGHT = 150;
/** The height of the legend below, in pixels. */
const LEGEND = 46;

/** Styles of a panel in which a chart fills the space below a bar of controls. */
export const chartPanelStyles = css`
  .bar {
    display: flex;
    flex-wrap: wrap;
    align-items: center;
    gap: 5px 8px;
    padding-bottom: 4px;
  }
  .problem {
    color: var(--gf-bad);
  }
  gf-chart {
    flex: 1;
    min-height: 0;
    overflow: hidden auto;
  }
`;

export class Chart extends LitElement {
  static override properties = {
    steps: {attribute: false},
    series: {attribute: false},
    at: {attribute: false},
    palette: {attribute: false},
    label: {attribute: false},
    fills: {attribute: false},
  };
  declare steps: readonly number[];
  declare series: readonly Series[];
  /** The chosen step: a line. */
  declare at: number;
  declare palette: Palette;
  declare label: string;
  /** Whether it fills the height of its element. */
  declare fills: boolean;

  #plot: uPlot | null = null;
  readonly #resized = new ResizeObserver(() => this.#resize());

  static override styles = [
    unsafeCSS(uplotStyles),
    shared,
    css`
      :host {
        display: block;
        min-height: ${HEIGHT}px;
      }
      .u-legend {
        font-size: 11.5px;
        text-align: left;
        color: var(--gf-muted);
      }
      .u-legend th,
      .u-legend td {
        padding: 1px 4px 1px 0;
      }
      .u-legend .u-marker {
        width: 10px;
        height: 10px;
      }
    `,
  ];

  constructor() {
    super();
    this.steps = [];
    this.series = [];
    this.at = -1;
    this.palette = LIGHT;
    this.label = "";
    this.fills = false;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.#resized.observe(this);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#resized.disconnect();
    this.#plot?.destroy();
    this.#plot = null;
  }

  override render(): TemplateResult {
    return html`<div class="plot" role="img" aria-label=${this.label}></div>`;
  }

  override updated(changed: PropertyValues<this>): void {
    if (["steps", "series", "palette"].some((name) => changed.has(name as keyof Chart))) {
      this.#draw();
    } else if (changed.has("at")) {
      this.#plot?.redraw(false);
      this.#tellStep();
    }
  }

  #draw(): void {
    this.#plot?.destroy();
    const container = this.renderRoot.querySelector<HTMLElement>(".plot");
    if (container === null || this.clientWidth === 0) {
      return;
    }
    const data = [this.steps, ...this.series.map(({values}) => values.map(loggable))];
    this.#plot = new uPlot(this.#options(), data as unknown as uPlot.AlignedData, container);
    this.#tellStep();
  }

  /** The legend shows the numbers of the chosen step unless the reader points at another. */
  #tellStep(): void {
    const idx = this.steps.indexOf(this.at);
    if (idx >= 0 && this.#plot?.cursor.idx == null) {
      this.#plot?.setLegend({idx}, false);
    }
  }

  #options(): uPlot.Options {
    const {muted, line} = this.palette;
    const colours = lineColours(this.palette);
    const axis = {stroke: muted, grid: {stroke: line, width: 1}, ticks: {stroke: line, width: 1}, font: "11px system-ui"};
    return {
      width: this.clientWidth,
      height: this.#height,
      scales: {x: {time: false}, y: {distr: 3, range: logRange}},
      axes: [
        {...axis, size: 26},
        {...axis, grid: {...axis.grid, filter: decades}, ticks: {...axis.ticks, filter: decades}, size: 52, values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : formatNumber(tick)))},
      ],
      series: [
        {label: "Step"},
        ...this.series.map(({label, colour, dashed}, index) => ({
          label,
          stroke: colours[(colour ?? index) % colours.length],
          width: 1.6,
          ...(dashed === true ? {dash: [6, 4]} : {}),
          points: {show: this.steps.length < 40, size: 5},
          // Of the series itself: the drawn data has no zero.
          value: (_: uPlot, __: number | null, ___: number, at: number | null) => formatNumber(at === null ? null : this.series[index].values[at]),
        })),
      ],
      cursor: {y: false, drag: {x: false, y: false}},
      hooks: {setCursor: [() => this.#tellStep()], draw: [(plot) => this.#drawStep(plot), (plot) => this.#drawSigns(plot)]},
    };
  }

  #drawStep(plot: uPlot): void {
    const {ctx, bbox} = plot;
    const x = Math.round(plot.valToPos(this.at, "x", true));
    if (this.at < 0 || x < bbox.left || x > bbox.left + bbox.width) {
      return;
    }
    ctx.save();
    ctx.strokeStyle = this.palette.muted;
    ctx.setLineDash([4, 4]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.restore();
  }

  /** Overlapping signs are left out. */
  #drawSigns(plot: uPlot): void {
    const {ctx, bbox} = plot;
    const colours = lineColours(this.palette);
    const size = 11 * devicePixelRatio;
    ctx.save();
    ctx.font = `700 ${size}px system-ui`;
    ctx.textAlign = "center";
    this.series.forEach(({signs, colour}, index) => {
      let free = -Infinity;
      ctx.fillStyle = colours[(colour ?? index) % colours.length];
      signs?.forEach((sign, at) => {
        const x = plot.valToPos(this.steps[at], "x", true);
        if (sign !== null && x >= free) {
          ctx.fillText(sign, x, bbox.top + bbox.height - 4 - (index % 4) * size);
          free = x + size;
        }
      });
    });
    ctx.restore();
  }

  get #height(): number {
    return this.fills ? Math.max(90, this.clientHeight - LEGEND) : HEIGHT;
  }

  #resize(): void {
    if (this.#plot === null) {
      this.#draw();
    } else if (this.clientWidth > 0 && (this.clientWidth !== this.#plot.width || this.#height !== this.#plot.height)) {
      this.#plot.setSize({width: this.clientWidth, height: this.#height});
    }
  }
}

function loggable(value: number | null | undefined): number | null | undefined {
  return value === undefined || (value !== null && value > 0 && Number.isFinite(value)) ? value : null;
}

/** Whole decades around the data; a minimal range even if the data has none. */
function logRange(_: uPlot, low: number | null, high: number | null): [number, number] {
  if (low === null || high === null || !(low > 0)) {
    return [0.1, 1];
  }
  const [bottom, top] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  return [10 ** bottom, 10 ** Math.max(top, bottom + 1)];
}

/** Lines only at powers of ten, if there are several: the lines between would form one grey area. */
function decades(_: uPlot, splits: number[]): (number | null)[] {
  const whole = splits.map((split) => (Number.isInteger(Math.round(Math.log10(split) * 1e6) / 1e6) ? split : null));
  return whole.filter((split) => split !== null).length > 2 ? whole : splits;
}

customElements.define("gf-chart", Chart);
