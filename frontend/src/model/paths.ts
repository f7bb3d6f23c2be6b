/** The path of a finding: from its variables through the op that causes it to the loss. */

import type {Finding} from "../record.ts";
import type {FlowGraph} from "./graph.ts";
import {ancestorsOf, type Tree} from "./tree.ts";

export interface Path {
  /** Nodes in path order, the first variable first, the loss last if the path gets there. */
  readonly nodes: readonly number[];
  /** Edges between them. */
  readonly edges: ReadonlySet<number>;
  /** The node of the op that causes the finding; -1 if there is none. */
  readonly culprit: number;
  /** All variables of the finding, on the path or not. */
  readonly variables: readonly number[];
}

export function pathOf(graph: FlowGraph, finding: Finding): Path {
  const indices = new Map(graph.trace.variables.map((variable, index) => [variable.name, index]));
  const variables = finding.variables
    .map((name) => graph.nodeOfVariable[indices.get(name) ?? -1] ?? -1)
    .filter((node) => node >= 0);
  const way = new Set([...variables.slice(0, 1), ...finding.path.map((op) => graph.nodeOfOp[op] ?? -1)]);
  const nodes = [...way].filter((node) => node >= 0);
  const target = graph.trace.targets[finding.target];
  if (target !== undefined && target.op >= 0 && nodes.includes(graph.nodeOfOp[target.op])) {
    nodes.push(graph.nodeOfTarget[finding.target]);
  }
  return {nodes, edges: edgesAlong(graph, nodes), culprit: graph.nodeOfOp[finding.culprit] ?? -1, variables};
}

function edgesAlong(graph: FlowGraph, nodes: readonly number[]): Set<number> {
  const edges = new Set<number>();
  for (let at = 0; at + 1 < nodes.length; at += 1) {
    for (const edge of graph.outgoing[nodes[at]]) {
      if (graph.edges[edge].to === nodes[at + 1]) {
        edges.add(edge);
      }
    }
  }
  return edges;
}

/** The items of a path, visible or not: its nodes and variables, and every enclosing group. */
export function itemsOnPath(tree: Tree, path: Path): Set<number> {
  const items = new Set<number>([...path.nodes, ...path.variables]);
  for (const node of [...items]) {
    for (const group of ancestorsOf(tree, node)) {
      items.add(group);
    }
  }
  return items;
}

/** The main item of a path: the op that causes the finding, or the start; -1 if it is empty. */
export function mainOf(path: Path): number {
  return path.culprit >= 0 ? path.culprit : (path.nodes[0] ?? -1);
}

/** Edges that lead from one of some nodes to another of them. */
export function edgesAmong(graph: FlowGraph, nodes: ReadonlySet<number>): Set<number> {
  return new Set(graph.edges.flatMap(({from, to}, edge) => (nodes.has(from) && nodes.has(to) ? [edge] : [])));
}
