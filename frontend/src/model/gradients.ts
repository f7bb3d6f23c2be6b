/** The gradient of each tensor and variable for one target, at one step of a chunk. */

import {GRADIENT_STATISTICS, RANGE_STATISTICS, VARIABLE_STATISTICS, type Outcome, type Trace} from "../record.ts";
import type {FlowGraph} from "./graph.ts";

/** Statistics of one gradient at one step; NaN if the step did not measure it. */
export type Statistics = Readonly<Record<(typeof GRADIENT_STATISTICS)[number], number>>;

/** Whether a gradient has elements that are not finite, and no others: it has no size then. */
export function nothingFinite({norm, zero_fraction, nan_count, inf_count}: Statistics): boolean {
  return nan_count + inf_count > 0 && norm === 0 && zero_fraction === 0;
}

export interface Answer {
  readonly outcome: Outcome | "not_recorded";
  /** Its row of statistics; -1 unless the outcome is `value`. */
  readonly row: number;
}

const NOT_RECORDED: Answer = {outcome: "not_recorded", row: -1};

/** The tape's answers for one target. */
export interface Answers {
  /** For each edge of the graph, the answer for its tensor. */
  readonly edges: readonly Answer[];
  /** For each variable of the trace. */
  readonly variables: readonly Answer[];
  tensor(op: number, output: number): Answer;
}

export function answersFor(graph: FlowGraph, target: number): Answers {
  const {trace} = graph;
  const tensor = tensorAnswers(trace, target);
  const variables: Answer[] = trace.variables.map(() => NOT_RECORDED);
  for (const each of trace.variable_gradients) {
    if (each.target === target) {
      variables[each.variable] = {outcome: each.outcome, row: each.row ?? -1};
    }
  }
  const edges = graph.edges.map((edge) => {
    const own = edge.op < 0 ? NOT_RECORDED : tensor(edge.op, edge.output);
    return own.outcome === "not_recorded" && edge.variable >= 0 ? variables[edge.variable] : own;
  });
  return {edges, variables, tensor};
}

/** The target from which most variables get a gradient, the last of several: inner tapes come before the loss. */
export function mainTarget(trace: Trace): number {
  const counts = trace.targets.map(() => 0);
  for (const {target, outcome} of trace.variable_gradients) {
    counts[target] += outcome === "value" ? 1 : 0;
  }
  return Math.max(0, counts.lastIndexOf(Math.max(...counts)));
}

function tensorAnswers(trace: Trace, target: number): (op: number, output: number) => Answer {
  // Nearly all ops have one output.
  const first: (Answer | undefined)[] = new Array(trace.ops.length);
  const others = new Map<number, Answer>();
  for (const {target: of, op, output, outcome, row} of trace.tensor_gradients) {
    if (of === target) {
      const answer: Answer = {outcome, row: row ?? -1};
      output === 0 ? (first[op] = answer) : others.set(tensorKey(op, output), answer);
    }
  }
  return (op, output) => (output === 0 ? first[op] : others.get(tensorKey(op, output))) ?? NOT_RECORDED;
}

/** There are fewer outputs of one op than this. */
const OUTPUTS = 65536;

function tensorKey(op: number, output: number): number {
  return op * OUTPUTS + output;
}

const [SMALLEST, LARGEST] = (["smallest", "largest"] as const).map((name) => RANGE_STATISTICS.indexOf(name));

/** The statistics of one step: a view of the statistics of its chunk. */
export class StepNumbers {
  readonly #gradients: Float32Array;
  readonly #variables: Float32Array;

  /** `position`: the index of the step in the chunk; `steps`: the number of its steps. */
  constructor(gradients: Float32Array, variables: Float32Array, position: number, steps: number) {
    this.#gradients = slice(gradients, position, steps);
    this.#variables = slice(variables, position, steps);
  }

  /** All statistics of a row; null if there is no such row. */
  gradient(row: number): Statistics | null {
    const width = GRADIENT_STATISTICS.length;
    if (row < 0 || (row + 1) * width > this.#gradients.length) {
      return null;
    }
    const values: Record<string, number> = {};
    GRADIENT_STATISTICS.forEach((name, column) => (values[name] = this.#gradients[row * width + column]));
    return values as Statistics;
  }

  /** The smallest and the largest number in a row with a range; NaN if nothing finite was measured. */
  range(row: number): readonly [number, number] {
    const at = row * GRADIENT_STATISTICS.length;
    return [this.#gradients[at + SMALLEST] ?? NaN, this.#gradients[at + LARGEST] ?? NaN];
  }

  magnitude(row: number): Magnitude {
    return {kind: this.kind(row), norm: this.norm(row)};
  }

  /** Over the finite elements; NaN if there is no such row, or if the step did not measure it. */
  norm(row: number): number {
    return row < 0 ? NaN : (this.#gradients[row * GRADIENT_STATISTICS.length] ?? NaN);
  }

  kind(row: number): MagnitudeKind {
    const at = row * GRADIENT_STATISTICS.length;
    if (row < 0 || at + GRADIENT_STATISTICS.length > this.#gradients.length) {
      return "unmeasured";
    }
    return kindOf(this.#gradients[at], this.#gradients[at + 4], this.#gradients[at + 5]);
  }

  weightNorm(variable: number): number {
    return this.#variables[variable * VARIABLE_STATISTICS.length] ?? NaN;
  }

  updateNorm(variable: number): number {
    return this.#variables[variable * VARIABLE_STATISTICS.length + 1] ?? NaN;
  }

  /** Whether no element of a variable is known to be NaN or infinite after the step. */
  isFinite(variable: number): boolean {
    return !(this.#variables[variable * VARIABLE_STATISTICS.length + 3] > 0);
  }
}

/** The smallest and the largest finite norm above zero among rows of statistics; Infinity and 0 if there is none. */
export function extentOf(gradients: Float32Array): readonly [number, number] {
  let [smallest, largest] = [Infinity, 0];
  for (let at = 0; at < gradients.length; at += GRADIENT_STATISTICS.length) {
    const norm = gradients[at];
    if (norm > 0 && norm < Infinity) {
      smallest = norm < smallest ? norm : smallest;
      largest = norm > largest ? norm : largest;
    }
  }
  return [smallest, largest];
}

export type MagnitudeKind = "finite" | "zero" | "nan" | "inf" | "unmeasured";

export interface Magnitude {
  readonly kind: MagnitudeKind;
  /** Over the finite elements. */
  readonly norm: number;
}

function kindOf(norm: number, nans: number, infs: number): MagnitudeKind {
  if (nans > 0) {
    return "nan";
  }
  if (infs > 0 || norm === Infinity) {
    return "inf";
  }
  if (Number.isNaN(norm)) {
    return "unmeasured";
  }
  return norm === 0 ? "zero" : "finite";
}

function slice(numbers: Float32Array, position: number, steps: number): Float32Array {
  const size = numbers.length / steps;
  return numbers.subarray(position * size, (position + 1) * size);
}
