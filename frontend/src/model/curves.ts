/** The losses of some steps with something and without it, as lines in a picture of one unit each way. */

import type {BatchFit, Descent, Trained} from "../record.ts";

/** Two courses of a loss, and what each is of. */
export interface Compared {
  readonly steps: number;
  readonly curve: readonly (number | null)[];
  readonly curve_without: readonly (number | null)[];
  readonly names: readonly [string, string];
}

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
export function curvesOf({curve, curve_without}: Pick<Compared, "curve" | "curve_without">): Curves | null {
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

export function comparedBy(trained: Trained): Compared {
  return {...trained, names: ["with the edit", "without it"]};
}

/** The best course with one batch, and what it is compared with: the best one without the inputs, if there is one, or else that of the program's own optimizer. */
export function comparedIn({descents}: BatchFit): Compared | null {
  const of = (changed: Descent["changed"]): Descent[] => descents.filter((each) => each.changed === changed);
  const best = bestOf(of("nothing"));
  if (best === undefined) {
    return null;
  }
  const alike = bestOf(of("inputs_alike"));
  const own = of("nothing").find((each) => each.by === "own" && each !== best);
  const name = best.rate === null ? "with its own optimizer" : `with Adam at a rate of ${best.rate}`;
  return {
    steps: best.losses.length - 1,
    curve: best.losses,
    curve_without: (alike ?? own)?.losses ?? [],
    names: [name, alike === undefined ? "with its own optimizer" : "where each row has the inputs of the first one"],
  };
}

function bestOf(descents: readonly Descent[]): Descent | undefined {
  const least = (descent: Descent): number => Math.min(...descent.losses.filter((loss) => loss !== null));
  return [...descents].sort((one, other) => least(one) - least(other))[0];
}
