/** The responses of the plugin's routes that are not records: see docs/http.md. */

import type {Session, Severity} from "../record.ts";

export interface RunEntry {
  /** TensorBoard's name of the run: what `run=` takes. */
  readonly run: string;
  /** The displayed name. */
  readonly name: string;
  /** A message that says why this run cannot be read. */
  readonly error: string | null;
  /** Seconds since the epoch when its recording began. */
  readonly began: number;
  /** Its health; null if the run was not analysed yet. */
  readonly health: Health | null;
}

/** The severity of the worst finding; unknown if the log cannot be read, or has no recorded step yet. */
export type Health = "error" | "warning" | "healthy" | "unknown";

/** The state of a run at its last recorded step. */
export interface Standing {
  readonly run: string;
  readonly name: string;
  readonly health: Health;
  /** One sentence; if the health is unknown, the reason. */
  readonly summary: string;
  /** The cause of the worst error or warning; empty if there is none. */
  readonly cause: string;
  /** The line of code of that finding; empty if there is none. */
  readonly place: string;
  /** The recorded step since which there has been an error or a warning; null if there is none, or not known. */
  readonly first: number | null;
  /** The last recorded step; -1 if none was completed. */
  readonly step: number;
  /** Number of recorded steps. */
  readonly steps: number;
  /** Null if it is not finite, or there is none. */
  readonly loss: number | null;
  /** Whether the loss of any target was recorded at that step. */
  readonly has_loss: boolean;
  /** Seconds since the epoch when the last step was recorded. */
  readonly recorded: number;
  /** As HParams logged them in the run's directory. */
  readonly hyperparameters: Readonly<Record<string, Hyperparameter>>;
}

export type Hyperparameter = number | string | boolean;

export interface Standings {
  readonly runs: readonly Standing[];
  /** Sentences about the hyperparameters that the broken runs share. */
  readonly shared: readonly string[];
  /** Names of the hyperparameters that differ between runs, those in the sentences first. */
  readonly hyperparameters: readonly string[];
  /** Whether all runs are included. */
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
  /** Their time, without compilation. */
  readonly seconds: number;
  /** Of these, the time spent on recording. */
  readonly extra: number;
  /** Seconds by which the first recorded step was longer than the others. */
  readonly set_up: number;
  /** The share of the time spent on recording. */
  readonly share: number;
}

export interface Overview {
  readonly format: number;
  readonly run: string;
  readonly name: string;
  readonly session: Session;
  /** Number of other sessions in the same directory; they are not shown. */
  readonly earlier_sessions: number;
  /** The cost of recording so far; null if not known. */
  readonly cost: Cost | null;
  readonly traces: readonly number[];
  readonly chunks: readonly ChunkEntry[];
  /** All recorded steps, increasing. */
  readonly steps: readonly number[];
  /** The trace of each step. */
  readonly step_trace: readonly number[];
  readonly wall_times: readonly number[];
  /** The value of each target of its trace, for each step; null if not finite. */
  readonly losses: readonly (readonly (number | null)[])[];
}

/** Where two runs differ first: see `tb_gradflow/serve/reports/divergence.py`. The rest is there if they differ. */
export interface Divergence {
  readonly a: DivergedRun;
  readonly b: DivergedRun;
  readonly differs: boolean;
  /** One sentence. */
  readonly summary: string;
  /** The value that differs, in sentences. */
  readonly measured?: string;
  /** What was compared and agrees, in sentences; empty if nothing is to be said. */
  readonly agreed: string;
  readonly step?: number;
  readonly direction?: "forward" | "backward" | "update";
  readonly op?: {readonly a: DivergenceOp | null; readonly b: DivergenceOp | null};
  /** The first value that differs; null in it if it is not finite, or not there. */
  readonly value?: {readonly kind: "batch" | "weights" | "value" | "loss" | "gradient" | "rate" | "update"; readonly name: string; readonly statistic: string | null; readonly a: number | null; readonly b: number | null};
  /** What is not the same in the settings; empty if there is none. */
  readonly settings?: readonly {readonly what: string; readonly a: string; readonly b: string}[];
  /** Null where a run has no such op. */
  readonly ops?: readonly {readonly a: string | null; readonly b: string | null; readonly difference: string}[];
  /** Lines of a diff. */
  readonly code?: readonly string[];
}

export interface DivergedRun {
  /** The displayed name. */
  readonly run: string;
  /** Number of recorded steps. */
  readonly recorded: number;
}

export interface DivergenceOp {
  readonly name: string;
  readonly type: string;
  readonly source: {readonly file: string; readonly line: number; readonly code: string | null} | null;
}

/** The findings over the steps, as far as these have been analysed. */
export interface Course {
  readonly format: number;
  /** The analysed steps, increasing. */
  readonly steps: readonly number[];
  readonly findings: readonly {
    readonly cause: string;
    readonly op: string;
    readonly target: number;
    readonly severity: Severity;
  }[];
  /** The indices of the findings of each step. */
  readonly present: readonly (readonly number[])[];
  /** Whether another request would add nothing. */
  readonly complete: boolean;
  /** What of the log cannot be read and is left out, in a sentence; empty if nothing was found. */
  readonly damage: string;
}
