/**
 * The nodes of a graph in groups that open and close. An *item* is a node, by its id, or a group, by an id above
 * all nodes; the root is a group that is always open.
 */

import type {Layer} from "../record.ts";
import {namedClusters, stretches, type Cluster} from "./cluster.ts";
import type {FlowGraph} from "./graph.ts";
import {homesOf} from "./homes.ts";
import {lastPart, scopeOf} from "./names.ts";

export interface Item {
  readonly id: number;
  readonly label: string;
  /** Full name: a node's own name, a group's scope; for an artificial group, a unique name. */
  readonly name: string;
  readonly parent: number;
  /** For groups, the items inside. */
  readonly children: readonly number[];
  /** The layer whose scope this is. */
  readonly layer: Layer | null;
  readonly depth: number;
  /** Number of nodes inside; 1 for a node. */
  readonly size: number;
}

export interface Tree {
  readonly graph: FlowGraph;
  /** By id. */
  readonly items: readonly Item[];
  readonly root: number;
}

interface Draft {
  id: number;
  label: string;
  name: string;
  parent: Draft | null;
  children: Draft[];
  layer: Layer | null;
}

export function isGroup(tree: Tree, item: number): boolean {
  return item >= tree.graph.nodes.length;
}

/** The groups around an item, innermost first, without the root. */
export function ancestorsOf(tree: Tree, item: number): number[] {
  const ancestors: number[] = [];
  for (let at = tree.items[item].parent; at !== tree.root && at >= 0; at = tree.items[at].parent) {
    ancestors.push(at);
  }
  return ancestors;
}

export function treeOf(graph: FlowGraph): Tree {
  const root = scopeTree(graph, homesOf(graph));
  clusterLargeGroups(graph, root);
  mergeSingles(root);
  return freeze(graph, root);
}

/** Of nodes: most items are. */
const NO_CHILDREN: never[] = [];

function draft(label: string, name: string, parent: Draft | null): Draft {
  return {id: -1, label, name, parent, children: [], layer: null};
}

function leaf(id: number, label: string, name: string, parent: Draft): Draft {
  return {id, label, name, parent, children: NO_CHILDREN, layer: null};
}

function scopeTree(graph: FlowGraph, homes: readonly string[]): Draft {
  const root = draft("", "", null);
  const groups = new Map<string, Draft>([["", root]]);
  const layers = new Map(graph.trace.layers.map((layer) => [layer.scope, layer]));
  for (const home of homes) {
    if (!groups.has(home)) {
      addScope(groups, layers, home);
    }
  }
  for (const node of graph.nodes) {
    // TensorFlow opens a scope with the op's own name for its parts; the op is placed inside it.
    const home = node.kind === "op" && groups.has(node.name) ? node.name : homes[node.id];
    const parent = groups.get(home) as Draft;
    parent.children.push(leaf(node.id, node.label, node.name, parent));
  }
  return root;
}

function addScope(groups: Map<string, Draft>, layers: ReadonlyMap<string, Layer>, scope: string): void {
  const missing: string[] = [];
  for (let at = scope; !groups.has(at); at = scopeOf(at)) {
    missing.push(at);
  }
  for (const name of missing.reverse()) {
    const parent = groups.get(scopeOf(name)) as Draft;
    const layer = layers.get(name) ?? null;
    const group = draft(layer?.name || lastPart(name), name, parent);
    group.layer = layer;
    parent.children.push(group);
    groups.set(name, group);
  }
}

/** Inserts artificial groups between a large group and its children. */
function clusterLargeGroups(graph: FlowGraph, root: Draft): void {
  for (const group of inOrder(root)) {
    if (group.children.length === 0) {
      continue;
    }
    regroup(group, namedClusters(graph, group.children));
    for (let long = stretches(graph, group.children); long.length > 0; long = stretches(graph, group.children)) {
      regroup(group, long);
    }
  }
}

function regroup(group: Draft, clusters: readonly Cluster<Draft>[]): void {
  if (clusters.length > 0) {
    group.children = clusters.flatMap(({label, members}) => (label === null ? members : [wrap(group, label, members)]));
  }
}

function wrap(parent: Draft, label: string, members: Draft[]): Draft {
  const wrapper = draft(label, `${parent.name}/[${label}]`, parent);
  wrapper.children = members;
  for (const member of members) {
    member.parent = wrapper;
  }
  return wrapper;
}

/** A group of one is replaced by its member, under both names. */
function mergeSingles(root: Draft): void {
  const groups = inOrder(root).filter((item) => item.parent !== null && item.children.length === 1);
  for (const group of groups) {
    const [only] = group.children;
    const parent = group.parent as Draft;
    only.label = group.label === only.label ? only.label : `${group.label}/${only.label}`;
    only.layer ??= group.layer;
    only.parent = parent;
    parent.children[parent.children.indexOf(group)] = only;
  }
}

/** Every item, parents first. */
function inOrder(root: Draft): Draft[] {
  const order = [root];
  for (let at = 0; at < order.length; at += 1) {
    for (const child of order[at].children) {
      order.push(child);
    }
  }
  return order;
}

function freeze(graph: FlowGraph, root: Draft): Tree {
  const drafts = inOrder(root);
  let next = graph.nodes.length;
  for (const item of drafts) {
    item.id = item.id >= 0 ? item.id : next++;
  }
  const sizes = new Int32Array(next);
  for (let at = drafts.length - 1; at >= 0; at -= 1) {
    const {id, children, parent} = drafts[at];
    sizes[id] = children.length === 0 && parent !== null ? 1 : sizes[id];
    if (parent !== null) {
      sizes[parent.id] += sizes[id];
    }
  }
  const items: Item[] = new Array(next);
  for (const item of drafts) {
    const parent = item.parent?.id ?? -1;
    items[item.id] = {
      id: item.id,
      label: item.label,
      name: item.name,
      parent,
      children: item.children.length === 0 ? NO_CHILDREN : item.children.map((child) => child.id),
      layer: item.layer,
      depth: parent < 0 ? 0 : items[parent].depth + 1,
      size: sizes[item.id],
    };
  }
  return {graph, items, root: root.id};
}
