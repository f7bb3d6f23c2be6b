/** The cells of a heat map, in the form of the route `heat`: see docs/http.md. */

import type {Quantity} from "../model/heat.ts";
import {GRADIENT_STATISTICS, VARIABLE_STATISTICS, type Trace} from "../record.ts";

export const NO_GRADIENT = -1;
export const NOT_RECORDED = -2;

const COLUMNS = GRADIENT_STATISTICS.length;
const [NORM, NANS, INFS] = (["norm", "nan_count", "inf_count"] as const).map((name) => GRADIENT_STATISTICS.indexOf(name));
const [WEIGHT, UPDATE, NONFINITE] = (["weight_norm", "update_norm", "nonfinite_after"] as const).map((name) => VARIABLE_STATISTICS.indexOf(name));

/** `[steps, variables]` of a chunk. */
export function gradientNorms({variables, variable_gradients}: Trace, target: number, chunk: Float32Array, steps: number): Float32Array {
  const values = new Float32Array(steps * variables.length).fill(NOT_RECORDED);
  const rows = steps === 0 ? 0 : chunk.length / (steps * COLUMNS);
  for (const {target: of, variable, outcome, row} of variable_gradients) {
    for (let step = 0; of === target && step < steps; step += 1) {
      if (outcome === "none") {
        values[step * variables.length + variable] = NO_GRADIENT;
      } else if (row !== null && row < rows) {
        values[step * variables.length + variable] = told(chunk, (step * rows + row) * COLUMNS);
      }
    }
  }
  return values;
}

/** The norm in the row of statistics that begins there. */
export function told(chunk: Float32Array, at: number): number {
  if (chunk[at + NANS] > 0) {
    return NaN;
  }
  return chunk[at + INFS] > 0 ? Infinity : known(chunk[at + NORM]);
}

/** `[steps, variables]` of a chunk of variables. */
export function valuesOf(chunk: Float32Array, quantity: Exclude<Quantity, "gradient">): Float32Array {
  const values = new Float32Array(chunk.length / VARIABLE_STATISTICS.length);
  for (let each = 0; each < values.length; each += 1) {
    const at = each * VARIABLE_STATISTICS.length;
    const [weight, update] = [chunk[at + WEIGHT], chunk[at + UPDATE]];
    const chosen = {weight, update, ratio: weight > 0 ? update / weight : NaN}[quantity];
    values[each] = chunk[at + NONFINITE] > 0 ? NaN : known(chosen);
  }
  return values;
}

function known(value: number): number {
  return Number.isNaN(value) ? NOT_RECORDED : value;
}
