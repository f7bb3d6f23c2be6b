/** A comparison, applied to the items of the graph. */

import type {Comparison} from "./compare.ts";
import {ancestorsOf, type Tree} from "./tree.ts";

/** Better, worse, or only different. */
export type Mark = "better" | "worse" | "new" | "changed";

export interface Changes {
  /** For nodes. */
  readonly marks: ReadonlyMap<number, Mark>;
  /** Number of changes inside a group. */
  readonly inside: ReadonlyMap<number, number>;
  /** All of them, and the groups around them. */
  readonly items: ReadonlySet<number>;
}

const MARKS = {better: "better", worse: "worse", new: "new", changed: "changed"} as const;

export function changesIn(tree: Tree, {variables, ops}: Comparison): Changes {
  const {graph} = tree;
  const marks = new Map<number, Mark>();
  for (const {op, change} of ops) {
    if (op >= 0 && change !== "gone") {
      marks.set(graph.nodeOfOp[op], MARKS[change]);
    }
  }
  for (const {variable, change} of variables) {
    const node = graph.nodeOfVariable[variable] ?? -1;
    if (node >= 0 && change !== "same" && change !== "gone") {
      marks.set(node, MARKS[change]);
    }
  }
  const inside = new Map<number, number>();
  for (const node of marks.keys()) {
    for (const group of ancestorsOf(tree, node)) {
      inside.set(group, (inside.get(group) ?? 0) + 1);
    }
  }
  return {marks, inside, items: new Set([...marks.keys(), ...inside.keys()])};
}
