/**
 * Where the gradient flows and where it does not: what the structure and the diagnosis say about each edge and node,
 * for any step. Statistics are the business of `gradients`.
 */

import {explainedIn, namesIn} from "./findings.ts";
import type {Diagnosis, VariableReport} from "../record.ts";
import type {Answers} from "./gradients.ts";
import {isOpen, type FlowGraph} from "./graph.ts";

/**
 * gradient    a gradient was recorded here: its number says the rest
 * broken      on the way of a variable that gets no gradient, up to the cut
 * lost        beyond the cut: it would have flowed
 * off         no gradient, and no variable misses it
 * unrecorded  not requested, or not known
 */
export type EdgeFlow = "gradient" | "broken" | "lost" | "off" | "unrecorded";

/**
 * blocking  a finding of severity error names it
 * warning   a finding of severity warning names it
 * aside     a gradient that a variable misses ends here too, but no finding names it: a side path of a layer
 */
export type Mark = "blocking" | "warning" | "aside" | null;

/** Where the gradient ends at an edge: on the path of a finding, or on another one. */
export type Cut = "path" | "aside" | null;

export interface Flow {
  readonly edges: readonly EdgeFlow[];
  readonly cuts: readonly Cut[];
  readonly marks: readonly Mark[];
  /** Nodes of variables that get no gradient but should. */
  readonly missing: ReadonlySet<number>;
  /** Nodes of variables whose gradient is not finite. */
  readonly notFinite: ReadonlySet<number>;
  /** Those with NaN. */
  readonly nan: ReadonlySet<number>;
  /** Nodes of variables whose gradient is zero, vanishing or exploding, without an explanation. */
  readonly weak: ReadonlySet<number>;
}

const WITHOUT_GRADIENT: ReadonlySet<string> = new Set(["disconnected", "unused", "error"]);
const NOT_FINITE: ReadonlySet<string> = new Set(["nan", "inf"]);
const NAN: ReadonlySet<string> = new Set(["nan"]);
const WEAK: ReadonlySet<string> = new Set(["zero", "vanishing", "exploding"]);

export function flowOf(graph: FlowGraph, answers: Answers, diagnosis: Diagnosis | null): Flow {
  const missing = variablesOf(graph, diagnosis, WITHOUT_GRADIENT);
  const [notFinite, nan, weak] = [NOT_FINITE, NAN, WEAK].map((statuses) => variablesOf(graph, diagnosis, statuses));
  const live = reach(graph, missing, (edge) => isOpen(graph.edges[edge].passes));
  const blocked = reach(graph, withAnOpToBlame(graph, missing, diagnosis), (edge) => isOpen(graph.edges[edge].passes));
  const cuts = graph.edges.map((edge) => blocked.has(edge.from) && !isOpen(edge.passes));
  const behind = graph.edges.filter((_, edge) => cuts[edge]).map((edge) => edge.to);
  const lost = reach(graph, new Set(behind), () => true);
  const edges = graph.edges.map((edge, id): EdgeFlow => {
    const {outcome} = answers.edges[id];
    if (cuts[id] || (live.has(edge.from) && isOpen(edge.passes) && outcome !== "value")) {
      return "broken";
    }
    if (outcome === "value") {
      return isOpen(edge.passes) ? "gradient" : "off";
    }
    if (lost.has(edge.from)) {
      return "lost";
    }
    return outcome === "none" || !isOpen(edge.passes) ? "off" : "unrecorded";
  });
  return {edges, ...marksOf(graph, cuts, diagnosis), missing, notFinite, nan, weak};
}

/** Nodes of the variables with some statuses, except those with only information. */
function variablesOf(graph: FlowGraph, diagnosis: Diagnosis | null, statuses: ReadonlySet<string>): Set<number> {
  const explained = explainedIn(diagnosis);
  const found = new Set<number>();
  diagnosis?.variables.forEach((variable: VariableReport, index) => {
    const node = graph.nodeOfVariable[index] ?? -1;
    if (node >= 0 && statuses.has(variable.status) && !explained.has(variable.name)) {
      found.add(node);
    }
  });
  return found;
}

/** Without variables whose findings all name no op: for example if the tape recorded nothing of them. */
function withAnOpToBlame(graph: FlowGraph, missing: ReadonlySet<number>, diagnosis: Diagnosis | null): Set<number> {
  const elsewhere = new Set(namesIn(diagnosis, ({severity, culprit}) => severity !== "info" && culprit < 0));
  namesIn(diagnosis, ({severity, culprit}) => severity !== "info" && culprit >= 0).forEach((name) => elsewhere.delete(name));
  const innocent = (diagnosis?.variables ?? []).flatMap(({name}, index) => (elsewhere.has(name) ? graph.nodeOfVariable[index] : []));
  return new Set([...missing].filter((node) => !innocent.includes(node)));
}

/** All nodes that can be reached along forward edges, including the starting nodes. */
export function reach(graph: FlowGraph, from: ReadonlySet<number>, follows: (edge: number) => boolean): Set<number> {
  const seen = new Set(from);
  const queue = [...from];
  for (let at = 0; at < queue.length; at += 1) {
    for (const edge of graph.outgoing[queue[at]]) {
      const next = graph.edges[edge].to;
      if (!seen.has(next) && follows(edge)) {
        seen.add(next);
        queue.push(next);
      }
    }
  }
  return seen;
}

/** Marks the op that a finding names, and if no finding covers a cut, faintly the op at the cut. */
function marksOf(graph: FlowGraph, isCut: readonly boolean[], diagnosis: Diagnosis | null): Pick<Flow, "marks" | "cuts"> {
  const marks: Mark[] = graph.nodes.map(() => null);
  const explained = new Set<number>();
  for (const finding of diagnosis?.findings ?? []) {
    const node = graph.nodeOfOp[finding.culprit] ?? -1;
    if (node >= 0 && finding.severity !== "info") {
      explained.add(node);
      finding.path.forEach((op) => explained.add(graph.nodeOfOp[op]));
      if (marks[node] !== "blocking") {
        marks[node] = finding.severity === "error" ? "blocking" : "warning";
      }
    }
  }
  const cuts = graph.edges.map(({to}, id): Cut => (!isCut[id] ? null : explained.has(to) ? "path" : "aside"));
  graph.edges.forEach(({to}, id) => {
    if (cuts[id] === "aside") {
      marks[to] ??= "aside";
    }
  });
  return {marks, cuts};
}

/** The contents of each item, by id; for nodes, the node itself. */
export interface Troubles {
  readonly blocking: Int32Array;
  readonly warnings: Int32Array;
  readonly missing: Int32Array;
  readonly notFinite: Int32Array;
  readonly nan: Int32Array;
}

/** Counts, summed up from the nodes to every enclosing group. */
export function troublesOf(flow: Flow, items: readonly {readonly parent: number}[]): Troubles {
  const troubles: Troubles = {
    blocking: new Int32Array(items.length),
    warnings: new Int32Array(items.length),
    missing: new Int32Array(items.length),
    notFinite: new Int32Array(items.length),
    nan: new Int32Array(items.length),
  };
  const count = (counts: Int32Array, node: number): void => {
    for (let at = node; at >= 0; at = items[at].parent) {
      counts[at] += 1;
    }
  };
  flow.marks.forEach((mark, node) => {
    if (mark === "blocking" || mark === "warning") {
      count(mark === "blocking" ? troubles.blocking : troubles.warnings, node);
    }
  });
  flow.missing.forEach((node) => count(troubles.missing, node));
  flow.notFinite.forEach((node) => count(troubles.notFinite, node));
  flow.nan.forEach((node) => count(troubles.nan, node));
  flow.weak.forEach((node) => count(troubles.warnings, node));
  return troubles;
}
