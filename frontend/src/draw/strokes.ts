/** The look of lines: no state is shown by colour alone, and red means broken. */

import type {Look} from "../model/bundle.ts";
import {magnitudeColour, magnitudeWidth, SHADES} from "./colour.ts";
import type {Palette} from "./palette.ts";

/** Lengths in screen pixels. */
export interface Stroke {
  readonly colour: string;
  readonly width: number;
  readonly dash: readonly number[];
}

/** Signs on lines whose look must not depend on colour alone. */
export const SIGNS: Readonly<Partial<Record<Look, string>>> = {zero: "0", nan: "NaN", inf: "∞"};

export function strokeOf(look: Exclude<Look, "finite">, palette: Palette): Stroke {
  const strokes: Record<Exclude<Look, "finite">, Stroke> = {
    broken: {colour: palette.bad, width: 2.4, dash: [7, 4]},
    zero: {colour: palette.zero, width: 1.5, dash: [2, 3]},
    nan: {colour: palette.nan, width: 4, dash: [12, 2]},
    inf: {colour: palette.inf, width: 4, dash: [12, 2, 2, 2]},
    unrecorded: {colour: palette.none, width: 1.2, dash: []},
    lost: {colour: palette.muted, width: 1.6, dash: [1.5, 4]},
    off: {colour: palette.none, width: 1, dash: [1, 3]},
  };
  return strokes[look];
}

/** The stroke of a shade of magnitude. */
export function magnitudeStroke(shade: number, palette: Palette): Stroke {
  const place = shade / (SHADES - 1);
  return {colour: magnitudeColour(place, palette.dark), width: magnitudeWidth(place), dash: []};
}
