/** The state of many edges that are drawn as one. */

import type {Cut, Flow} from "./flow.ts";
import type {Answers, StepNumbers} from "./gradients.ts";

export type Look = "finite" | "zero" | "nan" | "inf" | "unrecorded" | "broken" | "lost" | "off";

export interface Bundle {
  /** The look of the bundle under its broken part. */
  readonly look: Look;
  /** The largest measured value among its gradients; NaN if it has none. */
  readonly value: number;
  readonly count: number;
  /** Number of broken edges among them: drawn on top, in addition to the look of the others. */
  readonly broken: number;
  /** Where the gradient ends at the end of one of them. */
  readonly cut: Cut;
}

/** Worst first: a bundle of several shows the worst. */
const ORDER: readonly Look[] = ["nan", "inf", "finite", "zero", "unrecorded", "lost", "off", "broken"];
const RANKS = Object.fromEntries(ORDER.map((look, rank) => [look, rank])) as Readonly<Record<Look, number>>;

/** `values`: the measure of each edge of the graph. */
export function bundleOf(
  edges: readonly number[],
  flow: Flow,
  answers: Answers,
  numbers: StepNumbers | null,
  values: Float64Array,
): Bundle {
  let best = ORDER.length - 1;
  let value = NaN;
  let broken = 0;
  let cut: Cut = null;
  for (const edge of edges) {
    const look = lookOf(edge, flow, answers, numbers);
    best = Math.min(best, RANKS[look]);
    broken += look === "broken" ? 1 : 0;
    cut = cut === "path" ? cut : (flow.cuts[edge] ?? cut);
    if (look === "finite" && (values[edge] > value || Number.isNaN(value))) {
      value = values[edge];
    }
  }
  // There is a gradient, but its measure is unknown: the gradient that arrives at the op was not recorded.
  const look = ORDER[best] === "finite" && Number.isNaN(value) ? "unrecorded" : ORDER[best];
  return {look, value, count: edges.length, broken, cut};
}

function lookOf(edge: number, flow: Flow, answers: Answers, numbers: StepNumbers | null): Look {
  const state = flow.edges[edge];
  if (state !== "gradient") {
    return state;
  }
  const kind = numbers?.kind(answers.edges[edge].row) ?? "unmeasured";
  return kind === "unmeasured" ? "unrecorded" : kind;
}

/** A bundle in words; `told` describes its value. */
export function describeBundle(bundle: Bundle, told: string): string {
  const many = bundle.count > 1 ? `${bundle.count} tensors, ` : "";
  const brokenPart = bundle.broken > 0 ? `${bundle.broken} of ${bundle.count} broken` : "";
  const words: Record<Look, string> = {
    finite: bundle.count > 1 ? `at most ${told}` : told,
    zero: "gradient exactly zero",
    nan: "gradient has NaN",
    inf: "gradient has infinities",
    unrecorded: "gradient not recorded",
    broken: "no gradient",
    lost: "no gradient: beyond the cut",
    off: "no gradient, none expected",
  };
  const state = bundle.broken === bundle.count && bundle.count > 1 ? "" : words[bundle.look];
  return many + [brokenPart && bundle.count > 1 ? brokenPart : "", state].filter(Boolean).join("; ");
}
