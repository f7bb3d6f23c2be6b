/** The meaning of the colours and lines of a picture: as text for the legend, and drawn below an exported picture. */

import type {Look} from "../model/bundle.ts";
import {formatDecade} from "../model/format.ts";
import {MEASURE_TITLES} from "../model/measure.ts";
import type {Brush} from "./brush.ts";
import {magnitudeColour, magnitudeWidth} from "./colour.ts";
import type {Palette} from "./palette.ts";
import type {Picture} from "./picture.ts";
import {SIGNS, strokeOf} from "./strokes.ts";

type Special = Exclude<Look, "finite">;

export const LINES: readonly {readonly look: Special; readonly word: string}[] = [
  {look: "broken", word: "no gradient"},
  {look: "lost", word: "beyond the cut"},
  {look: "nan", word: "has NaN"},
  {look: "inf", word: "has infinities"},
  {look: "zero", word: "exactly zero"},
  {look: "off", word: "none, and none expected"},
  {look: "unrecorded", word: "not recorded"},
];

const FONT = "11px system-ui, sans-serif";
const ROW = 18;
const RAMP = 150;
const PIECES = 42;

/** The looks that occur in a picture, in the order of the legend. */
function linesOf({edges}: Picture): typeof LINES {
  return LINES.filter(({look}) => edges.some(({bundle}) => bundle.look === look || (look === "broken" && bundle.broken > 0)));
}

export function keyHeight(picture: Picture): number {
  return ROW * (3 + linesOf(picture).length);
}

/** Below and to the right of a point. */
export function paintKey(brush: Brush, picture: Picture, palette: Palette, x: number, y: number): void {
  const write = (text: string, left: number, middle: number): void => {
    [brush.font, brush.fillStyle, brush.textAlign, brush.textBaseline] = [FONT, palette.muted, "left", "middle"];
    brush.fillText(text, left, middle);
  };
  write(MEASURE_TITLES[picture.measure], x, y + ROW / 2);
  for (let piece = 0; piece < PIECES; piece += 1) {
    const place = piece / (PIECES - 1);
    const height = 2 * magnitudeWidth(place);
    brush.fillStyle = magnitudeColour(place, palette.dark);
    brush.fillRect(x + (piece * RAMP) / PIECES, y + 1.5 * ROW - height / 2, RAMP / PIECES + 0.5, height);
  }
  write(formatDecade(picture.scale.low), x, y + 2.4 * ROW);
  const high = formatDecade(picture.scale.high);
  write(high, x + RAMP - brush.measureText(high).width, y + 2.4 * ROW);
  linesOf(picture).forEach(({look, word}, row) => paintLine(brush, look, word, palette, x, y + (3.5 + row) * ROW, write));
}

function paintLine(brush: Brush, look: Special, word: string, palette: Palette, x: number, y: number, write: (text: string, left: number, middle: number) => void): void {
  const {colour, width, dash} = strokeOf(look, palette);
  [brush.strokeStyle, brush.lineWidth] = [colour, width];
  brush.setLineDash([...dash]);
  brush.beginPath();
  brush.moveTo(x, y);
  brush.lineTo(x + 30, y);
  brush.stroke();
  brush.setLineDash([]);
  write(`${SIGNS[look] === undefined ? "" : `${SIGNS[look]}  `}${word}`, x + 38, y);
}
