/**
 * The nesting of items, and the edges that lead in and out: the descendants of every item are a contiguous part of one
 * list.
 */

import {isGroup, type Tree} from "./tree.ts";

export class Nesting {
  readonly #tree: Tree;
  readonly #order: Int32Array;
  readonly #begin: Int32Array;
  readonly #end: Int32Array;
  readonly #parent: Int32Array;
  /** Scratch space for edges. */
  readonly #found: Int32Array;
  /** Ends of each edge. */
  readonly from: Int32Array;
  readonly to: Int32Array;

  constructor(tree: Tree) {
    const {items, root, graph} = tree;
    this.#tree = tree;
    this.#order = new Int32Array(items.length);
    this.#begin = new Int32Array(items.length);
    this.#end = new Int32Array(items.length);
    this.#parent = new Int32Array(items.length).fill(-1);
    this.#found = new Int32Array(graph.edges.length);
    this.from = new Int32Array(graph.edges.length);
    this.to = new Int32Array(graph.edges.length);
    graph.edges.forEach(({from, to}, edge) => {
      this.from[edge] = from;
      this.to[edge] = to;
    });
    const waiting = [root];
    let count = 0;
    for (let item = waiting.pop(); item !== undefined; item = waiting.pop()) {
      this.#begin[item] = count;
      this.#order[count] = item;
      count += 1;
      this.#end[item] = count;
      this.#parent[item] = items[item].parent;
      for (const child of items[item].children) {
        waiting.push(child);
      }
    }
    for (let at = count - 1; at > 0; at -= 1) {
      const item = this.#order[at];
      const parent = this.#parent[item];
      this.#end[parent] = Math.max(this.#end[parent], this.#end[item]);
    }
  }

  isInside(item: number, group: number): boolean {
    const place = this.#begin[item];
    return place >= this.#begin[group] && place < this.#end[group];
  }

  /** The innermost group that contains both. */
  common(a: number, b: number): number {
    let group = this.#parent[a];
    while (!this.isInside(b, group)) {
      group = this.#parent[group];
    }
    return group;
  }

  /** The child of a group that an item is, or is inside. */
  childOf(group: number, item: number): number {
    let child = item;
    while (this.#parent[child] !== group) {
      child = this.#parent[child];
    }
    return child;
  }

  /** Calls back with every edge that has one end inside a group and one outside. */
  eachCrossing(group: number, callback: (edge: number) => void): void {
    const {outgoing, incoming} = this.#tree.graph;
    for (let at = this.#begin[group]; at < this.#end[group]; at += 1) {
      const item = this.#order[at];
      if (!isGroup(this.#tree, item)) {
        for (const edge of outgoing[item]) {
          if (!this.isInside(this.to[edge], group)) {
            callback(edge);
          }
        }
        for (const edge of incoming[item]) {
          if (!this.isInside(this.from[edge], group)) {
            callback(edge);
          }
        }
      }
    }
  }

  /** Edges that are visible inside a group, between its children or from one to the outside: each once, in order. */
  edgesIn(group: number): Int32Array {
    const found = this.#found;
    let count = 0;
    for (const child of this.#tree.items[group].children) {
      this.eachCrossing(child, (edge) => {
        // An edge between two children was already visited at the child that it leaves.
        if (this.isInside(this.from[edge], child) || !this.isInside(this.from[edge], group)) {
          found[count] = edge;
          count += 1;
        }
      });
    }
    return found.slice(0, count).sort();
  }
}
