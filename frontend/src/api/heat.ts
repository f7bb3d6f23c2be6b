/** The cells of a heat map, in the form of the route `heat`: see docs/http.md. */

import type {Quantity} from "../model/heat.ts";
import {CLIP_STATISTICS, GRADIENT_STATISTICS, LOSS_SCALE_STATISTICS, VARIABLE_STATISTICS, type Trace} from "../record.ts";

export const NO_GRADIENT = -1;
export const NOT_RECORDED = -2;

const COLUMNS = GRADIENT_STATISTICS.length;
const [NORM, NANS, INFS] = (["norm", "nan_count", "inf_count"] as const).map((name) => GRADIENT_STATISTICS.indexOf(name));
const [BEFORE, AFTER] = (["before", "after"] as const).map((name) => CLIP_STATISTICS.indexOf(name));
const [SCALE, UPDATES] = (["scale", "updates"] as const).map((name) => LOSS_SCALE_STATISTICS.indexOf(name));
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

export type OfUpdates = "clip" | "scale" | "skipped";

export function isOfUpdates(quantity: Quantity): quantity is OfUpdates {
  return quantity === "clip" || quantity === "scale" || quantity === "skipped";
}

/** `[steps, variables]` of a chunk, for what is measured of the updates. For `base` see `baseOf`. */
export function ofUpdates(trace: Trace, chunk: Float32Array, steps: readonly number[], quantity: OfUpdates, base: number): Float32Array {
  const width = trace.variables.length;
  const values = new Float32Array(steps.length * width).fill(NOT_RECORDED);
  const rows = chunk.length / (steps.length * COLUMNS);
  const at = (step: number, row: number, column: number): number => chunk[(step * rows + row) * COLUMNS + column];
  const put = (step: number, variable: number, value: number): void => {
    values[step * width + variable] = value >= 0 ? value : NOT_RECORDED;
  };
  steps.forEach((number, step) => {
    for (const {row, variables} of quantity === "clip" ? (trace.clips ?? []) : []) {
      const before = at(step, row, BEFORE);
      const left = before === 0 ? 1 : at(step, row, AFTER) / before;
      for (const variable of variables) {
        const known = values[step * width + variable];
        put(step, variable, known === NOT_RECORDED ? left : known * left);
      }
    }
    for (const {row, optimizer} of quantity === "clip" ? [] : (trace.loss_scales ?? [])) {
      const value = quantity === "scale" ? at(step, row, SCALE) : number + 1 - at(step, row, UPDATES) - base;
      trace.movements.filter((each) => each.optimizer === optimizer).forEach(({variable}) => put(step, variable, value));
    }
  });
  return values;
}

/** What an optimizer seems to have skipped before a step: below zero if it has applied more updates than there were steps. */
export function baseOf({loss_scales}: Trace, chunk: Float32Array, step: number): number {
  const skipped = step + 1 - chunk[loss_scales[0].row * COLUMNS + UPDATES];
  return skipped < 0 ? skipped : 0;
}

/** `[steps, variables]` of a chunk of variables. */
export function valuesOf(chunk: Float32Array, quantity: "weight" | "update" | "ratio"): Float32Array {
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
