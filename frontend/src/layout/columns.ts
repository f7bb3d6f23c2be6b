/** The position of layers: below one another, or, if that would be too tall and narrow, in columns side by side. */

import type {Link} from "./acyclic.ts";

/** Between one layer and the next. */
export const GAP_Y = 32;

export interface Column {
  /** The offset to the x of everything in it. */
  shift: number;
  /** The x of the space to the left of it, in which links come up from the previous column. */
  gutter: number;
}

export interface Columns {
  /** The column of each layer. */
  readonly of: readonly Column[];
  /** The top and the height of each layer. */
  readonly tops: readonly number[];
  readonly heights: readonly number[];
  readonly width: number;
  readonly height: number;
}

/** A drawing lower than this is never split. */
const TALL = 1600;
/** Nor is a drawing that is less than this many times as high as wide. */
const RIBBON = 2.4;
/** The aspect ratio that columns aim for. */
const ASPECT = 1.5;
const GUTTER = 70;
/** How far from the even position, as a share of a column, a split may move to cross fewer links. */
const SLACK = 0.25;

export function columnsOf(
  layers: readonly (readonly number[])[],
  x: Float64Array,
  widths: readonly number[],
  heights: readonly number[],
  links: readonly Link[],
  layerOf: Int32Array,
): Columns {
  const total = heights.reduce((sum, height) => sum + height + GAP_Y, -GAP_Y);
  const extent = extentOf(layers.flat(), x, widths);
  const starts = startsOf(heights, total, extent[1] - extent[0], crossedBy(layers.length, links, layerOf));
  // Links between columns run above and below them.
  const rim = starts.length > 1 ? GAP_Y : 0;
  const of: Column[] = [];
  const tops: number[] = [];
  let left = 0;
  let bottom = 0;
  starts.forEach((start, index) => {
    const end = starts[index + 1] ?? layers.length;
    const [low, high] = extentOf(layers.slice(start, end).flat(), x, widths);
    const column: Column = {shift: left - low, gutter: left - GUTTER / 2};
    let top = rim;
    for (let layer = start; layer < end; layer += 1) {
      of.push(column);
      tops.push(top);
      top += heights[layer] + GAP_Y;
    }
    bottom = Math.max(bottom, top - GAP_Y);
    left += high - low + GUTTER;
  });
  return {of, tops, heights, width: Math.max(0, left - GUTTER), height: Math.max(0, bottom + rim)};
}

function extentOf(nodes: readonly number[], x: Float64Array, widths: readonly number[]): [number, number] {
  let low = Infinity;
  let high = -Infinity;
  for (const node of nodes) {
    const half = Math.max(0, widths[node] / 2);
    low = Math.min(low, x[node] - half);
    high = Math.max(high, x[node] + half);
  }
  return nodes.length === 0 ? [0, 0] : [low, high];
}

/** Number of links that pass between each layer and the next. */
function crossedBy(count: number, links: readonly Link[], layerOf: Int32Array): Int32Array {
  const crossed = new Int32Array(count);
  for (const link of links) {
    crossed[layerOf[link.from]] += 1;
  }
  return crossed;
}

/** The first layer of each column. */
function startsOf(heights: readonly number[], total: number, width: number, crossed: Int32Array): number[] {
  if (total < TALL || total < RIBBON * width) {
    return [0];
  }
  const count = Math.max(2, Math.round(Math.sqrt((ASPECT * total) / (width + GUTTER))));
  const ends: number[] = [];
  let sum = 0;
  for (const height of heights) {
    sum += height + GAP_Y;
    ends.push(sum);
  }
  const starts = [0];
  for (let column = 1; column < count; column += 1) {
    const cut = bestCut(ends, (total * column) / count, (total / count) * SLACK, crossed);
    if (cut + 1 > starts[starts.length - 1] && cut + 1 < heights.length) {
      starts.push(cut + 1);
    }
  }
  return starts;
}

/** The layer after which to split: near the wanted position, where few links pass. */
function bestCut(ends: readonly number[], wanted: number, slack: number, crossed: Int32Array): number {
  let best = ends.findIndex((end) => end >= wanted);
  const cost = (layer: number): number => crossed[layer] + Math.abs(ends[layer] - wanted) / slack;
  ends.forEach((end, layer) => {
    if (Math.abs(end - wanted) <= slack && cost(layer) < cost(best)) {
      best = layer;
    }
  });
  return best;
}
