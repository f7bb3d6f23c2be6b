/** The table of variables: its rows, their order, and the filter. */

import type {Diagnosis, Status, Trace} from "../record.ts";
import type {Answers, StepNumbers} from "./gradients.ts";
import {explainedIn} from "./findings.ts";
import {STATUS, STATUS_ORDER} from "./words.ts";

/** Numbers are null if there is none; NaN if an element is NaN, or is not finite in a way that was not recorded. */
export interface Row {
  readonly variable: number;
  readonly name: string;
  readonly status: Status | null;
  /** Whether findings only say that its state is intended. */
  readonly explained: boolean;
  /** Whether it gets no gradient: then it has no norm. */
  readonly without: boolean;
  readonly norm: number | null;
  readonly maxAbs: number | null;
  readonly weight: number | null;
  readonly update: number | null;
  /** The update's norm divided by the weight's. */
  readonly ratio: number | null;
}

export type Column = "name" | "status" | "norm" | "maxAbs" | "weight" | "update" | "ratio";

export interface Sorting {
  readonly column: Column;
  readonly descending: boolean;
}

/** The initial order; equal rows are in the model's order. */
export const WORST_FIRST: Sorting = {column: "status", descending: false};

/** Whether it should train but has no usable gradient. Frozen variables are meant to have none. */
export function isTroubled({status, explained}: Row): boolean {
  return status !== null && STATUS[status].tone === "bad" && !explained;
}

export function rowsOf(
  trace: Trace,
  diagnosis: Diagnosis | null,
  answers: Answers,
  numbers: StepNumbers | null,
): readonly Row[] {
  const explained = explainedIn(diagnosis);
  return trace.variables.map((variable, index): Row => {
    const {row, outcome} = answers.variables[index];
    const gradient = numbers?.gradient(row) ?? null;
    const [weight, update] = (numbers?.isFinite(index) ?? true) ? [measured(numbers?.weightNorm(index)), measured(numbers?.updateNorm(index))] : [NaN, NaN];
    // The statistics cover only the finite elements, of which there may be none.
    const known = {nan: NaN, inf: Infinity}[String(numbers?.kind(row))];
    return {
      variable: index,
      name: variable.written === "" ? variable.name : `${variable.written} = ${variable.name}`,
      status: diagnosis?.variables[index]?.status ?? null,
      explained: explained.has(variable.name),
      without: outcome === "none",
      norm: known ?? measured(gradient?.norm),
      maxAbs: known ?? measured(gradient?.max_abs),
      weight,
      update,
      ratio: weight === null || update === null || weight === 0 ? null : update / weight,
    };
  });
}

function measured(value: number | undefined): number | null {
  return value === undefined || Number.isNaN(value) ? null : value;
}

/** Rows whose name or status contains every word of the filter. */
export function filtered(rows: readonly Row[], filter: string): readonly Row[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  return rows.filter((row) => {
    const text = `${row.name} ${row.status === null ? "" : STATUS[row.status].word}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** Missing numbers come last in either direction; equal rows stay in the model's order. */
export function sorted(rows: readonly Row[], {column, descending}: Sorting): readonly Row[] {
  const direction = descending ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [left, right] = [valueOf(a, column), valueOf(b, column)];
    if (left === null || right === null) {
      return Number(left === null) - Number(right === null);
    }
    return left < right ? -direction : left > right ? direction : 0;
  });
}

function valueOf(row: Row, column: Column): string | number | null {
  if (column === "status") {
    // Explained rows come after those that are well.
    const order = row.status === null ? null : STATUS_ORDER.indexOf(row.status);
    return row.explained && order !== null ? Math.max(order, STATUS_ORDER.indexOf("connected") - 0.5) : order;
  }
  const value = row[column];
  return Number.isNaN(value) ? Infinity : value;
}
