/** Groups with the same content: copies of a block, recognised by the types inside and the links between them. */

import {isGroup, type Tree} from "./tree.ts";

export interface Alike {
  /**
   * For each item the number of its kind, from zero in the order of the tree; -1 for items that are the only one of
   * their kind.
   */
  readonly kinds: Int32Array;
  /** Number of items of each kind. */
  readonly counts: readonly number[];
}

/** Before anything is computed. */
export const NOTHING_ALIKE: Alike = {kinds: new Int32Array(0), counts: []};

/** Smaller groups may be equal by chance. */
const SMALLEST = 4;

export function alikeOf(tree: Tree): Alike {
  const signatures = signaturesOf(tree);
  const copies = new Map<number, number[]>();
  for (const {id, size} of tree.items) {
    if (isGroup(tree, id) && id !== tree.root && size >= SMALLEST) {
      const same = copies.get(signatures[id]);
      same === undefined ? copies.set(signatures[id], [id]) : same.push(id);
    }
  }
  const kinds = new Int32Array(tree.items.length).fill(-1);
  const counts: number[] = [];
  for (const items of copies.values()) {
    if (items.length > 1) {
      items.forEach((item) => (kinds[item] = counts.length));
      counts.push(items.length);
    }
  }
  return {kinds, counts};
}

/** Equal for items with the same content. */
function signaturesOf(tree: Tree): Int32Array {
  const {graph, items} = tree;
  const words = new Map<string, number>();
  const number = (text: string): number => words.get(text) ?? (words.set(text, words.size), words.size - 1);
  const signatures = new Int32Array(items.length);
  graph.nodes.forEach(({id, kind, index}) => {
    signatures[id] = number(kind === "op" ? graph.trace.ops[index].type : kind);
  });
  const inner = edgesInside(tree);
  const innermostFirst = items.filter(({id}) => isGroup(tree, id)).sort((a, b) => b.depth - a.depth);
  for (const {id, children, layer} of innermostFirst) {
    const parts = children.map((child) => signatures[child]).sort((a, b) => a - b);
    signatures[id] = number(`${layer?.type ?? ""}(${parts.join(",")}|${flowsAmong(inner.get(id) ?? [], signatures).join(",")})`);
  }
  return signatures;
}

/** Pairs of signatures, each as one number: there are fewer of them than items. */
function flowsAmong(ends: readonly number[], signatures: Int32Array): Float64Array {
  const flows = new Float64Array(ends.length / 2);
  for (let at = 0; at < flows.length; at += 1) {
    flows[at] = signatures[ends[2 * at]] * signatures.length + signatures[ends[2 * at + 1]];
  }
  return flows.sort();
}

/** For each group, the linked pairs of children, alternating. */
function edgesInside(tree: Tree): ReadonlyMap<number, readonly number[]> {
  const {items} = tree;
  const inside = new Map<number, number[]>();
  for (const edge of tree.graph.edges) {
    let [from, to] = [items[edge.from], items[edge.to]];
    while (from.parent !== to.parent) {
      if (from.depth >= to.depth) {
        from = items[from.parent];
      } else {
        to = items[to.parent];
      }
    }
    const known = inside.get(from.parent);
    known === undefined ? inside.set(from.parent, [from.id, to.id]) : known.push(from.id, to.id);
  }
  return inside;
}
