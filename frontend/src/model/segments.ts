/**
 * What is drawn between the children of each group. An edge of the graph becomes one segment in the innermost group
 * that holds both its ends, and one in every group around either end below that, from or to a *port* on the group's
 * border. Segments with the same ends are one, and hold many edges.
 */

import {isGroup, type Tree} from "./tree.ts";

/** A place on a group's border where edges from, or to, one neighbour outside go through. */
export interface Port {
  /** The item outside that the edges come from or go to; -1 where many share the port. */
  readonly outside: number;
  readonly inward: boolean;
}

/** Ends are items; or ports, as -1 minus their position in the group's ports. */
export interface Segment {
  readonly from: number;
  readonly to: number;
  /** Indices in the graph's edges. */
  readonly edges: number[];
  /** Where the segment ends at an open group, the key of the port it goes on through: see `portKey`. */
  readonly fromPort: string;
  readonly toPort: string;
}

export interface GroupFlow {
  readonly ports: readonly Port[];
  /** Position of a port in `ports`, by `portKey`. */
  readonly portIndex: ReadonlyMap<string, number>;
  readonly segments: readonly Segment[];
}

/** A group with more neighbours than this has one port for all of them. */
const MOST_PORTS = 10;

/** The flow inside each group. */
export interface Flows {
  get(group: number): GroupFlow;
}

interface Draft {
  ports: Map<string, number>;
  list: Port[];
  segments: Map<string, Segment>;
}

export function portKey(outside: number, inward: boolean): string {
  return `${inward ? "in" : "out"} ${outside}`;
}

/** Flows are made when they are first asked for: of thirty thousand ops few groups are ever open. */
export function groupFlows(tree: Tree): Flows {
  const flows = new Map<number, GroupFlow>();
  const nesting = new Nesting(tree);
  const crowded = new Crowds(tree, nesting);
  return {
    get(group) {
      let flow = flows.get(group);
      if (flow === undefined) {
        flow = flowInside(tree, nesting, crowded, group);
        flows.set(group, flow);
      }
      return flow;
    },
  };
}

function flowInside(tree: Tree, nesting: Nesting, crowded: Crowds, group: number): GroupFlow {
  const draft: Draft = {ports: new Map(), list: [], segments: new Map()};
  const edges = new Set(tree.items[group].children.flatMap((child) => [...nesting.crossing(child)]));
  // In the order of the graph, so that the picture does not depend on how the edges were found.
  for (const edge of [...edges].sort((a, b) => a - b)) {
    addEdge(tree, draft, crowded, group, edge);
  }
  return {ports: draft.list, portIndex: draft.ports, segments: [...draft.segments.values()]};
}

/** Every item's descendants as a stretch of one list: who is inside whom is a matter of two comparisons. */
class Nesting {
  readonly #tree: Tree;
  readonly #order: number[] = [];
  readonly #begin: Int32Array;
  readonly #end: Int32Array;

  constructor(tree: Tree) {
    this.#tree = tree;
    this.#begin = new Int32Array(tree.items.length);
    this.#end = new Int32Array(tree.items.length);
    const waiting = [tree.root];
    while (waiting.length > 0) {
      const item = waiting.pop() as number;
      this.#begin[item] = this.#order.length;
      this.#end[item] = this.#order.push(item);
      waiting.push(...tree.items[item].children);
    }
    for (const item of [...this.#order].reverse()) {
      const {parent} = tree.items[item];
      if (parent >= 0) {
        this.#end[parent] = Math.max(this.#end[parent], this.#end[item]);
      }
    }
  }

  isInside(item: number, group: number): boolean {
    return this.#begin[item] >= this.#begin[group] && this.#begin[item] < this.#end[group];
  }

  /** Edges with one end inside a group and one outside. */
  *crossing(group: number): Generator<number> {
    const {edges, outgoing, incoming} = this.#tree.graph;
    for (let at = this.#begin[group]; at < this.#end[group]; at += 1) {
      const item = this.#order[at];
      if (!isGroup(this.#tree, item)) {
        yield* outgoing[item].filter((edge) => !this.isInside(edges[edge].to, group));
        yield* incoming[item].filter((edge) => !this.isInside(edges[edge].from, group));
      }
    }
  }
}

/** The chain of items from an end of an edge up to, and without, the innermost common group; innermost first. */
function climb(tree: Tree, from: number, to: number): [number[], number[], number] {
  const left = [from];
  const right = [to];
  const parent = (chain: number[]): number => tree.items[chain[chain.length - 1]].parent;
  while (parent(left) !== parent(right)) {
    const deeper = tree.items[parent(left)].depth >= tree.items[parent(right)].depth ? left : right;
    deeper.push(parent(deeper));
  }
  return [left, right, parent(left)];
}

/** Which sides of groups have too many neighbours for a port each. */
class Crowds {
  readonly #tree: Tree;
  readonly #nesting: Nesting;
  /** By group: whether its inward side is, and its outward one. */
  readonly #known = new Map<number, readonly [boolean, boolean]>();

  constructor(tree: Tree, nesting: Nesting) {
    this.#tree = tree;
    this.#nesting = nesting;
  }

  has(group: number, inward: boolean): boolean {
    let known = this.#known.get(group);
    if (known === undefined) {
      known = this.#count(group);
      this.#known.set(group, known);
    }
    return known[inward ? 0 : 1];
  }

  #count(group: number): readonly [boolean, boolean] {
    const tree = this.#tree;
    const [inside, outside] = [new Set<number>(), new Set<number>()];
    for (const id of this.#nesting.crossing(group)) {
      const {from, to} = tree.graph.edges[id];
      const [left, right] = climb(tree, from, to);
      if (this.#nesting.isInside(to, group)) {
        inside.add(left[left.length - 1]);
      } else {
        outside.add(right[right.length - 1]);
      }
    }
    return [inside.size > MOST_PORTS, outside.size > MOST_PORTS];
  }
}

/** The part of an edge that is inside a group: between two of its children, or between a child and a port. */
function addEdge(tree: Tree, draft: Draft, crowded: Crowds, group: number, id: number): void {
  const edge = tree.graph.edges[id];
  const [left, right, common] = climb(tree, edge.from, edge.to);
  const leftTop = left[left.length - 1];
  const rightTop = right[right.length - 1];
  const keyOf = (item: number, outside: number, inward: boolean): string => {
    if (!isGroup(tree, item)) {
      return "";
    }
    return portKey(crowded.has(item, inward) ? -1 : outside, inward);
  };
  if (common === group) {
    addSegment(draft, leftTop, rightTop, keyOf(leftTop, rightTop, false), keyOf(rightTop, leftTop, true), id);
    return;
  }
  const outward = left.indexOf(group, 1);
  if (outward > 0) {
    const port = portOf(draft, keyOf(group, rightTop, false), rightTop, false);
    addSegment(draft, left[outward - 1], port, keyOf(left[outward - 1], rightTop, false), "", id);
  }
  const inward = right.indexOf(group, 1);
  if (inward > 0) {
    const port = portOf(draft, keyOf(group, leftTop, true), leftTop, true);
    addSegment(draft, port, right[inward - 1], "", keyOf(right[inward - 1], leftTop, true), id);
  }
}

/** The port's name as an end of a segment. */
function portOf(target: Draft, key: string, outside: number, inward: boolean): number {
  let index = target.ports.get(key);
  if (index === undefined) {
    index = target.list.length;
    target.ports.set(key, index);
    target.list.push({outside: key === portKey(-1, inward) ? -1 : outside, inward});
  }
  return -1 - index;
}

function addSegment({segments}: Draft, from: number, to: number, fromPort: string, toPort: string, edge: number): void {
  const key = `${from} ${to} ${fromPort} ${toPort}`;
  const known = segments.get(key);
  if (known === undefined) {
    segments.set(key, {from, to, edges: [edge], fromPort, toPort});
  } else {
    known.edges.push(edge);
  }
}
