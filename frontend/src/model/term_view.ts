/** The graph as a single term of a loss sees it: its gradient where it was measured, and its share of the gradient. */

import type {Answer, Answers, StepNumbers} from "./gradients.ts";
import {isOpen, type FlowGraph} from "./graph.ts";
import type {Tree} from "./tree.ts";
import type {Trace} from "../record.ts";

/** Indices of the terms of a loss among those of the trace; none if they were not measured. */
export function termsOf(trace: Trace, target: number): readonly number[] {
  // Older logs have none.
  return (trace.terms ?? []).flatMap((term, index) => (term.target === target ? [index] : []));
}

/** The term of a loss with a name; -1 if there is none. */
export function termNamed(trace: Trace, target: number, name: string): number {
  return termsOf(trace, target).find((term) => trace.terms[term].name === name) ?? -1;
}

const NONE: Answer = {outcome: "none", row: -1};
const NOT_RECORDED: Answer = {outcome: "not_recorded", row: -1};

/**
 * The tape's answers for one term alone. They are known for variables and for the outputs of layers; elsewhere only that
 * there is none: where the whole loss gets none, and where nothing leads to the term.
 */
export function answersForTerm(graph: FlowGraph, term: number, whole: Answers): Answers {
  const {trace} = graph;
  const variables = whole.variables.map((answer) => (answer.outcome === "value" ? NONE : answer));
  for (const each of trace.term_gradients) {
    if (each.term === term) {
      variables[each.variable] = {outcome: "value", row: each.row};
    }
  }
  const outputs = new Map<string, Answer>();
  for (const {term: of, op, output, row} of trace.term_tensors ?? []) {
    if (of === term) {
      outputs.set(`${op} ${output}`, row === null ? NONE : {outcome: "value", row});
    }
  }
  const tensor = (op: number, output: number): Answer => {
    const known = outputs.get(`${op} ${output}`);
    return known ?? (whole.tensor(op, output).outcome === "none" ? NONE : NOT_RECORDED);
  };
  const leads = leadingTo(graph, term);
  const edges = graph.edges.map((edge, id) => {
    if (leads !== null && !leads.before.has(edge.to) && !leads.after.has(edge.from)) {
      return NONE;
    }
    const own = edge.op < 0 ? NOT_RECORDED : tensor(edge.op, edge.output);
    const answer = own.outcome === "not_recorded" && edge.variable >= 0 ? variables[edge.variable] : own;
    return answer.outcome === "not_recorded" && whole.edges[id].outcome === "none" ? NONE : answer;
  });
  return {edges, variables, tensor};
}

/** The nodes on the way to a term, and from it to the loss, itself among both; null if several ops compute it. */
function leadingTo(graph: FlowGraph, term: number): {readonly before: ReadonlySet<number>; readonly after: ReadonlySet<number>} | null {
  const start = graph.nodeOfOp[graph.trace.terms[term].op] ?? -1;
  if (start < 0) {
    return null;
  }
  const before = walked(start, (node) => graph.incoming[node].filter((edge) => isOpen(graph.edges[edge].passes)).map((edge) => graph.edges[edge].from));
  const after = walked(start, (node) => graph.outgoing[node].map((edge) => graph.edges[edge].to));
  return {before, after};
}

function walked(start: number, next: (node: number) => readonly number[]): ReadonlySet<number> {
  const seen = new Set([start]);
  for (const node of seen) {
    next(node).forEach((each) => seen.add(each)); // the set grows while it is walked
  }
  return seen;
}

/** For each item of the tree, what one term gives the variables in it. */
export interface Parts {
  /** Norm of the term's gradient; NaN if there is no variable that any term reaches, or if it is not finite. */
  readonly norms: Float64Array;
  /** This norm divided by the sum of the norms of all terms of the loss; NaN likewise, and if all are zero. */
  readonly shares: Float64Array;
}

export function partsOf(tree: Tree, target: number, term: number, numbers: StepNumbers): Parts {
  const {graph, items} = tree;
  const {trace} = graph;
  const terms = termsOf(trace, target);
  const place = new Map(terms.map((each, at) => [each, at]));
  const squares = terms.map(() => new Float64Array(items.length).fill(NaN));
  for (const each of trace.term_gradients) {
    const at = place.get(each.term);
    const node = graph.nodeOfVariable[each.variable] ?? -1;
    if (at === undefined || node < 0) {
      continue;
    }
    const kind = numbers.kind(each.row);
    const square = kind === "finite" || kind === "zero" ? numbers.norm(each.row) ** 2 : kind === "unmeasured" ? NaN : Infinity;
    for (let item = node; item >= 0 && !Number.isNaN(square); item = items[item].parent) {
      squares[at][item] = (Number.isNaN(squares[at][item]) ? 0 : squares[at][item]) + square;
    }
  }
  const own = place.get(term) ?? -1;
  const norms = new Float64Array(items.length).fill(NaN);
  const shares = new Float64Array(items.length).fill(NaN);
  for (let item = 0; item < items.length; item += 1) {
    const each = squares.map((sums) => Math.sqrt(sums[item]));
    if (own < 0 || each.every(Number.isNaN)) {
      continue;
    }
    const total = each.reduce((sum, norm) => sum + (Number.isNaN(norm) ? 0 : norm), 0);
    const norm = Number.isNaN(each[own]) ? 0 : each[own];
    norms[item] = Number.isFinite(norm) ? norm : NaN;
    shares[item] = total > 0 && total < Infinity ? norm / total : NaN;
  }
  return {norms, shares};
}
