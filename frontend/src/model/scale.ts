/** The scale of magnitudes: logarithmic, in whole decades, the same for all loaded steps. */

export interface Scale {
  /** Exponents of ten. */
  readonly low: number;
  readonly high: number;
}

/** A narrower scale would make noise look like a difference. */
const LEAST_DECADES = 4;
/** A wider scale would make all healthy gradients look the same; smaller values are drawn as the lowest. */
const MOST_DECADES = 12;

export const START: Scale = {low: -4, high: 0};

/** The smallest scale that covers `scale` and these norms too. Never narrower than before. */
export function widened(scale: Scale | null, smallest: number, largest: number): Scale {
  if (!(smallest > 0) || !(largest >= smallest) || !Number.isFinite(largest)) {
    return scale ?? START;
  }
  const high = Math.max(scale?.high ?? -Infinity, Math.ceil(Math.log10(largest)) + 0);
  const lowest = Math.min(scale?.low ?? Infinity, Math.floor(Math.log10(smallest)), high - LEAST_DECADES);
  return {low: Math.max(lowest, high - MOST_DECADES), high};
}

/** The position of a norm on the scale: 0 at the low end or below, 1 at the high end or above. */
export function position(scale: Scale, norm: number): number {
  const decades = scale.high - scale.low;
  return Math.min(1, Math.max(0, (Math.log10(norm) - scale.low) / decades));
}
