/** The x of each node: as close to its neighbours as its order in the layer allows. */

import type {Link} from "./acyclic.ts";

const ITERATIONS = 8;
/**
 * The incoming and outgoing side of a node are far apart if by more than this, and more than this share of its width.
 */
const STAIR = 100;
const SHARE = 0.3;

export interface Attached extends Link {
  /** Where the link leaves and arrives, relative to the centre of the node. */
  readonly fromOffset: number;
  readonly toOffset: number;
}

/** Centres of the nodes, the leftmost edge at zero. `gap` is the space between two neighbours. */
export function placed(
  layers: readonly (readonly number[])[],
  widths: readonly number[],
  links: readonly Attached[],
  gap: number,
): Float64Array {
  const x = packed(layers, widths, gap);
  const {up, down} = adjacency(widths, links);
  for (let round = 0; round < ITERATIONS; round += 1) {
    const downwards = round % 2 === 0;
    const order = layers.map((_, index) => (downwards ? index : layers.length - 1 - index));
    for (const index of order) {
      align(layers[index], downwards ? up : down, x, widths, gap);
    }
  }
  const left = widths.reduce((least, width, node) => Math.min(least, x[node] - width / 2), Infinity);
  return x.map((each) => each - left);
}

type Neighbours = readonly (readonly {node: number; offset: number}[])[];

/** The neighbours of each node above and below, and the wanted offset to their right. */
function adjacency(widths: readonly number[], links: readonly Attached[]): {up: Neighbours; down: Neighbours} {
  const up = widths.map((): {node: number; offset: number}[] => []);
  const down = widths.map((): {node: number; offset: number}[] => []);
  const {arriving, leaving} = sidesOf(widths, links);
  for (const link of links) {
    const offset = link.fromOffset - leaving[link.from] - (link.toOffset - arriving[link.to]);
    up[link.to].push({node: link.from, offset});
    down[link.from].push({node: link.to, offset: -offset});
  }
  return {up, down};
}

/**
 * For each node, where links arrive and leave on average, if these are far apart; otherwise zero. A chain of such
 * nodes, each with its input below the output of the previous one, would form a staircase: they are placed below one
 * another instead.
 */
function sidesOf(widths: readonly number[], links: readonly Attached[]): {arriving: Float64Array; leaving: Float64Array} {
  const [arriving, leaving, ins, outs] = [0, 1, 2, 3].map(() => new Float64Array(widths.length));
  for (const {from, to, fromOffset, toOffset} of links) {
    leaving[from] += fromOffset;
    outs[from] += 1;
    arriving[to] += toOffset;
    ins[to] += 1;
  }
  widths.forEach((width, node) => {
    arriving[node] /= Math.max(1, ins[node]);
    leaving[node] /= Math.max(1, outs[node]);
    const apart = ins[node] > 0 && outs[node] > 0 ? Math.abs(leaving[node] - arriving[node]) : 0;
    if (apart <= Math.max(STAIR, width * SHARE)) {
      [arriving[node], leaving[node]] = [0, 0];
    }
  });
  return {arriving, leaving};
}

function packed(layers: readonly (readonly number[])[], widths: readonly number[], gap: number): Float64Array {
  const x = new Float64Array(widths.length);
  for (const layer of layers) {
    const total = layer.reduce((sum, node) => sum + widths[node] + gap, -gap);
    let at = -total / 2;
    for (const node of layer) {
      x[node] = at + widths[node] / 2;
      at += widths[node] + gap;
    }
  }
  return x;
}

/**
 * Moves the nodes of a layer towards the positions that their neighbours prefer, in order and without overlap: isotonic
 * regression by pooling adjacent violators, on positions from which the minimum distances are subtracted.
 */
function align(layer: readonly number[], neighbours: Neighbours, x: Float64Array, widths: readonly number[], gap: number): void {
  const blocks: {sum: number; weight: number; size: number}[] = [];
  const offsets: number[] = [];
  let offset = 0;
  layer.forEach((node, index) => {
    offset += index === 0 ? 0 : (widths[layer[index - 1]] + widths[node]) / 2 + gap;
    offsets.push(offset);
    const near = neighbours[node];
    const weight = near.length === 0 ? 0.1 : near.length;
    const wanted = near.length === 0 ? x[node] : near.reduce((sum, each) => sum + x[each.node] + each.offset, 0) / near.length;
    blocks.push({sum: (wanted - offset) * weight, weight, size: 1});
    pool(blocks);
  });
  let index = 0;
  for (const block of blocks) {
    for (let count = 0; count < block.size; count += 1, index += 1) {
      x[layer[index]] = block.sum / block.weight + offsets[index];
    }
  }
}

function pool(blocks: {sum: number; weight: number; size: number}[]): void {
  while (blocks.length > 1) {
    const last = blocks[blocks.length - 1];
    const before = blocks[blocks.length - 2];
    if (before.sum / before.weight <= last.sum / last.weight) {
      return;
    }
    blocks.pop();
    before.sum += last.sum;
    before.weight += last.weight;
    before.size += last.size;
  }
}
