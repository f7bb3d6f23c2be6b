/**
 * The links that are drawn between the children of each group. An edge of the graph becomes one segment in the
 * innermost group that contains both its ends, and one in every group around either end below that, from or to a *port*
 * on the group's border. Segments with the same ends are merged, and hold many edges.
 */

import {Nesting} from "./nesting.ts";
import {isGroup, type Tree} from "./tree.ts";

/** A point on a group's border where edges from, or to, one neighbour outside pass through. */
export interface Port {
  /** The item outside that the edges come from or go to; -1 if many share the port. */
  readonly outside: number;
  readonly inward: boolean;
}

/** Ends are items; or ports, as -1 minus their position in the group's ports. */
export interface Segment {
  readonly from: number;
  readonly to: number;
  /** Indices in the graph's edges. */
  readonly edges: number[];
  /**
   * If the segment ends at an open group, the key of the port through which it continues, by `portKey`; otherwise -1.
   */
  readonly fromPort: number;
  readonly toPort: number;
}

export interface GroupFlow {
  readonly ports: readonly Port[];
  readonly segments: readonly Segment[];
}

/** A group with more neighbours than this has one port for all of them. */
const MOST_PORTS = 10;

/** The segments inside each group. */
export interface Flows {
  get(group: number): GroupFlow;
}

/** A number from zero that identifies a port of a group. */
export function portKey(outside: number, inward: boolean): number {
  return 2 * (outside + 1) + (inward ? 1 : 0);
}

const NO_PORT = -1;

/** Created on first use: of thirty thousand ops few groups are ever open. */
export function groupFlows(tree: Tree): Flows {
  const flows = new Map<number, GroupFlow>();
  const nesting = new Nesting(tree);
  const crowds = new Crowds(tree, nesting);
  return {
    get(group) {
      let flow = flows.get(group);
      if (flow === undefined) {
        flow = flowInside(tree, nesting, crowds, group);
        flows.set(group, flow);
      }
      return flow;
    },
  };
}

function flowInside(tree: Tree, nesting: Nesting, crowds: Crowds, group: number): GroupFlow {
  const draft = new Draft(tree, nesting, crowds, group);
  // In the order of the graph, so that the picture does not depend on how the edges were found.
  for (const edge of nesting.edgesIn(group)) {
    draft.add(edge);
  }
  return {ports: draft.ports, segments: draft.segments};
}

/** The sides of groups with too many neighbours for a port each. */
class Crowds {
  readonly #tree: Tree;
  readonly #nesting: Nesting;
  /** By group: whether its inward side is, and its outward one. */
  readonly #known = new Map<number, readonly [boolean, boolean]>();

  constructor(tree: Tree, nesting: Nesting) {
    this.#tree = tree;
    this.#nesting = nesting;
  }

  /** The key of the port of an item towards an outside item; none if it is not a group. */
  portOf(item: number, outside: number, inward: boolean): number {
    return isGroup(this.#tree, item) ? portKey(this.#has(item, inward) ? -1 : outside, inward) : NO_PORT;
  }

  #has(group: number, inward: boolean): boolean {
    let known = this.#known.get(group);
    if (known === undefined) {
      known = this.#count(group);
      this.#known.set(group, known);
    }
    return known[inward ? 0 : 1];
  }

  #count(group: number): readonly [boolean, boolean] {
    const nesting = this.#nesting;
    const [before, after] = [new Set<number>(), new Set<number>()];
    nesting.eachCrossing(group, (edge) => {
      const [from, to] = [nesting.from[edge], nesting.to[edge]];
      const neighbours = nesting.isInside(to, group) ? before : after;
      if (neighbours.size <= MOST_PORTS) {
        neighbours.add(nesting.childOf(nesting.common(from, to), neighbours === before ? from : to));
      }
    });
    return [before.size > MOST_PORTS, after.size > MOST_PORTS];
  }
}

/** The segments inside one group, while they are built. */
class Draft {
  readonly ports: Port[] = [];
  readonly segments: Segment[] = [];
  readonly #nesting: Nesting;
  readonly #crowds: Crowds;
  readonly #group: number;
  /** The maximum number of item ids. */
  readonly #most: number;
  /** Positions of ports, by their keys. */
  readonly #portAt = new Map<number, number>();
  /** Segments by their ends: several if they continue through different ports. */
  readonly #byEnds = new Map<number, Segment[]>();

  constructor(tree: Tree, nesting: Nesting, crowds: Crowds, group: number) {
    [this.#nesting, this.#crowds, this.#group, this.#most] = [nesting, crowds, group, tree.items.length];
  }

  /** The part of an edge inside the group: between two of its children, or between a child and a port. */
  add(edge: number): void {
    const group = this.#group;
    const nesting = this.#nesting;
    const [from, to] = [nesting.from[edge], nesting.to[edge]];
    const [leaves, enters] = [nesting.isInside(from, group), nesting.isInside(to, group)];
    const left = leaves ? nesting.childOf(group, from) : this.#outside(from, to);
    const right = enters ? nesting.childOf(group, to) : this.#outside(to, from);
    const leftPort = leaves ? this.#crowds.portOf(left, right, false) : NO_PORT;
    const rightPort = enters ? this.#crowds.portOf(right, left, true) : NO_PORT;
    this.#put(leaves ? left : this.#port(left, true), enters ? right : this.#port(right, false), leftPort, rightPort, edge);
  }

  /** The item that contains one end of an edge but not the other. */
  #outside(end: number, other: number): number {
    return this.#nesting.childOf(this.#nesting.common(end, other), end);
  }

  /** The group's port towards an item, as an end of a segment. */
  #port(outside: number, inward: boolean): number {
    const key = this.#crowds.portOf(this.#group, outside, inward);
    let position = this.#portAt.get(key);
    if (position === undefined) {
      position = this.ports.length;
      this.#portAt.set(key, position);
      this.ports.push({outside: key === portKey(-1, inward) ? -1 : outside, inward});
    }
    return -1 - position;
  }

  #put(from: number, to: number, fromPort: number, toPort: number, edge: number): void {
    // Ports are fewer than items, so every pair of ends has a unique number.
    const ends = (from + this.#most) * 2 * this.#most + to + this.#most;
    const known = this.#byEnds.get(ends);
    const same = known?.find((each) => each.fromPort === fromPort && each.toPort === toPort);
    if (same !== undefined) {
      same.edges.push(edge);
      return;
    }
    const segment = {from, to, edges: [edge], fromPort, toPort};
    this.segments.push(segment);
    known === undefined ? this.#byEnds.set(ends, [segment]) : known.push(segment);
  }
}
