/**
 * Artificial groups for too many siblings: those with a common name prefix (`conv2_block1_*`), and if there are none,
 * runs of consecutive siblings. A cluster never creates a cycle.
 */

import type {FlowGraph} from "./graph.ts";

/** Above this number of children, siblings with a common prefix are grouped. */
const MANY = 20;
/** Above this number, consecutive ones are. */
const TOO_MANY = 100;
const STRETCH = 40;
const SMALLEST = 4;
const LARGEST = 16;

/** The part of a tree's item that is needed here. */
export interface Member {
  readonly id: number;
  readonly label: string;
  readonly children: readonly Member[];
}

export interface Cluster<M> {
  /** Null: the members stay as they are. */
  readonly label: string | null;
  readonly members: M[];
}

/** Siblings with a common prefix grouped, all children in order; empty if they are few, or share none. */
export function namedClusters<M extends Member>(graph: FlowGraph, children: readonly M[]): Cluster<M>[] {
  return children.length <= MANY ? [] : byPrefix(graph, children);
}

/** Runs of consecutive children; empty if there are not too many. */
export function stretches<M extends Member>(graph: FlowGraph, children: readonly M[]): Cluster<M>[] {
  if (children.length <= TOO_MANY) {
    return [];
  }
  const [order] = topologicalOrder(children.length, linksAmong(graph, children));
  const clusters: Cluster<M>[] = [];
  for (let start = 0; start < order.length; start += STRETCH) {
    const members = order.slice(start, start + STRETCH).map((index) => children[index]);
    clusters.push({label: `${members[0].label} … ${(members.at(-1) as M).label}`, members});
  }
  return clusters;
}

function byPrefix<M extends Member>(graph: FlowGraph, children: readonly M[]): Cluster<M>[] {
  const prefixes = prefixesOf(children);
  const links = linksAmong(graph, children);
  for (;;) {
    const names = [...new Set(prefixes.filter((prefix) => prefix !== null))];
    if (names.length === 0) {
      return [];
    }
    const cyclic = clustersInCycles(prefixes, links);
    if (cyclic.size === 0) {
      return inPlaceOfTheFirst(children, prefixes);
    }
    prefixes.forEach((prefix, index) => {
      prefixes[index] = prefix !== null && cyclic.has(prefix) ? null : prefix;
    });
  }
}

/**
 * For each child the shortest prefix, in whole words, that it shares with enough others but not too many; null if there
 * is none, and for ops: their names are numbered and mean nothing together.
 */
function prefixesOf(children: readonly Member[]): (string | null)[] {
  const words = children.map((child) => (child.children.length > 0 ? child.label.split("_") : []));
  const shared = new Map<string, number>();
  for (const each of words) {
    for (let count = 1; count < each.length; count += 1) {
      const prefix = each.slice(0, count).join("_");
      shared.set(prefix, (shared.get(prefix) ?? 0) + 1);
    }
  }
  return words.map((each) => {
    for (let count = 1; count < each.length; count += 1) {
      const prefix = each.slice(0, count).join("_");
      const size = shared.get(prefix) as number;
      if (size >= SMALLEST && size <= LARGEST) {
        return prefix;
      }
    }
    return null;
  });
}

function inPlaceOfTheFirst<M extends Member>(children: readonly M[], prefixes: readonly (string | null)[]): Cluster<M>[] {
  const clusters = new Map<string, Cluster<M>>();
  children.forEach((child, index) => {
    const prefix = prefixes[index];
    const key = prefix ?? `\n${index}`;
    const cluster = clusters.get(key) ?? {label: prefix, members: []};
    cluster.members.push(child);
    clusters.set(key, cluster);
  });
  return [...clusters.values()];
}

/** Pairs of linked children, by position. */
function linksAmong(graph: FlowGraph, children: readonly Member[]): [number, number][] {
  const owner = new Int32Array(graph.nodes.length).fill(-1);
  const leaves = children.map(leavesOf);
  leaves.forEach((nodes, position) => nodes.forEach((node) => (owner[node] = position)));
  const links = new Map<number, [number, number]>();
  leaves.forEach((nodes, from) => {
    for (const node of nodes) {
      for (const id of graph.outgoing[node]) {
        const edge = graph.edges[id];
        const to = owner[edge.to];
        if (to >= 0 && to !== from && !edge.carried) {
          links.set(from * children.length + to, [from, to]);
        }
      }
    }
  });
  return [...links.values()];
}

function leavesOf(member: Member): number[] {
  const all = [member];
  for (let at = 0; at < all.length; at += 1) {
    all.push(...all[at].children);
  }
  return all.filter((each) => each.children.length === 0).map((each) => each.id);
}

/** The clusters that are in a cycle of the contracted graph, or between two of them. */
function clustersInCycles(prefixes: readonly (string | null)[], links: readonly [number, number][]): Set<string> {
  const numbers = new Map<string, number>();
  const number = (index: number): number => {
    const key = prefixes[index] ?? `\n${index}`;
    return numbers.get(key) ?? (numbers.set(key, numbers.size), numbers.size - 1);
  };
  const contracted = links.map(([from, to]): [number, number] => [number(from), number(to)]);
  const [, rest] = topologicalOrder(numbers.size, contracted.filter(([from, to]) => from !== to));
  const names = [...numbers.keys()];
  return new Set(rest.map((index) => names[index]).filter((name) => !name.startsWith("\n")));
}

/** Positions in an order of flow; then those without an order, in cycles and after them. The first contains all. */
function topologicalOrder(count: number, links: readonly [number, number][]): [number[], number[]] {
  const waiting = new Array<number>(count).fill(0);
  const next: number[][] = Array.from({length: count}, () => []);
  for (const [from, to] of links) {
    waiting[to] += 1;
    next[from].push(to);
  }
  const order = waiting.flatMap((inputs, index) => (inputs === 0 ? [index] : []));
  for (let at = 0; at < order.length; at += 1) {
    for (const to of next[order[at]]) {
      waiting[to] -= 1;
      if (waiting[to] === 0) {
        order.push(to);
      }
    }
  }
  const rest = waiting.flatMap((inputs, index) => (inputs > 0 ? [index] : []));
  return [[...order, ...rest], rest];
}
