/** The gradient of each tensor and variable for one target, at one step of a chunk. */

import {GRADIENT_STATISTICS, VARIABLE_STATISTICS, type Outcome, type Trace} from "../record.ts";
import type {FlowGraph} from "./graph.ts";

/** Statistics of one gradient at one step; NaN where the step did not measure it. */
export type Statistics = Readonly<Record<(typeof GRADIENT_STATISTICS)[number], number>>;

export interface Answer {
  readonly outcome: Outcome | "not_recorded";
  /** Row of the numbers; -1 unless the outcome is `value`. */
  readonly row: number;
}

const NOT_RECORDED: Answer = {outcome: "not_recorded", row: -1};

/** What the tape answered for one target. */
export interface Answers {
  /** For each edge of the graph, the answer for its tensor. */
  readonly edges: readonly Answer[];
  /** For each variable of the trace. */
  readonly variables: readonly Answer[];
  tensor(op: number, output: number): Answer;
}

export function answersFor(graph: FlowGraph, target: number): Answers {
  const {trace} = graph;
  const tensors = tensorAnswers(trace, target);
  const variables: Answer[] = trace.variables.map(() => NOT_RECORDED);
  for (const each of trace.variable_gradients) {
    if (each.target === target) {
      variables[each.variable] = {outcome: each.outcome, row: each.row ?? -1};
    }
  }
  const tensor = (op: number, output: number): Answer => tensors.get(tensorKey(op, output)) ?? NOT_RECORDED;
  const edges = graph.edges.map((edge) => {
    const own = edge.op < 0 ? NOT_RECORDED : tensor(edge.op, edge.output);
    return own.outcome === "not_recorded" && edge.variable >= 0 ? variables[edge.variable] : own;
  });
  return {edges, variables, tensor};
}

/** The target that most variables get a gradient from, the last of several: inner tapes come before the loss. */
export function mainTarget(trace: Trace): number {
  const counts = trace.targets.map(() => 0);
  for (const {target, outcome} of trace.variable_gradients) {
    counts[target] += outcome === "value" ? 1 : 0;
  }
  return Math.max(0, counts.lastIndexOf(Math.max(...counts)));
}

function tensorAnswers(trace: Trace, target: number): Map<number, Answer> {
  const answers = new Map<number, Answer>();
  for (const each of trace.tensor_gradients) {
    if (each.target === target) {
      answers.set(tensorKey(each.op, each.output), {outcome: each.outcome, row: each.row ?? -1});
    }
  }
  return answers;
}

/** Outputs of one op are far fewer than this. */
const OUTPUTS = 65536;

function tensorKey(op: number, output: number): number {
  return op * OUTPUTS + output;
}

/** The numbers of one step: a window on the numbers of its chunk. */
export class StepNumbers {
  readonly #gradients: Float32Array;
  readonly #variables: Float32Array;

  /** `position`: which of the chunk's steps; `steps`: how many it has. */
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
    const values = GRADIENT_STATISTICS.map((name, column) => [name, this.#gradients[row * width + column]]);
    return Object.fromEntries(values) as Statistics;
  }

  magnitude(row: number): Magnitude {
    const width = GRADIENT_STATISTICS.length;
    if (row < 0 || (row + 1) * width > this.#gradients.length) {
      return {kind: "unmeasured", norm: NaN};
    }
    const norm = this.#gradients[row * width];
    const kind = kindOf(norm, this.#gradients[row * width + 4], this.#gradients[row * width + 5]);
    return {kind, norm};
  }

  weightNorm(variable: number): number {
    return this.#variables[variable * VARIABLE_STATISTICS.length] ?? NaN;
  }

  updateNorm(variable: number): number {
    return this.#variables[variable * VARIABLE_STATISTICS.length + 1] ?? NaN;
  }

  /** Calls back with the norm of every row that has a finite one above zero. */
  eachNorm(callback: (norm: number) => void): void {
    for (let at = 0; at < this.#gradients.length; at += GRADIENT_STATISTICS.length) {
      const norm = this.#gradients[at];
      if (norm > 0 && Number.isFinite(norm)) {
        callback(norm);
      }
    }
  }
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
