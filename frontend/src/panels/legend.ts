/** What the colours and lines mean. */

import {css, html, LitElement, svg, type TemplateResult} from "lit";
import {magnitudeColour, magnitudeWidth} from "../draw/colour.ts";
import {LIGHT, type Palette} from "../draw/palette.ts";
import {formatDecade} from "../model/format.ts";
import type {Scale} from "../model/scale.ts";
import {shared} from "./styles.ts";

const WIDTH = 168;
const PIECES = 42;

export class Legend extends LitElement {
  static override properties = {scale: {attribute: false}, palette: {attribute: false}};
  declare scale: Scale | null;
  declare palette: Palette;

  static override styles = [
    shared,
    css`
      :host {
        position: absolute;
        left: 12px;
        bottom: 12px;
        border: 1px solid var(--gf-line);
        border-radius: 8px;
        background: color-mix(in srgb, var(--gf-page) 92%, transparent);
        padding: 7px 12px 9px;
        font-size: 11.5px;
        color: var(--gf-muted);
      }
      .title {
        margin-bottom: 3px;
      }
      .ends {
        display: flex;
        justify-content: space-between;
        width: ${WIDTH}px;
      }
      ul {
        display: grid;
        grid-template-columns: auto auto;
        gap: 2px 14px;
        margin: 6px 0 0;
        padding: 0;
        list-style: none;
      }
      li {
        display: flex;
        align-items: center;
        gap: 7px;
      }
      svg {
        display: block;
        flex: none;
      }
      summary {
        cursor: pointer;
        list-style: none;
      }
      summary::marker {
        content: "";
      }
    `,
  ];

  constructor() {
    super();
    this.scale = null;
    this.palette = LIGHT;
  }

  override render(): TemplateResult {
    return html`<details open>
      <summary class="title" title="Fold the legend">Norm of the gradient</summary>
      ${this.scale === null ? "" : this.#magnitudes(this.scale)}
      <ul>
        ${this.#line("disconnected", this.palette.bad, 2.4, "7 4")} ${this.#line("behind the cut", this.palette.muted, 1.6, "1.5 4")}
        ${this.#line("exactly zero", this.palette.zero, 1.5, "2 3")} ${this.#line("none expected", this.palette.none, 1, "1 3")}
        ${this.#line("NaN", this.palette.nan, 4, "12 2")} ${this.#line("infinite", this.palette.inf, 4, "12 2 2 2")}
        ${this.#line("not recorded", this.palette.none, 1.2, "")}
      </ul>
    </details>`;
  }

  #magnitudes(scale: Scale): TemplateResult {
    const piece = WIDTH / PIECES;
    const pieces = Array.from({length: PIECES}, (_, index) => {
      const place = index / (PIECES - 1);
      const height = 2 * magnitudeWidth(place);
      return svg`<rect x=${index * piece} y=${6 - height / 2} width=${piece + 0.5} height=${height} fill=${magnitudeColour(place, this.palette.dark)} />`;
    });
    return html`<svg width=${WIDTH} height="12" role="img" aria-label="From thin and faint, small, to thick and strong, large">${pieces}</svg>
      <div class="ends"><span>${formatDecade(scale.low)}</span><span>${formatDecade(scale.high)}</span></div>`;
  }

  #line(word: string, colour: string, width: number, dash: string): TemplateResult {
    return html`<li>
      <svg width="30" height="8" aria-hidden="true">
        ${svg`<line x1="0" y1="4" x2="30" y2="4" stroke=${colour} stroke-width=${width} stroke-dasharray=${dash} />`}
      </svg>
      ${word}
    </li>`;
  }
}

customElements.define("gf-legend", Legend);
