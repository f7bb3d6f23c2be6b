/** Tables as text. */

import {NONE} from "./format.ts";
import type {Row} from "./rows.ts";
import {STATUS} from "./words.ts";

const HEAD = ["variable", "status", "gradient_norm", "max_abs", "weight_norm", "update_norm", "update_ratio"];

/** One line for each row, as in RFC 4180; a missing number is an empty cell. */
export function csvOf(rows: readonly Row[]): string {
  return tableOf(rows).map((cells) => `${cells.map(quoted).join(",")}\r\n`).join("");
}

/** The same with tabs, for pasting into spreadsheets. */
export function tsvOf(rows: readonly Row[]): string {
  return tableOf(rows).map((cells) => cells.map((cell) => cell.replace(/[\t\n\r]/g, " ")).join("\t")).join("\n");
}

function tableOf(rows: readonly Row[]): string[][] {
  const body = rows.map(({name, status, without, norm, maxAbs, weight, update, ratio}) => [
    name,
    status === null ? "" : STATUS[status].word,
    ...[norm, maxAbs].map((value) => (without ? NONE : numberIn(value))),
    ...[weight, update, ratio].map(numberIn),
  ]);
  return [HEAD, ...body];
}

function numberIn(value: number | null): string {
  return value === null ? "" : String(value);
}

function quoted(cell: string): string {
  // A spreadsheet would evaluate text that looks like a formula, and a variable may have any name.
  const tame = /^[=+@]|^-(?!\d)/.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(tame) ? `"${tame.replaceAll('"', '""')}"` : tame;
}
