/** Which scope each node is drawn in. Names say it, except where TensorFlow's names do not help a reader. */

import type {FlowGraph, FlowNode} from "./graph.ts";
import {commonScope, isWithin, lastPart, scopeOf} from "./names.ts";

/** An op without a scope may depend on others without one; their chains are short. */
const ROUNDS = 6;

/** The scope of each node: of ops by name or, lacking that, by neighbours; of variables where they are used. */
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

/** In the order of the trace. A name may belong to hundreds: every block of a model may call its layers alike. */
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
 * The scope of the layer that owns the variable if that uses it; else the scope that holds all its users; else that
 * of the first user. A variable that nobody uses stands beside its layer, or in a scope of its own.
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

/** The outermost of some scopes around the first user that is in any. */
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

/** Ops that custom gradients and function calls make outside of every scope join their neighbours. */
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
