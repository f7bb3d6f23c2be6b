/** The data of the slider: the loss over the recorded steps, and where findings begin. */

import type {Course} from "../api/routes.ts";
import {SEVERITIES, type Severity} from "../record.ts";

/** Along the slider from 0 to 1, and up from 0 to 1. */
export interface LossCurve {
  /** Ranges of finite values: x and y alternating. */
  readonly lines: readonly (readonly number[])[];
  /** Where the loss is not finite. */
  readonly gaps: readonly number[];
}

/** More points are not visible on any screen. */
const POINTS = 600;
/** A loss with a larger range is drawn on a logarithmic scale. */
const WIDE = 50;

/** `losses`: for each step; null if not finite, undefined if the step has none. */
export function lossCurve(losses: readonly (number | null | undefined)[]): LossCurve {
  const known = losses.filter((loss) => typeof loss === "number");
  const [low, high] = extremes(known);
  const logarithmic = low > 0 && high / low > WIDE;
  const height = (loss: number): number => {
    const [value, bottom, top] = logarithmic ? [Math.log(loss), Math.log(low), Math.log(high)] : [loss, low, high];
    return top > bottom ? (value - bottom) / (top - bottom) : 0.5;
  };
  const last = Math.max(1, losses.length - 1);
  const lines: number[][] = [];
  const gaps: number[] = [];
  let line: number[] | null = null;
  for (const at of sampled(losses.length)) {
    const loss = losses[at];
    if (typeof loss === "number") {
      line ?? lines.push((line = []));
      line?.push(at / last, height(loss));
    } else {
      line = null;
      if (loss === null) {
        gaps.push(at / last);
      }
    }
  }
  return {lines, gaps};
}

/** The minimum and the maximum, without spreading a long list over a call. */
function extremes(values: readonly number[]): [number, number] {
  return values.reduce<[number, number]>(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
}

function sampled(count: number): number[] {
  const stride = Math.max(1, count / POINTS);
  const positions = Array.from({length: Math.ceil(count / stride)}, (_, index) => Math.floor(index * stride));
  return count > 0 && positions.at(-1) !== count - 1 ? [...positions, count - 1] : positions;
}

/** A step at which something begins. */
export interface Beginning {
  /** Position among the recorded steps. */
  readonly at: number;
  readonly step: number;
  /** The severity of the worst of them. */
  readonly severity: Severity;
  readonly causes: readonly string[];
}

/** The first step of each finding that is more than information; those of one step together. */
export function beginningsIn(course: Course | null, steps: readonly number[]): readonly Beginning[] {
  const byStep = new Map<number, Set<number>>();
  const seen = new Set<number>();
  course?.steps.forEach((step, at) => {
    for (const finding of course.present[at]) {
      if (!seen.has(finding) && course.findings[finding].severity !== "info") {
        seen.add(finding);
        byStep.set(step, (byStep.get(step) ?? new Set()).add(finding));
      }
    }
  });
  return [...byStep].flatMap(([step, findings]) => {
    const all = [...findings].map((finding) => (course as Course).findings[finding]);
    const severity = SEVERITIES.find((each) => all.some((finding) => finding.severity === each)) as Severity;
    const at = steps.indexOf(step);
    const causes = [...new Set(all.map(({cause}) => cause.replaceAll("_", " ")))];
    return at < 0 ? [] : [{at, step, severity, causes}];
  });
}
