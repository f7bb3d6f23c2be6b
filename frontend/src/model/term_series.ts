/** The terms of a loss over the steps, in the form of the charts: their shares of the gradient, norms and values. */

import {layerOf} from "./terms.ts";
import {termsOf} from "./term_view.ts";
import type {Series} from "./series.ts";
import type {Trace} from "../record.ts";

/**
 * share  of the gradient: the term's norm divided by the sum of the norms of all terms
 * norm   of the term's gradient
 * value  what the term contributes to the loss
 */
export type TermQuantity = "share" | "norm" | "value";

export const TERM_QUANTITIES: readonly {readonly quantity: TermQuantity; readonly title: string}[] = [
  {quantity: "share", title: "Share of the gradient"},
  {quantity: "norm", title: "Norm of the gradient"},
  {quantity: "value", title: "Value"},
];

/** The layers that the terms of a loss reach, in the order of the variables. */
export function layersReached(trace: Trace, target: number): readonly string[] {
  const terms = new Set(termsOf(trace, target));
  const names = trace.term_gradients.filter(({term}) => terms.has(term)).map(({variable}) => layerOf(trace.variables[variable].name));
  return [...new Set(names)];
}

/**
 * One series for each term of the loss. `numbers` are the response of the route `terms`; `layer`, if it is not null,
 * restricts shares and norms to its variables.
 */
export function termSeries(trace: Trace, target: number, numbers: Float32Array, quantity: TermQuantity, layer: string | null): readonly Series[] {
  const terms = termsOf(trace, target);
  const width = trace.terms.length + trace.term_gradients.length;
  const columns = width === 0 ? 0 : numbers.length / width;
  const at = Array.from({length: columns}, (_, column) => column * width);
  if (quantity === "value") {
    return terms.map((term, colour) => seriesOf(trace.terms[term].name, at.map((start) => numbers[start + term]), colour));
  }
  const rows = terms.map((term) =>
    trace.term_gradients.flatMap((each, place) =>
      each.term === term && (layer === null || layerOf(trace.variables[each.variable].name) === layer) ? [trace.terms.length + place] : [],
    ),
  );
  const norms = rows.map((own) => at.map((start) => together(own.map((row) => numbers[start + row]))));
  return terms.map((term, colour) => {
    const values = norms[colour].map((norm, step) => (quantity === "norm" ? norm : norm / norms.reduce((sum, each) => sum + (each[step] ?? 0), 0)));
    return seriesOf(trace.terms[term].name, values, colour);
  });
}

/** The step that a column of the response stands for. */
export function stepsOf(columns: number, steps: readonly number[]): readonly number[] {
  return Array.from({length: columns}, (_, column) => steps[Math.floor(((column + 1) * steps.length) / columns) - 1]);
}

/** The norm of several gradients as one; 0 if there is none, NaN if one was not measured or is not finite. */
function together(norms: readonly number[]): number {
  return norms.some((norm) => !(norm >= 0 && norm < Infinity)) ? NaN : Math.hypot(...norms);
}

function seriesOf(label: string, values: readonly number[], colour: number): Series {
  return {
    label,
    values: values.map((value) => (Number.isFinite(value) ? value : null)),
    signs: values.map((value) => (value === 0 ? "0" : value < 0 ? "−" : Number.isNaN(value) ? "?" : null)),
    colour,
  };
}
