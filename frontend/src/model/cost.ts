/** The cost of recording, in words. */

import type {Cost} from "../api/routes.ts";

/** A share in readable form: two digits if it is small. */
export function percent(share: number): string {
  const value = 100 * share;
  return `${value < 10 ? value.toPrecision(2) : value.toFixed(0)}%`;
}

export function costInWords({steps, recorded, seconds, extra, set_up, share}: Cost): string {
  return (
    `Recording took ${percent(share)} of the time: ${recorded} of ${steps} executions were recorded so far, in ${time(extra)} ` +
    `of ${time(seconds)}; compiling the recorded step took another ${time(set_up)}.`
  );
}

function time(seconds: number): string {
  return seconds < 1 ? `${Math.round(1000 * seconds)} ms` : `${seconds.toPrecision(3)} s`;
}
