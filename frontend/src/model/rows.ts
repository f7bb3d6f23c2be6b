/** The table of variables: its rows, their order, and which of them are wanted. */

import type {Diagnosis, Status, Trace} from "../record.ts";
import type {Answers, StepNumbers} from "./gradients.ts";
import {STATUS, STATUS_ORDER} from "./words.ts";

/** Numbers are null where there is none. */
export interface Row {
  readonly variable: number;
  readonly name: string;
  readonly status: Status | null;
  readonly norm: number | null;
  readonly maxAbs: number | null;
  readonly weight: number | null;
  readonly update: number | null;
  /** Of the update's norm to the weight's. */
  readonly ratio: number | null;
}

export type Column = "name" | "status" | "norm" | "maxAbs" | "weight" | "update" | "ratio";

export interface Sorting {
  readonly column: Column;
  readonly descending: boolean;
}

/** As the table begins; alike rows stand in the model's order. */
export const WORST_FIRST: Sorting = {column: "status", descending: false};

/** Whether it ought to train and has no gradient that could do so. Frozen variables are meant to have none. */
export function isTroubled({status}: Row): boolean {
  return status !== null && STATUS[status].tone === "bad";
}

export function rowsOf(
  trace: Trace,
  diagnosis: Diagnosis | null,
  answers: Answers,
  numbers: StepNumbers | null,
): readonly Row[] {
  return trace.variables.map((variable, index): Row => {
    const gradient = numbers?.gradient(answers.variables[index].row) ?? null;
    const weight = measured(numbers?.weightNorm(index));
    const update = measured(numbers?.updateNorm(index));
    return {
      variable: index,
      name: variable.name,
      status: diagnosis?.variables[index]?.status ?? null,
      norm: measured(gradient?.norm),
      maxAbs: measured(gradient?.max_abs),
      weight,
      update,
      ratio: weight === null || update === null || weight === 0 ? null : update / weight,
    };
  });
}

function measured(value: number | undefined): number | null {
  return value === undefined || Number.isNaN(value) ? null : value;
}

/** Rows whose name or status has every word of the filter in it. */
export function filtered(rows: readonly Row[], filter: string): readonly Row[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  return rows.filter((row) => {
    const text = `${row.name} ${row.status === null ? "" : STATUS[row.status].word}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** Absent numbers come last in either direction; equal rows stay in the model's order. */
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
    return row.status === null ? null : STATUS_ORDER.indexOf(row.status);
  }
  return row[column];
}
