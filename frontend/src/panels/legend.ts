/** The meaning of colours and lines. */

import {css, html, LitElement, nothing, svg, type TemplateResult} from "lit";
import {magnitudeColour, magnitudeWidth} from "../draw/colour.ts";
import {LINES} from "../draw/key.ts";
import {MEANINGS, NO_MARKS, type Marks} from "../draw/marks.ts";
import {LIGHT, type Palette} from "../draw/palette.ts";
import {SIGNS, strokeOf} from "../draw/strokes.ts";
import {formatDecade} from "../model/format.ts";
import {MEASURES, MEASURE_TITLES, type Measured} from "../model/measure.ts";
import type {Scale} from "../model/scale.ts";
import {shared} from "./styles.ts";

const WIDTH = 150;
/** In a narrower frame the graph needs the space more. */
const ROOM = 700;
const PIECES = 42;

export class Legend extends LitElement {
  static override properties = {
    measured: {attribute: false},
    marks: {attribute: false},
    judged: {attribute: false},
    palette: {attribute: false},
    room: {attribute: false},
    chosen: {state: true},
  };
  declare measured: Measured | null;
  /** What is drawn: the rest needs no explanation. */
  declare marks: Marks;
  /** Whether it is known which gradients are missing. */
  declare judged: boolean;
  declare palette: Palette;
  /** Pixels of width that no panel covers. */
  declare room: number;
  /** Whether the reader wants it unfolded; null until the reader chooses. */
  declare chosen: boolean | null;

  static override styles = [
    shared,
    css`
      :host([hidden]) {
        display: none;
      }
      :host {
        position: absolute;
        left: 12px;
        bottom: 12px;
        border: 1px solid var(--gf-line);
        border-radius: 8px;
        background: color-mix(in srgb, var(--gf-page) 92%, transparent);
        padding: 7px 12px 8px;
        pointer-events: none;
        font-size: 11.5px;
        color: var(--gf-muted);
      }
      .head {
        display: flex;
        align-items: center;
        gap: 3px;
        pointer-events: auto;
      }
      select {
        border: 0;
        padding: 0;
        background: none;
        font-size: 11.5px;
      }
      option {
        background: var(--gf-page);
      }
      .title {
        border: 0;
        padding: 0;
        background: none !important;
        pointer-events: auto;
      }
      svg[role="img"] {
        margin-top: 3px;
      }
      .ends {
        display: flex;
        justify-content: space-between;
        width: ${WIDTH}px;
      }
      ul {
        display: grid;
        grid-template-columns: auto;
        gap: 2px 14px;
        margin: 5px 0 0;
        padding: 0;
        list-style: none;
      }
      li {
        display: flex;
        align-items: center;
        gap: 7px;
      }
      li span {
        max-width: 112px;
      }
      li b {
        flex: none;
        width: 30px;
        text-align: center;
      }
      svg {
        display: block;
        flex: none;
      }
    `,
  ];

  constructor() {
    super();
    this.measured = null;
    this.marks = NO_MARKS;
    this.judged = false;
    this.palette = LIGHT;
    this.room = window.innerWidth;
    this.chosen = null;
  }

  /** Folds, unless the reader has unfolded it. */
  giveWay(): void {
    this.chosen ??= false;
  }

  override render(): TemplateResult {
    const unfolded = this.chosen ?? this.room >= ROOM;
    const handle = html`<button class="title" aria-label="Legend" title="Show or hide the legend" aria-expanded=${String(unfolded)} @click=${() => (this.chosen = !unfolded)}>
      <span aria-hidden="true">${unfolded ? "▾" : "▸"}</span> ${unfolded ? nothing : "Legend"}
    </button>`;
    return unfolded ? html`<div class="head">${handle} ${this.#choice()}</div> ${this.#lines()}` : handle;
  }

  #choice(): TemplateResult {
    const tell = (event: Event): void => {
      this.dispatchEvent(new CustomEvent("gf-measure", {detail: (event.target as HTMLSelectElement).value}));
    };
    return html`<select aria-label="What the colours show" @change=${tell}>
      ${MEASURES.map((measure) => html`<option value=${measure} ?selected=${measure === this.measured?.measure}>${MEASURE_TITLES[measure]}</option>`)}
    </select>`;
  }

  #lines(): TemplateResult {
    return html`${this.measured === null ? "" : this.#magnitudes(this.measured.scale)}
      <ul>
        ${LINES.filter(({look}) => this.marks.looks.has(look)).map((line) => this.#line(line))}
        ${MEANINGS.filter(({sign}) => this.marks.signs.has(sign)).map(({text, word, colour}) => html`<li><b aria-hidden="true" style="color:${colour(this.palette)}">${text}</b><span>${word}</span></li>`)}
      </ul>`;
  }

  #magnitudes(scale: Scale): TemplateResult {
    const piece = WIDTH / PIECES;
    const pieces = Array.from({length: PIECES}, (_, index) => {
      const place = index / (PIECES - 1);
      const height = 2 * magnitudeWidth(place);
      return svg`<rect x=${index * piece} y=${6 - height / 2} width=${piece + 0.5} height=${height} fill=${magnitudeColour(place, this.palette.dark)} />`;
    });
    return html`<svg width=${WIDTH} height="12" role="img" aria-label="From thin and faint (small) to thick and strong (large)">${pieces}</svg>
      <div class="ends"><span>${formatDecade(scale.low)}</span><span>${formatDecade(scale.high)}</span></div>`;
  }

  #line({look, word}: (typeof LINES)[number]): TemplateResult {
    const {colour, width, dash} = strokeOf(look, this.palette);
    const line = svg`<line x1="0" y1="4" x2="30" y2="4" stroke=${colour} stroke-width=${width} stroke-dasharray=${dash.join(" ")} />`;
    const sign = svg`<text x="15" y="8" text-anchor="middle" font-size="10" font-weight="600" fill=${colour} stroke=${this.palette.page} stroke-width="4" paint-order="stroke">${SIGNS[look] ?? ""}</text>`;
    return html`<li><svg width="30" height="12" viewBox="0 -2 30 12" aria-hidden="true">${line}${sign}</svg><span>${look === "off" && !this.judged ? "no gradient here" : word}</span></li>`;
  }
}

customElements.define("gf-legend", Legend);
