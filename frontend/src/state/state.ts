/** Everything that is loaded and selected; everything shown is derived from it. */

import type {Course, Overview, RunEntry, Standings} from "../api/routes.ts";
import type {StepNumbers} from "../model/gradients.ts";
import type {Scale} from "../model/scale.ts";
import type {Diagnosis, Trace} from "../record.ts";

export interface State {
  /** Null until the server has answered. */
  readonly runs: readonly RunEntry[] | null;
  /** The state of all runs, as far as known; null until it is requested. */
  readonly standings: Standings | null;
  readonly run: string | null;
  /** A run that was to be opened and does not exist; null if there is none. */
  readonly missing: {readonly run: string; readonly step: number | undefined} | null;
  readonly overview: Overview | null;
  /** Index in the overview's steps; -1 while there is none. */
  readonly at: number;
  readonly trace: Trace | null;
  /** A trace whose statistics are on their way; null if there is none, or if another is shown in the meantime. */
  readonly coming: Trace | null;
  /** -1 until there is a trace to choose from. */
  readonly target: number;
  readonly diagnosis: Diagnosis | null;
  readonly numbers: StepNumbers | null;
  /** The index of the step that `numbers` are of; while those of the chosen step are on their way, of an earlier one. */
  readonly numbersAt: number;
  /** Whether the report takes so long that nothing should wait for it. */
  readonly impatient: boolean;
  /** Where findings begin; null until anything is known. */
  readonly course: Course | null;
  /** The same for all steps of a run; null until there are statistics. */
  readonly scale: Scale | null;
  /** Failures, by what failed. */
  readonly problems: ReadonlyMap<string, string>;
}

/** For a run of which nothing is known yet. */
export const NOTHING_CHOSEN = {
  overview: null,
  at: -1,
  trace: null,
  coming: null,
  target: -1,
  diagnosis: null,
  numbers: null,
  numbersAt: -1,
  impatient: false,
  course: null,
  scale: null,
} as const;
