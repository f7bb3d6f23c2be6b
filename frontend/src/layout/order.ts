/** Orders nodes within their layers so that few links cross: barycentre sweeps, of which the best is kept. */

import type {Link} from "./acyclic.ts";

const SWEEPS = 8;

/** `links` join adjacent layers only; `layers` contains the nodes of each, in any order. */
export function ordered(count: number, layers: readonly (readonly number[])[], links: readonly Link[]): number[][] {
  const up: number[][] = Array.from({length: count}, () => []);
  const down: number[][] = Array.from({length: count}, () => []);
  for (const link of links) {
    down[link.from].push(link.to);
    up[link.to].push(link.from);
  }
  const place = new Float64Array(count);
  let current = layers.map((layer) => [...layer]);
  current.forEach((layer) => settle(layer, place));
  let best = current.map((layer) => [...layer]);
  let fewest = crossings(current, down, place);
  for (let sweep = 0; sweep < SWEEPS && fewest > 0; sweep += 1) {
    current = swept(current, sweep % 2 === 0 ? up : down, place, sweep % 2 === 0);
    const crossed = crossings(current, down, place);
    if (crossed < fewest) {
      fewest = crossed;
      best = current.map((layer) => [...layer]);
    }
  }
  return best;
}

function swept(layers: number[][], towards: readonly (readonly number[])[], place: Float64Array, downwards: boolean): number[][] {
  const order = layers.map((_, index) => (downwards ? index : layers.length - 1 - index));
  for (const index of order) {
    const wanted = new Map(layers[index].map((node) => [node, barycentre(node, towards[node], place)]));
    layers[index].sort((a, b) => (wanted.get(a) as number) - (wanted.get(b) as number));
    settle(layers[index], place);
  }
  return layers;
}

function barycentre(node: number, neighbours: readonly number[], place: Float64Array): number {
  if (neighbours.length === 0) {
    return place[node];
  }
  return neighbours.reduce((sum, each) => sum + place[each], 0) / neighbours.length;
}

/** Positions are fractions of the layer's width, so that layers of different sizes are comparable. */
function settle(layer: readonly number[], place: Float64Array): void {
  layer.forEach((node, index) => {
    place[node] = (index + 0.5) / layer.length;
  });
}

function crossings(layers: readonly (readonly number[])[], down: readonly (readonly number[])[], place: Float64Array): number {
  return layers.reduce((sum, layer, index) => sum + crossingsBelow(layer, layers[index + 1] ?? [], down, place), 0);
}

/** Counts inversions among the lower ends of the links with a Fenwick tree. */
function crossingsBelow(
  upper: readonly number[],
  lower: readonly number[],
  down: readonly (readonly number[])[],
  place: Float64Array,
): number {
  const counts = new Int32Array(lower.length + 1);
  const position = (node: number): number => Math.round(place[node] * lower.length - 0.5) + 1;
  let seen = 0;
  let crossed = 0;
  for (const node of upper) {
    const ends = down[node].map(position).sort((a, b) => a - b);
    for (const end of ends) {
      let before = 0;
      for (let at = end; at > 0; at -= at & -at) {
        before += counts[at];
      }
      crossed += seen - before;
    }
    for (const end of ends) {
      seen += 1;
      for (let at = end; at <= lower.length; at += at & -at) {
        counts[at] += 1;
      }
    }
  }
  return crossed;
}
