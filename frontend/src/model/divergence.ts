/** The first difference between two runs, in rows: what it is, and what it is in each of them. */

import type {Divergence, DivergenceOp} from "../api/routes.ts";
import {fileName} from "./format.ts";

export interface SideRow {
  readonly what: string;
  /** Empty if there is none. */
  readonly a: string;
  readonly b: string;
  /** Whether both are code. */
  readonly isCode: boolean;
}

const STATISTICS: Readonly<Record<string, string>> = {
  max_abs: "largest magnitude",
  mean_abs: "mean magnitude",
  smallest: "smallest element",
  largest: "largest element",
};

/** Where it begins: the value that differs first, and the op. */
export function beginning({value, op}: Divergence): SideRow[] {
  const rows: SideRow[] = [];
  if (value !== undefined) {
    rows.push({what: quantity(value), a: precise(value.a), b: precise(value.b), isCode: false});
  }
  if (op !== undefined && (op.a !== null || op.b !== null)) {
    rows.push({what: "op", a: named(op.a), b: named(op.b), isCode: false});
    if ((op.a?.source ?? op.b?.source ?? null) !== null) {
      rows.push({what: "line", a: lineOf(op.a), b: lineOf(op.b), isCode: false}, {what: "code", a: codeOf(op.a), b: codeOf(op.b), isCode: true});
    }
  }
  return rows;
}

/** What is compared, as `tb-gradflow diverge` calls it. */
function quantity({kind, name, statistic}: NonNullable<Divergence["value"]>): string {
  const measure = STATISTICS[statistic ?? ""] ?? statistic ?? "";
  const words: Readonly<Record<typeof kind, string>> = {
    batch: `${measure} of ${name} in the batch`,
    weights: `${measure} of ${name} before the step`,
    value: `${measure} of what ${name} takes`,
    loss: `loss ${name}`,
    gradient: `${measure} of the gradient at ${name}`,
    rate: `learning rate of ${name}`,
    update: statistic === "weight" ? `norm of ${name} after the step` : `norm of the update of ${name}`,
  };
  return words[kind];
}

/** What is not the same in the settings: versions, the seed, types, the optimizer. */
export function settings({settings: found = []}: Divergence): SideRow[] {
  return found.map(({what, a, b}) => ({what, a, b, isCode: false}));
}

/** Six figures: two values that are close to each other are told apart. Null if it is not finite, or there is none. */
function precise(value: number | null): string {
  return value === null ? "not finite, or not there" : String(Number(value.toPrecision(6))).replaceAll("-", "−");
}

function named(op: DivergenceOp | null): string {
  return op === null ? "" : `${op.name} (${op.type})`;
}

function lineOf(op: DivergenceOp | null): string {
  return op === null || op.source === null ? "" : `${fileName(op.source.file)}:${op.source.line}`;
}

function codeOf(op: DivergenceOp | null): string {
  return op?.source?.code?.trim() ?? "";
}
