/** The texts on the items of a tree. */

import {plural} from "./format.ts";
import {isGroup, type Tree} from "./tree.ts";

/** The first line. */
export function titleOf(tree: Tree, item: number): string {
  const {label} = tree.items[item];
  if (isGroup(tree, item)) {
    return label;
  }
  const node = tree.graph.nodes[item];
  if (node.kind === "loss") {
    return node.label;
  }
  return label;
}

/** The second line of a group: the class of the layer, and the number of nodes inside. */
export function subtitleOf(tree: Tree, item: number): string {
  const {layer, size} = tree.items[item];
  const inside = plural(size, "node");
  return layer === null ? inside : `${layer.type} · ${inside}`;
}
