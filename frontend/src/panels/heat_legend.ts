/** The meaning of the heat map's cells: the scale, and the five patterns for values that are not numbers. */

import {html, type TemplateResult} from "lit";
import {patternOf, TILE, type Special} from "../draw/cells.ts";
import {magnitudeColour} from "../draw/colour.ts";
import type {Palette} from "../draw/palette.ts";
import {formatDecade} from "../model/format.ts";
import type {Scale} from "../model/scale.ts";

const LOOKS: readonly (readonly [Special, string])[] = [
  ["nan", "NaN"],
  ["inf", "infinite"],
  ["zero", "zero"],
  ["none", "no gradient"],
  ["unrecorded", "not recorded"],
];
const PIECES = 12;

export function heatLegend(scale: Scale, palette: Palette): TemplateResult {
  const colours = Array.from({length: PIECES}, (_, index) => magnitudeColour(index / (PIECES - 1), palette.dark));
  return html`<span class="legend">
    <span>${formatDecade(scale.low)}</span>
    <span class="ramp" style="background:linear-gradient(to right, ${colours.join(", ")})"></span>
    <span>${formatDecade(scale.high)}</span>
    ${LOOKS.map(([look, word]) => html`<span class="look"><i style="background:${tile(look, palette)}"></i>${word}</span>`)}
  </span>`;
}

const tiles = new Map<string, string>();

/** A tile of the pattern as a CSS image. */
function tile(look: Special, palette: Palette): string {
  const key = `${look} ${palette.dark}`;
  let known = tiles.get(key);
  if (known === undefined) {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [2 * TILE, 2 * TILE];
    const context = canvas.getContext("2d");
    if (context !== null) {
      context.fillStyle = patternOf(context, look, palette);
      context.fillRect(0, 0, canvas.width, canvas.height);
    }
    known = `url(${canvas.toDataURL()})`;
    tiles.set(key, known);
  }
  return known;
}
