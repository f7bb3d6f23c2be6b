/** Series over the steps, as the charts take them. */

import {GRADIENT_STATISTICS, VARIABLE_STATISTICS} from "../record.ts";

export interface Series {
  readonly label: string;
  readonly values: readonly (number | null)[];
}

export function gradientSeries(values: Float32Array): Series[] {
  const width = GRADIENT_STATISTICS.length;
  return [
    {label: "Norm", values: column(values, width, 0)},
    {label: "Max |g|", values: column(values, width, 1)},
  ];
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
