/** The compared run, at the step that is closest to the shown one. */

import type {Overview} from "../api/routes.ts";
import type {Source} from "../api/source.ts";
import {mainTarget, StepNumbers} from "../model/gradients.ts";
import type {Diagnosis, Trace} from "../record.ts";

export interface Other {
  readonly overview: Overview;
  readonly trace: Trace;
  readonly diagnosis: Diagnosis | null;
  readonly numbers: StepNumbers | null;
  readonly target: number;
  readonly step: number;
}

export class Beside {
  readonly #source: Source;
  readonly #changed: () => void;
  /** Null while there is none, or nothing of it is known yet. */
  other: Other | null = null;
  /** A message that says why there is none. */
  problem = "";
  #overview: Overview | null = null;
  #wanted = "";

  constructor(source: Source, changed: () => void) {
    this.#source = source;
    this.#changed = changed;
  }

  /** `target` is the name of the loss that is shown. */
  show(run: string | null, step: number, target: string): void {
    const wanted = run === null ? "" : `${run}\n${step}\n${target}`;
    if (wanted === this.#wanted) {
      return;
    }
    this.#wanted = wanted;
    if (run === null || run !== this.#overview?.run) {
      [this.other, this.#overview, this.problem] = [null, null, ""];
    }
    if (run !== null) {
      void this.#load(run, step, target, wanted);
    }
  }

  async #load(run: string, step: number, target: string, wanted: string): Promise<void> {
    try {
      const overview = this.#overview ?? (await this.#source.overview(run));
      const other = await this.#at(overview, nearest(overview.steps, step), target);
      if (wanted === this.#wanted) {
        [this.other, this.#overview, this.problem] = [other, overview, ""];
        this.#changed();
      }
    } catch (error) {
      if (wanted === this.#wanted) {
        this.problem = error instanceof Error ? error.message : String(error);
        this.#changed();
      }
    }
  }

  async #at(overview: Overview, step: number, target: string): Promise<Other> {
    const {run, session} = overview;
    const chunk = overview.chunks.find((each) => each.steps.includes(step));
    const [trace, diagnosis, gradients, variables] = await Promise.all([
      this.#source.trace(run, session.id, chunk?.trace ?? overview.traces.at(-1) ?? 0),
      this.#source.report(run, step).catch(() => null),
      chunk === undefined ? null : this.#source.gradients(run, session.id, chunk.id),
      chunk === undefined ? null : this.#source.variables(run, session.id, chunk.id),
    ]);
    const named = trace.targets.findIndex(({name}) => name === target);
    const numbers =
      chunk === undefined || gradients === null || variables === null
        ? null
        : new StepNumbers(gradients, variables, chunk.steps.indexOf(step), chunk.steps.length);
    return {overview, trace, diagnosis, numbers, target: named >= 0 ? named : mainTarget(trace), step};
  }
}

/** The recorded step closest to a step; -1 if none was recorded. */
export function nearest(steps: readonly number[], step: number): number {
  return steps.reduce((best, each) => (best < 0 || Math.abs(each - step) < Math.abs(best - step) ? each : best), -1);
}
