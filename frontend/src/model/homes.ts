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

function scopesByLayerName(graph: FlowGraph): Map<string, string[]> {
  const scopes = new Map<string, string[]>();
  for (const layer of graph.trace.layers) {
    scopes.set(layer.name, [...(scopes.get(layer.name) ?? []), layer.scope]);
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
  layerScopes: ReadonlyMap<string, readonly string[]>,
): string {
  const owner = scopeOf(node.name);
  const layers = layerScopes.get(lastPart(owner)) ?? layerScopes.get(owner) ?? [];
  const users = graph.outgoing[node.id].map((edge) => homes[graph.edges[edge].to]);
  if (users.length === 0) {
    return layers[0] ?? owner;
  }
  const layer = layers.find((scope) => users.some((user) => isWithin(user, scope)));
  const within = layer === undefined ? users : users.filter((user) => isWithin(user, layer));
  return within.reduce(commonScope) || users.find((user) => user !== "") || "";
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
