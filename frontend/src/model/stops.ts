/** A path op by op: the facts at each stop, from the variable to the loss. */

import type {Source} from "../record.ts";
import {detailsOf, type TensorDetail} from "./details.ts";
import {formatNumber, NONE} from "./format.ts";
import type {Answers, StepNumbers} from "./gradients.ts";
import type {Path} from "./paths.ts";
import type {Tree} from "./tree.ts";

export interface Stop {
  readonly node: number;
  readonly name: string;
  readonly kind: "variable" | "op" | "loss";
  /** Norm of its gradient; `none` if it gets no gradient, and a dash if that is not known. */
  readonly gradient: string;
  /** The same as a phrase. */
  readonly words: string;
  readonly tone: "good" | "bad" | "quiet";
  /** Whether it is the op that causes the finding. */
  readonly isCulprit: boolean;
  /** The line that created it. */
  readonly source: Source | null;
}

const NOTHING = "–";

export function stopsOf(path: Path, tree: Tree, answers: Answers, numbers: StepNumbers | null): readonly Stop[] {
  return path.nodes.map((node) => {
    const {label, kind} = tree.graph.nodes[node];
    const {tensors, source} = detailsOf(tree, node, answers);
    return {node, name: label, kind, isCulprit: node === path.culprit, source, ...gradientOf(tensors[0], numbers)};
  });
}

export function gradientOf(tensor: TensorDetail | undefined, numbers: StepNumbers | null): Pick<Stop, "gradient" | "words" | "tone"> {
  if (tensor === undefined || tensor.answer.outcome !== "value") {
    const isNone = tensor?.answer.outcome === "none";
    return {gradient: isNone ? NONE : NOTHING, words: tensor?.words ?? "", tone: isNone ? "bad" : "quiet"};
  }
  const statistics = numbers?.gradient(tensor.answer.row) ?? null;
  if (statistics === null) {
    return {gradient: NOTHING, words: tensor.words, tone: "quiet"};
  }
  const {norm, nan_count, inf_count} = statistics;
  const gradient = nan_count > 0 ? "NaN" : inf_count > 0 ? "∞" : formatNumber(norm);
  return {gradient, words: `gradient norm ${gradient}`, tone: nan_count > 0 || inf_count > 0 || norm === 0 ? "bad" : "good"};
}

/**
 * The stop before or after the selected item, not beyond the ends; without a selection, the op that causes the finding.
 */
export function nextStop(stops: readonly Stop[], selected: number, step: 1 | -1): Stop | null {
  const at = stops.findIndex(({node}) => node === selected);
  if (at < 0) {
    return stops.find(({isCulprit}) => isCulprit) ?? stops[0] ?? null;
  }
  return stops[Math.max(0, Math.min(stops.length - 1, at + step))];
}
