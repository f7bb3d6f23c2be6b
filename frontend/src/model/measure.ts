/** The measure that the colour of an edge shows. */

import {formatNumber} from "./format.ts";
import type {Answers, StepNumbers} from "./gradients.ts";
import type {FlowGraph} from "./graph.ts";
import {START, widened, type Scale} from "./scale.ts";

/**
 * norm   the norm of the gradient
 * loss   the same as a share of the gradient at the loss
 * op     what the op at its end makes of the gradient: the norm here over the norm that arrives there
 * update the update of the variables that the op at its end uses, over their norm: the largest of them
 */
export type Measure = "norm" | "loss" | "op" | "update";

export const MEASURES: readonly Measure[] = ["norm", "loss", "op", "update"];

export const MEASURE_TITLES: Readonly<Record<Measure, string>> = {
  norm: "Norm of the gradient",
  loss: "Relative to the loss",
  op: "Relative to the op's output",
  update: "Update / weight of the layer",
};

/** A number for each edge whose gradient was measured; NaN for all others. */
export interface Measured {
  readonly measure: Measure;
  readonly edges: Float64Array;
  readonly scale: Scale;
}

/** An op that changes the norm by more is a finding, not a shade. */
const PER_OP: Scale = {low: -3, high: 3};

/** Around 0.001, which is usual. */
const PER_WEIGHT: Scale = {low: -6, high: 0};

/** `scale` is that of the norms, the same for all steps. */
export function measured(measure: Measure, graph: FlowGraph, answers: Answers, numbers: StepNumbers | null, scale: Scale | null): Measured {
  const norms = new Float64Array(answers.edges.length).fill(NaN);
  if (numbers !== null) {
    answers.edges.forEach(({row}, edge) => {
      norms[edge] = numbers.kind(row) === "finite" ? numbers.norm(row) : NaN;
    });
  }
  if (measure === "update") {
    return {measure, edges: updates(graph, numbers), scale: PER_WEIGHT};
  }
  if (measure === "op") {
    return {measure, edges: perOp(graph, norms), scale: PER_OP};
  }
  const atLoss = measure === "loss" ? normAtLoss(graph, norms) : 1;
  const shift = Math.round(Math.log10(atLoss));
  const shifted = scale === null ? START : {low: scale.low - shift, high: scale.high - shift};
  return {measure, edges: atLoss === 1 ? norms : norms.map((norm) => norm / atLoss), scale: measure === "loss" ? widened(shifted, 1, 1) : (scale ?? START)};
}

/** The largest norm on the edges into losses; 1, that of a loss with respect to itself, if none was measured. */
function normAtLoss(graph: FlowGraph, norms: Float64Array): number {
  const into = graph.nodeOfTarget.flatMap((node) => graph.incoming[node].map((edge) => norms[edge]));
  const largest = into.reduce((most, norm) => (norm > most ? norm : most), 0);
  return largest > 0 ? largest : 1;
}

function perOp(graph: FlowGraph, norms: Float64Array): Float64Array {
  const arriving = graph.nodes.map(({id, kind}) => {
    const out = graph.outgoing[id].map((edge) => norms[edge]).filter((norm) => norm > 0);
    return kind === "loss" ? 1 : out.length === 0 ? NaN : Math.max(...out);
  });
  return norms.map((norm, edge) => norm / arriving[graph.edges[edge].to]);
}

/** What these make of a variable is the variable, in another form. */
const SAME: ReadonlySet<string> = new Set(["Cast", "Identity", "Reshape", "Transpose", "ExpandDims"]);

/** What leads from a variable has its number, and so has all that meets it at an op. */
function updates(graph: FlowGraph, numbers: StepNumbers | null): Float64Array {
  const shares = graph.nodes.map(({kind, index}) => (kind === "variable" && numbers !== null ? share(numbers, index) : NaN));
  for (const {id, kind, index} of graph.nodes) {
    const [given] = graph.incoming[id];
    if (kind === "op" && given !== undefined && SAME.has(graph.trace.ops[index].type)) {
      shares[id] = shares[graph.edges[given].from];
    }
  }
  const meeting = graph.nodes.map(({id}) => Math.max(...graph.incoming[id].map((edge) => shares[graph.edges[edge].from]).filter((each) => each > 0)));
  return Float64Array.from(graph.edges, ({from, to}) => (shares[from] > 0 ? shares[from] : meeting[to] > 0 ? meeting[to] : NaN));
}

function share(numbers: StepNumbers, variable: number): number {
  return numbers.isFinite(variable) ? numbers.updateNorm(variable) / numbers.weightNorm(variable) : NaN;
}

/** A measured value in words. */
export function tellMeasured(measure: Measure, value: number): string {
  const told: Record<Measure, string> = {
    norm: `gradient norm ${formatNumber(value)}`,
    loss: `${formatNumber(value)} times the gradient at the loss`,
    op: `${formatNumber(value)} times the gradient at the op's output`,
    update: `changed by ${formatNumber(value)} of its size in this step`,
  };
  return told[measure];
}
