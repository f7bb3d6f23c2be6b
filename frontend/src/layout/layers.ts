/** Assigns a layer to each node so that every link points down and is as short as a few passes can make it. */

import type {Link} from "./acyclic.ts";

/** Pins a node to the first or the last layer. */
export type Pin = "first" | "last" | null;

const PASSES = 2;

/** `links` have no cycle. */
export function layersOf(count: number, links: readonly Link[], pins: readonly Pin[]): Int32Array {
  const outgoing: number[][] = Array.from({length: count}, () => []);
  const incoming: number[][] = Array.from({length: count}, () => []);
  for (const link of links) {
    outgoing[link.from].push(link.to);
    incoming[link.to].push(link.from);
  }
  const order = orderOfFlow(incoming, outgoing);
  const layers = new Int32Array(count);
  const base = pins.includes("first") ? 1 : 0;
  for (const node of order) {
    layers[node] = pins[node] === "first" ? 0 : lowest(incoming[node], layers, base);
  }
  for (let pass = 0; pass < PASSES; pass += 1) {
    pullTogether(order, incoming, outgoing, pins, layers, base);
  }
  const last = layers.reduce((a, b, node) => (pins[node] === "last" ? a : Math.max(a, b)), -1) + 1;
  pins.forEach((pin, node) => {
    layers[node] = pin === "last" ? last : layers[node];
  });
  return layers;
}

function lowest(nodes: readonly number[], layers: Int32Array, base: number): number {
  let layer = base;
  for (const node of nodes) {
    layer = Math.max(layer, layers[node] + 1);
  }
  return layer;
}

/** A node with more, or only, links below moves down to them: a variable is placed right above its op. */
function pullTogether(
  order: readonly number[],
  incoming: readonly (readonly number[])[],
  outgoing: readonly (readonly number[])[],
  pins: readonly Pin[],
  layers: Int32Array,
  base: number,
): void {
  for (let at = order.length - 1; at >= 0; at -= 1) {
    const node = order[at];
    const below = outgoing[node].filter((each) => pins[each] !== "last");
    if (pins[node] === null && below.length > 0 && below.length >= incoming[node].length) {
      const highest = below.reduce((layer, each) => Math.min(layer, layers[each]), Infinity);
      const least = lowest(incoming[node], layers, base);
      const moves = incoming[node].length === 0 || below.length > incoming[node].length;
      layers[node] = moves ? Math.max(least, highest - 1) : layers[node];
    }
  }
}

function orderOfFlow(incoming: readonly (readonly number[])[], outgoing: readonly (readonly number[])[]): number[] {
  const waiting = incoming.map((each) => each.length);
  const order = waiting.flatMap((inputs, node) => (inputs === 0 ? [node] : []));
  for (let at = 0; at < order.length; at += 1) {
    for (const to of outgoing[order[at]]) {
      waiting[to] -= 1;
      if (waiting[to] === 0) {
        order.push(to);
      }
    }
  }
  return order;
}
