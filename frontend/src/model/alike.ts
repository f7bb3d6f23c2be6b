/** Groups that hold the same: copies of a block, told by the types inside and what flows between them. */

import {ancestorsOf, isGroup, type Tree} from "./tree.ts";

export interface Alike {
  /** For each item the number of its kind, from zero in the order of the tree; -1 for what there is only one of. */
  readonly kinds: Int32Array;
  /** How many there are of each kind. */
  readonly counts: readonly number[];
}

/** Before anybody looked. */
export const NOTHING_ALIKE: Alike = {kinds: new Int32Array(0), counts: []};

/** Smaller groups are alike by chance. */
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

/** Equal for items that hold the same. */
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
    const flows = (inner.get(id) ?? []).map(([from, to]) => `${signatures[from]}>${signatures[to]}`).sort();
    signatures[id] = number(`${layer?.type ?? ""}(${parts.join(",")}|${flows.join(",")})`);
  }
  return signatures;
}

/** For each group the pairs of its children between which something flows. */
function edgesInside(tree: Tree): ReadonlyMap<number, readonly (readonly [number, number])[]> {
  const inside = new Map<number, [number, number][]>();
  for (const {from, to} of tree.graph.edges) {
    const left = [from, ...ancestorsOf(tree, from), tree.root];
    const right = [to, ...ancestorsOf(tree, to), tree.root];
    let [a, b] = [left.length - 1, right.length - 1];
    while (a > 0 && b > 0 && left[a - 1] === right[b - 1]) {
      [a, b] = [a - 1, b - 1];
    }
    if (a > 0 && b > 0) {
      const pairs = inside.get(left[a]);
      pairs === undefined ? inside.set(left[a], [[left[a - 1], right[b - 1]]]) : pairs.push([left[a - 1], right[b - 1]]);
    }
  }
  return inside;
}
