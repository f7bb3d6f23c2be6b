/** All runs of a log directory: which to open first, their order, and the filter. */

import type {Health, Hyperparameter, RunEntry, Standing} from "../api/routes.ts";

export const HEALTH: Readonly<Record<Health, {readonly icon: string; readonly word: string; readonly tone: "bad" | "warn" | "quiet" | "good"}>> = {
  error: {icon: "⊘", word: "error", tone: "bad"},
  warning: {icon: "△", word: "warning", tone: "warn"},
  unknown: {icon: "?", word: "unknown", tone: "quiet"},
  healthy: {icon: "✓", word: "healthy", tone: "good"},
};

export const HEALTHS: readonly Health[] = ["error", "warning", "unknown", "healthy"];

/**
 * The run to open if the reader has not chosen one: the worst of the analysed runs, the newest of these. If none is
 * analysed, or none is broken, the newest. Null if there is none.
 */
export function runToOpen(runs: readonly RunEntry[]): RunEntry | null {
  const rank = ({health, error}: RunEntry): number => (error !== null ? 3 : health === "error" ? 0 : health === "warning" ? 1 : 2);
  return runs.reduce<RunEntry | null>(
    (best, run) => (best === null || rank(run) < rank(best) || (rank(run) === rank(best) && run.began > best.began) ? run : best),
    null,
  );
}

/** A line for each run; for runs that are not analysed yet, what is known of them. */
export function linesOf(runs: readonly RunEntry[], standings: readonly Standing[]): readonly Standing[] {
  const known = new Map(standings.map((standing) => [standing.run, standing]));
  return runs.map(({run, name, error, health}) => {
    const nothing = {cause: "", place: "", first: null, step: -1, steps: 0, loss: null, has_loss: false, recorded: 0, hyperparameters: {}};
    return known.get(run) ?? {run, name, health: health ?? "unknown", summary: error ?? "Not analysed yet.", ...nothing};
  });
}

/** For a hyperparameter, its name after a prefix that no other column has. */
export type RunColumn = "health" | "name" | "first" | "cause" | "loss" | "recorded" | `=${string}`;

/** The value of a run in a sortable column. */
function valueIn(run: Standing, column: Exclude<RunColumn, "health">): Hyperparameter | null {
  return column.startsWith("=") ? (run.hyperparameters[column.slice(1)] ?? null) : run[column as "name" | "first" | "cause" | "loss" | "recorded"];
}

export function settingInWords(value: Hyperparameter | undefined): string {
  return typeof value === "number" ? formatSetting(value) : value === undefined ? "" : String(value);
}

/** A number in its shortest form: `0.001`, `64`. */
function formatSetting(value: number): string {
  return String(Number(value.toPrecision(6)));
}

export interface RunSorting {
  readonly column: RunColumn;
  readonly descending: boolean;
}

export interface RunFilter {
  /** Words that must all be in the line, ignoring case. */
  readonly words: string;
  /** Null for any. */
  readonly health: Health | null;
}

/** The runs that match a filter. */
export function filteredRuns(runs: readonly Standing[], {words, health}: RunFilter): readonly Standing[] {
  const wanted = words.toLowerCase().split(/\s+/).filter((word) => word !== "");
  return runs.filter((run) => {
    const settings = Object.entries(run.hyperparameters).map(([name, value]) => `${name}=${settingInWords(value)}`);
    const line = [run.name, run.health, run.cause, run.cause.replaceAll("_", " "), run.place, run.summary, ...settings].join("\n").toLowerCase();
    return (health === null || run.health === health) && wanted.every((word) => line.includes(word));
  });
}

/** Worst first, and the newest first within each; or by a column, those without a value last. */
export function sortedRuns(runs: readonly Standing[], sorting: RunSorting | null): readonly Standing[] {
  const worst = (a: Standing, b: Standing): number => HEALTHS.indexOf(a.health) - HEALTHS.indexOf(b.health) || b.recorded - a.recorded;
  if (sorting === null || sorting.column === "health") {
    const order = [...runs].sort(worst);
    return sorting?.descending === true ? order.reverse() : order;
  }
  const {column, descending} = sorting;
  return [...runs].sort((a, b) => {
    const [one, other] = [valueIn(a, column), valueIn(b, column)];
    const absent = Number(isAbsent(one)) - Number(isAbsent(other));
    return absent || (isAbsent(one) ? 0 : (descending ? -1 : 1) * compared(one, other)) || worst(a, b);
  });
}

/** Number of runs for each health; all of them under null. */
export function countsOf(runs: readonly Standing[]): ReadonlyMap<Health | null, number> {
  const counts = new Map<Health | null, number>([[null, runs.length]]);
  runs.forEach(({health}) => counts.set(health, (counts.get(health) ?? 0) + 1));
  return counts;
}

/** Seconds. A step of a large model, or an epoch that is recorded once, takes this long. */
const RECENTLY = 60;

/** Whether the training of a run whose last step was recorded then may go on. */
export function mayGoOn(recorded: number, now: number): boolean {
  return now - recorded < RECENTLY;
}

/** The time since then, in the largest unit that fits: `3 minutes ago`. */
export function agoInWords(seconds: number): string {
  const units = [["day", 86_400], ["hour", 3600], ["minute", 60]] as const;
  const [unit, size] = units.find(([, each]) => seconds >= each) ?? ["second", 1];
  const count = Math.max(0, Math.floor(seconds / size));
  return `${count} ${unit}${count === 1 ? "" : "s"} ago`;
}

function isAbsent(value: Hyperparameter | null): boolean {
  return value === null || value === "";
}

function compared(a: Hyperparameter | null, b: Hyperparameter | null): number {
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), undefined, {numeric: true});
}
