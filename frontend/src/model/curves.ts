/** The losses of some steps with an edit and without it, as lines in a picture of one unit each way. */

import type {Trained} from "../record.ts";

export interface Curves {
  /** Points from the left, `[x, y]` with zero at the bottom; a loss that is not finite interrupts a line. */
  readonly withEdit: readonly Line[];
  readonly without: readonly Line[];
  /** The losses at the bottom and at the top. */
  readonly range: readonly [least: number, most: number];
  /** Whether the picture is logarithmic, because the losses are several orders of magnitude apart. */
  readonly isLog: boolean;
}

export type Line = readonly (readonly [x: number, y: number])[];

/** Losses that are further apart than this are drawn on a logarithmic axis. */
const APART = 100;

/** Null if there is nothing to draw, such as in an older log. */
export function curvesOf({curve, curve_without}: Trained): Curves | null {
  const known = [...curve, ...curve_without].filter((loss) => loss !== null);
  if (curve.filter((loss) => loss !== null).length < 2) {
    return null;
  }
  const range: [number, number] = [Math.min(...known), Math.max(...known)];
  const isLog = range[0] > 0 && range[1] > APART * range[0];
  const at = isLog ? Math.log : (loss: number): number => loss;
  const height = at(range[1]) - at(range[0]);
  const lines = (losses: readonly (number | null)[]): Line[] => {
    const found: (readonly [number, number])[][] = [[]];
    losses.forEach((loss, place) => {
      if (loss === null) {
        found.push([]);
      } else {
        found[found.length - 1].push([place / (losses.length - 1), height > 0 ? (at(loss) - at(range[0])) / height : 0.5]);
      }
    });
    return found.filter((line) => line.length > 0);
  };
  return {withEdit: lines(curve), without: lines(curve_without), range, isLog};
}
