/** A trace prepared for drawing: everything that stays the same while steps, losses and open groups change. */

import type {Diagnosis, Trace} from "../record.ts";
import {flowGraph, isFolded} from "./graph.ts";
import {groupFlows, type Flows} from "./segments.ts";
import {treeOf, type Tree} from "./tree.ts";

export interface Model {
  readonly tree: Tree;
  readonly flows: Flows;
}

export function modelOf(trace: Trace, kept: ReadonlySet<number>): Model {
  const tree = treeOf(flowGraph(trace, kept));
  return {tree, flows: groupFlows(tree)};
}

/** Ops that a diagnosis names and that would otherwise be folded away: they must be visible. */
export function blamedOps(trace: Trace, diagnosis: Diagnosis | null): Set<number> {
  const culprits = (diagnosis?.findings ?? []).map((finding) => finding.culprit);
  return new Set(culprits.filter((op) => op >= 0 && op < trace.ops.length && isFolded(trace.ops[op])));
}
