/** Series over the steps, in the form of the charts. */

import {GRADIENT_STATISTICS, RANGE_STATISTICS, VARIABLE_STATISTICS} from "../record.ts";
import {cellOf, type Cell, type Heat} from "./heat.ts";

export interface Series {
  readonly label: string;
  /** Null leaves a gap; undefined is skipped. */
  readonly values: readonly (number | null | undefined)[];
  /** For each step, the reason of a gap, shown at the bottom of the chart. */
  readonly signs?: readonly (string | null)[];
  /** Index of its chart colour; by default, the index of the series. */
  readonly colour?: number;
  readonly dashed?: boolean;
}

export function gradientSeries(values: Float32Array): Series[] {
  const width = GRADIENT_STATISTICS.length;
  return [
    {label: "Norm", values: column(values, width, 0)},
    {label: "Max |g|", values: column(values, width, 1)},
  ];
}

/** Of a row with a range. A logarithmic axis has no place for what is not above zero: a sign stands for it. */
export function rangeSeries(values: Float32Array): Series[] {
  return (["largest", "smallest"] as const).map((name) => {
    const numbers = column(values, GRADIENT_STATISTICS.length, RANGE_STATISTICS.indexOf(name));
    const signs = numbers.map((value) => (value === 0 ? "0" : value !== null && value < 0 ? "−" : value === null || Number.isNaN(value) ? "?" : null));
    return {label: name[0].toUpperCase() + name.slice(1), values: numbers, signs};
  });
}

export function weightSeries(values: Float32Array): Series[] {
  const width = VARIABLE_STATISTICS.length;
  return [
    {label: "Weight", values: column(values, width, 0)},
    {label: "Update", values: column(values, width, 1)},
  ];
}

function column(values: Float32Array, width: number, index: number): (number | null)[] {
  return Array.from({length: values.length / width}, (_, row) => values[row * width + index]);
}

/** One line of a chart: a variable, or an aggregate of all of them, in one run. */
export interface Track {
  readonly label: string;
  readonly steps: readonly number[];
  /** In the encoding of the route `heat`, one for each step. */
  readonly values: readonly number[];
  /** Tracks with the same colour belong together. */
  readonly colour: number;
  /** Whether it belongs to the compared run. */
  readonly dashed: boolean;
  /** Like `values`: the problem at a step even though there is a number. */
  readonly troubles?: readonly number[];
}

/**
 * Tracks over all steps of any of them. A step that a track does not have is skipped; a value that is not a number
 * leaves a gap.
 */
export function chartOf(tracks: readonly Track[]): {readonly steps: readonly number[]; readonly series: readonly Series[]} {
  const steps = [...new Set(tracks.flatMap((track) => track.steps))].sort((a, b) => a - b);
  const place = new Map(steps.map((step, index) => [step, index]));
  const series = tracks.map(({label, colour, dashed, ...track}): Series => {
    const values: (number | null | undefined)[] = steps.map(() => undefined);
    const signs: (string | null)[] = steps.map(() => null);
    track.steps.forEach((step, index) => {
      const at = place.get(step) as number;
      const cell = cellOf(track.values[index]);
      values[at] = cell === "finite" ? track.values[index] : null;
      signs[at] = SIGNS[cell] ?? SIGNS[cellOf(track.troubles?.[index] ?? 1)];
    });
    return {label, values, signs, colour, dashed};
  });
  return {steps, series};
}

/** The sign at the bottom of a chart where its line has a gap. */
const SIGNS: Record<Cell, string | null> = {finite: null, zero: "0", nan: "?", inf: "∞", none: "∅", unrecorded: null};

/** One row of a heat map as a track. */
export function trackOf(heat: Heat, row: number, steps: readonly number[], label: string, colour: number, dashed: boolean): Track {
  const columns = Array.from({length: heat.columns}, (_, column) => column);
  return {
    label,
    steps: columns.map((column) => steps[heat.stepAt(column)]),
    values: columns.map((column) => heat.at(column, row)),
    colour,
    dashed,
  };
}

/** The largest, the middle and the smallest of each step's numbers above zero. */
export function spread(heat: Heat, rows: readonly number[], steps: readonly number[], suffix: string, dashed: boolean): readonly Track[] {
  const sorted = Array.from({length: heat.columns}, (_, column) =>
    rows.map((row) => heat.at(column, row)).filter((value) => value > 0 && value < Infinity).sort((a, b) => a - b),
  );
  const pick = (label: string, colour: number, at: (values: readonly number[]) => number): Track => ({
    label: `${label}${suffix}`,
    steps: sorted.map((_, column) => steps[heat.stepAt(column)]),
    values: sorted.map((values) => (values.length === 0 ? -2 : at(values))),
    colour,
    dashed,
  });
  // One NaN among thousands is what a reader looks for in the chart.
  const troubles = Array.from({length: heat.columns}, (_, column) => {
    const values = rows.map((row) => heat.at(column, row));
    return values.some(Number.isNaN) ? NaN : values.includes(Infinity) ? Infinity : 1;
  });
  return [
    {...pick("largest", 0, (values) => values[values.length - 1]), troubles},
    pick("median", 1, (values) => values[Math.floor(values.length / 2)]),
    pick("smallest", 2, (values) => values[0]),
  ];
}
