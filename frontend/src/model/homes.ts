/** The scope in which each node is drawn: that of its name, unless TensorFlow's names do not help a reader. */

import type {FlowGraph, FlowNode} from "./graph.ts";
import {commonScope, isWithin, lastPart, scopeOf} from "./names.ts";

/** Ops without a scope may depend on others without one; such chains are short. */
const ROUNDS = 6;

/** The scope of each node: for ops by name or, if they have none, by neighbours; for variables where they are used. */
export function homesOf(graph: FlowGraph): string[] {
  const homes = graph.nodes.map((node) => (node.kind === "op" ? scopeOf(node.name) : ""));
  const layerScopes = scopesByLayerName(graph);
  for (const node of graph.nodes) {
    if (node.kind === "variable") {
      homes[node.id] = homeOfVariable(graph, node, homes, layerScopes);
    }
  }
  rehomeOrphans(graph, homes);
  return homes;
}

/**
 * In the order of the trace. Hundreds may share a name: every block of a model may use the same names for its layers.
 */
function scopesByLayerName(graph: FlowGraph): Map<string, Set<string>> {
  const scopes = new Map<string, Set<string>>();
  for (const {name, scope} of graph.trace.layers) {
    const known = scopes.get(name);
    if (known === undefined) {
      scopes.set(name, new Set([scope]));
    } else {
      known.add(scope);
    }
  }
  return scopes;
}

/**
 * The scope of the layer that owns the variable, if that uses it; otherwise the scope that contains all its users;
 * otherwise that of the first user. An unused variable is placed next to its layer, or in a separate scope.
 */
function homeOfVariable(
  graph: FlowGraph,
  node: FlowNode,
  homes: readonly string[],
  layerScopes: ReadonlyMap<string, ReadonlySet<string>>,
): string {
  const owner = scopeOf(node.name);
  const layers = layerScopes.get(lastPart(owner)) ?? layerScopes.get(owner) ?? NO_LAYERS;
  const users = graph.outgoing[node.id].map((edge) => homes[graph.edges[edge].to]);
  if (users.length === 0) {
    return [...layers][0] ?? owner;
  }
  const layer = outermostOf(layers, users);
  const within = layer === undefined ? users : users.filter((user) => isWithin(user, layer));
  return within.reduce(commonScope) || users.find((user) => user !== "") || "";
}

const NO_LAYERS: ReadonlySet<string> = new Set();

/** The outermost of some scopes around the first user that is in any of them. */
function outermostOf(scopes: ReadonlySet<string>, users: readonly string[]): string | undefined {
  for (const user of users) {
    let found: string | undefined;
    for (let at = user; at !== ""; at = scopeOf(at)) {
      found = scopes.has(at) ? at : found;
    }
    if (found !== undefined) {
      return found;
    }
  }
  return undefined;
}

/** Ops that custom gradients and function calls create outside of every scope join their neighbours. */
function rehomeOrphans(graph: FlowGraph, homes: string[]): void {
  let orphans = graph.nodes.filter((node) => node.kind === "op" && homes[node.id] === "");
  for (let round = 0; round < ROUNDS && orphans.length > 0; round += 1) {
    const found = orphans.map((node) => neighboursScope(graph, node, homes));
    orphans.forEach((node, index) => {
      homes[node.id] = found[index];
    });
    orphans = orphans.filter((node) => homes[node.id] === "");
  }
}

function neighboursScope(graph: FlowGraph, node: FlowNode, homes: readonly string[]): string {
  const scopes = [
    ...graph.incoming[node.id].map((edge) => homes[graph.edges[edge].from]),
    ...graph.outgoing[node.id].map((edge) => homes[graph.edges[edge].to]),
  ].filter((scope) => scope !== "");
  return scopes.length === 0 ? "" : scopes.reduce(commonScope);
}
