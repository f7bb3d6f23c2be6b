/** What to show when new data has arrived: which step, which loss, which scale; and what else is needed for it. */

import type {Overview} from "../api/routes.ts";
import {extentOf, mainTarget} from "../model/gradients.ts";
import {widened, type Scale} from "../model/scale.ts";
import type {Trace} from "../record.ts";
import {nearest} from "./beside.ts";
import type {State} from "./state.ts";

/** A model with more ops takes seconds to analyse. */
const MANY_OPS = 5000;

/**
 * The index to show in a new overview: the wanted step, or the one closest to it, since steps of a long run are thinned
 * out; or the last if the reader was at the last.
 */
export function nextPosition({overview, at}: Pick<State, "overview" | "at">, next: Overview, step: number | undefined): number | null {
  const last = next.steps.length - 1;
  if (overview === null) {
    const wanted = step === undefined || Number.isNaN(step) ? -1 : next.steps.indexOf(nearest(next.steps, step));
    return wanted >= 0 ? wanted : last < 0 ? null : last;
  }
  if (at === overview.steps.length - 1 || at < 0) {
    return last > at ? last : null;
  }
  return null;
}

/** The chosen target if the trace has it; otherwise the one that most variables are trained for. */
export function targetIn(target: number, trace: Trace): number {
  return target >= 0 && target < trace.targets.length ? target : mainTarget(trace);
}

/** The range of norms of each chunk, shared by all its steps. */
const EXTENTS = new WeakMap<Float32Array, readonly [number, number]>();

/** The scale widened to cover the norms of a chunk; the same scale if it already does. */
export function scaleWith(scale: Scale | null, gradients: Float32Array): Scale {
  const extent = EXTENTS.get(gradients) ?? extentOf(gradients);
  EXTENTS.set(gradients, extent);
  const wider = widened(scale, ...extent);
  return scale !== null && wider.low === scale.low && wider.high === scale.high ? scale : wider;
}

/** Whether its report will take long. */
export function isLarge(trace: Trace | null): boolean {
  return trace !== null && trace.ops.length > MANY_OPS;
}
