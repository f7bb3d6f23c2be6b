/** The state of many edges that are drawn as one. */

import type {Flow} from "./flow.ts";
import type {Answers, StepNumbers} from "./gradients.ts";

export type Look = "finite" | "zero" | "nan" | "inf" | "unrecorded" | "broken" | "lost" | "off";

export interface Bundle {
  /** How the bundle is drawn below a broken part of it. */
  readonly look: Look;
  /** The largest norm among its gradients; NaN if it has none. */
  readonly norm: number;
  readonly count: number;
  /** How many of them are broken: drawn on top, in addition to the look of the others. */
  readonly broken: number;
  /** Whether the gradient ends at the end of one of them. */
  readonly cut: boolean;
}

/** The worse comes first: that is what a bundle of several shows. */
const ORDER: readonly Look[] = ["nan", "inf", "finite", "zero", "unrecorded", "lost", "off", "broken"];

export function bundleOf(edges: readonly number[], flow: Flow, answers: Answers, numbers: StepNumbers | null): Bundle {
  let best = ORDER.length - 1;
  let norm = NaN;
  let broken = 0;
  let cut = false;
  for (const edge of edges) {
    const look = lookOf(edge, flow, answers, numbers);
    best = Math.min(best, ORDER.indexOf(look));
    broken += look === "broken" ? 1 : 0;
    cut ||= flow.cuts[edge];
    if (look === "finite" && numbers !== null) {
      const each = numbers.magnitude(answers.edges[edge].row).norm;
      norm = each > norm || Number.isNaN(norm) ? each : norm;
    }
  }
  return {look: ORDER[best], norm, count: edges.length, broken, cut};
}

function lookOf(edge: number, flow: Flow, answers: Answers, numbers: StepNumbers | null): Look {
  const state = flow.edges[edge];
  if (state !== "gradient") {
    return state;
  }
  const kind = numbers?.magnitude(answers.edges[edge].row).kind ?? "unmeasured";
  return kind === "unmeasured" ? "unrecorded" : kind;
}

/** All looks that edges of a graph have at a step. */
export function looksIn(flow: Flow, answers: Answers, numbers: StepNumbers | null): ReadonlySet<Look> {
  return new Set(flow.edges.map((_, edge) => lookOf(edge, flow, answers, numbers)));
}

/** A bundle in words. */
export function describeBundle(bundle: Bundle, formatted: string): string {
  const many = bundle.count > 1 ? `${bundle.count} tensors, ` : "";
  const brokenPart = bundle.broken > 0 ? `${bundle.broken} of ${bundle.count} broken` : "";
  const words: Record<Look, string> = {
    finite: `gradient norm ${bundle.count > 1 ? "up to " : ""}${formatted}`,
    zero: "gradient exactly zero",
    nan: "gradient has NaN",
    inf: "gradient has infinities",
    unrecorded: "gradient not recorded",
    broken: "no gradient: disconnected",
    lost: "no gradient: behind the cut",
    off: "no gradient, none expected",
  };
  const state = bundle.broken === bundle.count && bundle.count > 1 ? "" : words[bundle.look];
  return many + [brokenPart && bundle.count > 1 ? brokenPart : "", state].filter(Boolean).join("; ");
}
