/** The terms over the steps, in the form of the route `terms`: see docs/http.md. */

import {GRADIENT_STATISTICS, type Trace} from "../record.ts";
import {NOT_RECORDED, told} from "./heat.ts";

const COLUMNS = GRADIENT_STATISTICS.length;

export interface TermKey {
  readonly name: string;
  /** Whether it is about the value of a term, and not about a gradient. */
  readonly isValue: boolean;
  readonly row: number;
}

/** The rows of the terms and of their gradients, under names that identify them in another trace. */
export function keysOfTerms(trace: Trace): readonly TermKey[] {
  const {terms = [], term_gradients: gradients = [], targets, variables} = trace;
  const named = terms.map(({target, name}) => `${targets[target].name}\n${name}`);
  return [
    ...terms.map(({row}, at) => ({name: named[at], isValue: true, row})),
    ...gradients.map(({term, variable, row}) => ({name: `${named[term]}\n${variables[variable].name}`, isValue: false, row})),
  ];
}

/** `[steps, keys]` of a chunk of that trace. */
export function termNumbers(trace: Trace, wanted: readonly TermKey[], chunk: Float32Array, steps: number): Float32Array {
  const rows = new Map(keysOfTerms(trace).map(({name, row}) => [name, row]));
  const count = steps === 0 ? 0 : chunk.length / (steps * COLUMNS);
  const values = new Float32Array(steps * wanted.length);
  for (let step = 0; step < steps; step += 1) {
    wanted.forEach(({name, isValue}, place) => {
      const row = rows.get(name) ?? -1;
      const at = (step * count + row) * COLUMNS;
      const isThere = row >= 0 && row < count;
      values[step * wanted.length + place] = isValue ? (isThere ? chunk[at] : NaN) : isThere ? told(chunk, at) : NOT_RECORDED;
    });
  }
  return values;
}
