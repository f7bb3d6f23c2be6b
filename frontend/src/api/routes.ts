/** The bodies of the plugin's routes that are no records: see docs/http.md. */

import type {Session, Severity} from "../record.ts";

export interface RunEntry {
  /** TensorBoard's name of the run: what `run=` takes. */
  readonly run: string;
  /** What a person reads. */
  readonly name: string;
  /** Why this run cannot be read, in words. */
  readonly error: string | null;
  /** Seconds since the epoch when its recording began. */
  readonly began: number;
  /** How it is; null where nobody has looked yet. */
  readonly health: Health | null;
}

/** The severity of the worst finding; unknown where the log cannot be read, or says nothing yet. */
export type Health = "error" | "warning" | "healthy" | "unknown";

/** How a run is at its last recorded step. */
export interface Standing {
  readonly run: string;
  readonly name: string;
  readonly health: Health;
  /** One sentence; why, where that is unknown. */
  readonly summary: string;
  /** Of the worst error or warning; empty where there is none. */
  readonly cause: string;
  /** The line of code of that finding; empty where there is none. */
  readonly place: string;
  /** The recorded step since which there has been trouble; null where there is none, or it is not known. */
  readonly first: number | null;
  /** The last recorded step; -1 if none was completed. */
  readonly step: number;
  /** How many were recorded. */
  readonly steps: number;
  /** Null where it is not finite. */
  readonly loss: number | null;
  /** Seconds since the epoch when the last step was recorded. */
  readonly recorded: number;
  /** As HParams logged them beside the run. */
  readonly hyperparameters: Readonly<Record<string, Hyperparameter>>;
}

export type Hyperparameter = number | string | boolean;

export interface Standings {
  readonly runs: readonly Standing[];
  /** Sentences on the hyperparameters that the broken runs share. */
  readonly shared: readonly string[];
  /** Names of those in which the runs differ, the telling ones first. */
  readonly hyperparameters: readonly string[];
  /** Whether all runs are there. */
  readonly complete: boolean;
}

export interface ChunkEntry {
  /** The chunk's first step. */
  readonly id: number;
  readonly trace: number;
  readonly steps: readonly number[];
}

export interface Cost {
  /** Executions of the training function, and those that were recorded. */
  readonly steps: number;
  readonly recorded: number;
  /** Their time, without what was compiled in it. */
  readonly seconds: number;
  /** Of these, what recording took. */
  readonly extra: number;
  /** Seconds that the first recorded step took longer than the others. */
  readonly set_up: number;
  /** The part of the time that recording took. */
  readonly share: number;
}

export interface Overview {
  readonly format: number;
  readonly run: string;
  readonly name: string;
  readonly session: Session;
  /** Other sessions that recorded into the same directory; they are not shown. */
  readonly earlier_sessions: number;
  /** What recording took so far; null if it is not known. */
  readonly cost: Cost | null;
  readonly traces: readonly number[];
  readonly chunks: readonly ChunkEntry[];
  /** All recorded steps, increasing. */
  readonly steps: readonly number[];
  /** The trace of each step. */
  readonly step_trace: readonly number[];
  readonly wall_times: readonly number[];
  /** For each step the value of each target of its trace; null where not finite. */
  readonly losses: readonly (readonly (number | null)[])[];
}

/** Which findings there were over the steps, as far as they were looked at. */
export interface Course {
  readonly format: number;
  /** Those that were looked at, increasing. */
  readonly steps: readonly number[];
  readonly findings: readonly {
    readonly cause: string;
    readonly op: string;
    readonly target: number;
    readonly severity: Severity;
  }[];
  /** For each of the steps, the findings that it has. */
  readonly present: readonly (readonly number[])[];
  /** Whether there is nothing to be gained from asking again. */
  readonly complete: boolean;
}
