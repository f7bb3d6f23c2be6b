/** What is shown when something new has come: which step, which loss, which scale; and what is awaited for it. */

import type {Overview} from "../api/routes.ts";
import {extentOf, mainTarget} from "../model/gradients.ts";
import {widened, type Scale} from "../model/scale.ts";
import type {Trace} from "../record.ts";
import type {State} from "./state.ts";

/** A model of more ops takes seconds to be judged. */
const MANY_OPS = 5000;

/** The position to go to in a new overview: the wanted step, or the last if that is where the reader was. */
export function nextPosition({overview, at}: Pick<State, "overview" | "at">, next: Overview, step: number | undefined): number | null {
  const last = next.steps.length - 1;
  if (overview === null) {
    const wanted = step === undefined ? -1 : next.steps.indexOf(step);
    return wanted >= 0 ? wanted : last < 0 ? null : last;
  }
  if (at === overview.steps.length - 1 || at < 0) {
    return last > at ? last : null;
  }
  return null;
}

/** The chosen target if the trace has it; else what it is trained for. */
export function targetIn(target: number, trace: Trace): number {
  return target >= 0 && target < trace.targets.length ? target : mainTarget(trace);
}

/** What the norms of each chunk span: all steps of one ask for it. */
const EXTENTS = new WeakMap<Float32Array, readonly [number, number]>();

/** The scale widened to hold the norms of a chunk; the same if it does. */
export function scaleWith(scale: Scale | null, gradients: Float32Array): Scale {
  const extent = EXTENTS.get(gradients) ?? extentOf(gradients);
  EXTENTS.set(gradients, extent);
  const wider = widened(scale, ...extent);
  return scale !== null && wider.low === scale.low && wider.high === scale.high ? scale : wider;
}

/** Whether its report is long in coming. */
export function isLarge(trace: Trace | null): boolean {
  return trace !== null && trace.ops.length > MANY_OPS;
}
