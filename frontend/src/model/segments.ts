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

interface Draft {
  ports: Map<string, number>;
  list: Port[];
  segments: Map<string, Segment>;
}

export function portKey(outside: number, inward: boolean): string {
  return `${inward ? "in" : "out"} ${outside}`;
}

/** The flow inside every group, by its id. */
export function groupFlows(tree: Tree): ReadonlyMap<number, GroupFlow> {
  const crowded = crowdedSides(tree);
  const drafts = new Map<number, Draft>();
  tree.graph.edges.forEach((edge, id) => {
    if (edge.from !== edge.to) {
      addEdge(tree, drafts, crowded, id);
    }
  });
  const flows = new Map<number, GroupFlow>();
  for (const [group, each] of drafts) {
    flows.set(group, {ports: each.list, portIndex: each.ports, segments: [...each.segments.values()]});
  }
  return flows;
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

/** Sides of groups, as `portKey`s of the group itself, that have too many neighbours for a port each. */
function crowdedSides(tree: Tree): Set<string> {
  const neighbours = new Map<string, Set<number>>();
  const note = (group: number, inward: boolean, outside: number): void => {
    const key = portKey(group, inward);
    const seen = neighbours.get(key);
    if (seen === undefined) {
      neighbours.set(key, new Set([outside]));
    } else {
      seen.add(outside);
    }
  };
  for (const edge of tree.graph.edges) {
    if (edge.from === edge.to) {
      continue;
    }
    const [left, right] = climb(tree, edge.from, edge.to);
    left.slice(1).forEach((group) => note(group, false, right[right.length - 1]));
    right.slice(1).forEach((group) => note(group, true, left[left.length - 1]));
  }
  return new Set([...neighbours].filter(([, seen]) => seen.size > MOST_PORTS).map(([key]) => key));
}

function addEdge(tree: Tree, drafts: Map<number, Draft>, crowded: ReadonlySet<string>, id: number): void {
  const edge = tree.graph.edges[id];
  const [left, right, common] = climb(tree, edge.from, edge.to);
  const leftTop = left[left.length - 1];
  const rightTop = right[right.length - 1];
  const keyOf = (item: number, outside: number, inward: boolean): string => {
    if (!isGroup(tree, item)) {
      return "";
    }
    return portKey(crowded.has(portKey(item, inward)) ? -1 : outside, inward);
  };
  addSegment(drafts, common, leftTop, rightTop, keyOf(leftTop, rightTop, false), keyOf(rightTop, leftTop, true), id);
  for (let at = 1; at < left.length; at += 1) {
    const port = portOf(drafts, left[at], keyOf(left[at], rightTop, false), rightTop, false);
    addSegment(drafts, left[at], left[at - 1], port, keyOf(left[at - 1], rightTop, false), "", id);
  }
  for (let at = 1; at < right.length; at += 1) {
    const port = portOf(drafts, right[at], keyOf(right[at], leftTop, true), leftTop, true);
    addSegment(drafts, right[at], port, right[at - 1], "", keyOf(right[at - 1], leftTop, true), id);
  }
}

function draftOf(drafts: Map<number, Draft>, group: number): Draft {
  let found = drafts.get(group);
  if (found === undefined) {
    found = {ports: new Map(), list: [], segments: new Map()};
    drafts.set(group, found);
  }
  return found;
}

/** The port's name as an end of a segment. */
function portOf(drafts: Map<number, Draft>, group: number, key: string, outside: number, inward: boolean): number {
  const target = draftOf(drafts, group);
  let index = target.ports.get(key);
  if (index === undefined) {
    index = target.list.length;
    target.ports.set(key, index);
    target.list.push({outside: key === portKey(-1, inward) ? -1 : outside, inward});
  }
  return -1 - index;
}

function addSegment(
  drafts: Map<number, Draft>,
  group: number,
  from: number,
  to: number,
  fromPort: string,
  toPort: string,
  edge: number,
): void {
  const {segments} = draftOf(drafts, group);
  const key = `${from} ${to} ${fromPort} ${toPort}`;
  const known = segments.get(key);
  if (known === undefined) {
    segments.set(key, {from, to, edges: [edge], fromPort, toPort});
  } else {
    known.edges.push(edge);
  }
}
