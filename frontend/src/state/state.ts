/** What is known and chosen, as everything that is shown follows from it. */

import type {Course, Overview, RunEntry, Standings} from "../api/routes.ts";
import type {StepNumbers} from "../model/gradients.ts";
import type {Scale} from "../model/scale.ts";
import type {Diagnosis, Trace} from "../record.ts";

export interface State {
  /** Null until the server answered. */
  readonly runs: readonly RunEntry[] | null;
  /** How all runs are, as far as it is known; null while nobody has asked. */
  readonly standings: Standings | null;
  readonly run: string | null;
  readonly overview: Overview | null;
  /** Position in the overview's steps; -1 while there is none. */
  readonly at: number;
  readonly trace: Trace | null;
  /** A trace whose numbers are on their way; null if there is none, or another is shown meanwhile. */
  readonly coming: Trace | null;
  /** -1 until there is a trace to choose from. */
  readonly target: number;
  readonly diagnosis: Diagnosis | null;
  readonly numbers: StepNumbers | null;
  /** Whether the report is long in coming, and nobody should wait for it. */
  readonly impatient: boolean;
  /** Where findings begin; null until anything is known. */
  readonly course: Course | null;
  /** The same for all steps of a run; null until there are numbers. */
  readonly scale: Scale | null;
  /** What could not be done, by what it was. */
  readonly problems: ReadonlyMap<string, string>;
}

/** Of a run of which nothing is known yet. */
export const NOTHING_CHOSEN = {
  overview: null,
  at: -1,
  trace: null,
  coming: null,
  target: -1,
  diagnosis: null,
  numbers: null,
  impatient: false,
  course: null,
  scale: null,
} as const;
