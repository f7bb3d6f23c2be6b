/** The terms of a loss by layer: the share of each in the gradient, and the most opposed pair. */

import type {TermReport} from "../record.ts";

/** Two terms and the cosine between their gradients for a layer. */
export interface Angle {
  readonly one: string;
  readonly other: string;
  readonly cosine: number;
}

export interface LayerTerms {
  readonly layer: string;
  /** For each term of the loss, its norm divided by the sum of all norms; null if it does not reach the layer. */
  readonly shares: readonly (number | null)[];
  /** The two most opposed terms; null if no two have a cosine. */
  readonly conflict: Angle | null;
}

/** The losses that have terms, in order, each with its terms. */
export function losses(terms: readonly TermReport[]): TermReport[][] {
  const targets = [...new Set(terms.map((term) => term.target))];
  return targets.map((target) => terms.filter((term) => term.target === target));
}

/** The layers that the terms of one loss reach, in the order of the variables. */
export function byLayer(terms: readonly TermReport[]): LayerTerms[] {
  const names = terms.flatMap((term) => term.variables.map((each) => layerOf(each.variable)));
  return [...new Set(names)].map((layer) => {
    const norms = terms.map((term) => {
      const reached = term.variables.filter((each) => layerOf(each.variable) === layer);
      return reached.length === 0 ? null : Math.hypot(...reached.map((each) => each.norm));
    });
    const total = norms.reduce<number>((sum, norm) => sum + (norm ?? 0), 0);
    const shares = norms.map((norm) => (norm === null || total === 0 ? null : norm / total));
    return {layer, shares, conflict: conflictOf(terms, layer)};
  });
}

export function layerOf(variable: string): string {
  return variable.slice(0, Math.max(0, variable.lastIndexOf("/"))) || variable;
}

function conflictOf(terms: readonly TermReport[], layer: string): Angle | null {
  let found: Angle | null = null;
  for (const [place, one] of terms.entries()) {
    for (const other of terms.slice(place + 1)) {
      const cosine = cosineOf(one, other, layer);
      if (cosine !== null && (found === null || cosine < found.cosine)) {
        found = {one: one.name, other: other.name, cosine};
      }
    }
  }
  return found;
}

/** Between the gradients of all variables of the layer that both terms reach, as one vector each. */
function cosineOf(one: TermReport, other: TermReport, layer: string): number | null {
  let [product, first, second] = [0, 0, 0];
  for (const each of one.variables.filter((known) => layerOf(known.variable) === layer)) {
    const beside = other.variables.find((known) => known.variable === each.variable);
    const cosine = each.cosine.find((angle) => angle.term === other.name)?.cosine ?? null;
    if (beside !== undefined) {
      product += each.norm * beside.norm * (cosine ?? 0);
      first += each.norm ** 2;
      second += beside.norm ** 2;
    }
  }
  const size = Math.sqrt(first * second);
  return size > 0 ? Math.max(-1, Math.min(1, product / size)) : null;
}

/** `34.9%`; never 0 or 100 unless exact. */
export function percent(share: number): string {
  if (share > 0 && share < 0.001) {
    return "<0.1%";
  }
  if (share > 0.999 && share < 1) {
    return ">99.9%";
  }
  return `${Number((100 * share).toFixed(1))}%`;
}
