/**
 * A layered drawing of a graph: flow runs from top to bottom, and links bend at the layers that they pass. A drawing
 * that would be too tall and narrow is split into columns. Knows boxes and links, but not what they mean.
 */

import {reversals} from "./acyclic.ts";
import {columnsOf, GAP_Y, type Column} from "./columns.ts";
import {layersOf, type Pin} from "./layers.ts";
import {ordered} from "./order.ts";
import {placed, type Attached} from "./place.ts";

export interface Box {
  readonly width: number;
  readonly height: number;
  readonly pin: Pin;
}

/** A polyline: x and y alternating. */
export type Points = number[];

export interface Layered {
  /** Centres. */
  readonly x: Float64Array;
  readonly y: Float64Array;
  readonly width: number;
  readonly height: number;
  /** One for each link, from its `from` to its `to`. */
  readonly routes: readonly Points[];
  /** Whether the link closes a cycle and runs upwards. */
  readonly back: readonly boolean[];
}

export const GAP_X = 26;
/** The distance between links that pass a layer side by side. */
const DUMMY_WIDTH = 12 - GAP_X;

interface Chain {
  /** The nodes that a link passes, in the order of the layers: its ends and the dummies between them. */
  readonly nodes: number[];
  readonly link: Attached;
}

export function layered(boxes: readonly Box[], links: readonly Attached[]): Layered {
  const back = reversals(boxes.length, links);
  const forward = links.map((link, index) => (back[index] ? turned(link) : link));
  const layerOf = layersOf(boxes.length, forward, boxes.map((box) => box.pin));
  const {chains, layers, widths, steps} = withDummies(boxes, forward, layerOf);
  const sorted = ordered(widths.length, layers, steps);
  const x = placed(sorted, widths, steps, GAP_X);
  const columns = columnsOf(sorted, x, widths, heightsOf(sorted, boxes), steps, layerIndex(sorted, widths.length));
  const y = new Float64Array(boxes.length);
  sorted.forEach((layer, index) => {
    for (const node of layer) {
      x[node] += columns.of[index].shift;
      if (node < boxes.length) {
        y[node] = columns.tops[index] + columns.heights[index] / 2;
      }
    }
  });
  const routes = chains.map((chain) => route(chain, boxes, x, y, columns.of, columns, layerOf));
  routes.forEach((points, index) => back[index] && reversePoints(points));
  return {x: x.slice(0, boxes.length), y, width: columns.width, height: columns.height, routes, back};
}

function turned(link: Attached): Attached {
  return {from: link.to, to: link.from, fromOffset: link.toOffset, toOffset: link.fromOffset};
}

function withDummies(boxes: readonly Box[], links: readonly Attached[], layerOf: Int32Array) {
  const widths = boxes.map((box) => box.width);
  const layers: number[][] = Array.from({length: Math.max(-1, ...layerOf) + 1}, () => []);
  boxes.forEach((_, node) => layers[layerOf[node]].push(node));
  const steps: Attached[] = [];
  const chains = links.map((link): Chain => {
    const nodes = [link.from];
    for (let layer = layerOf[link.from] + 1; layer < layerOf[link.to]; layer += 1) {
      layers[layer].push(widths.length);
      nodes.push(widths.length);
      widths.push(DUMMY_WIDTH);
    }
    nodes.push(link.to);
    for (let at = 0; at + 1 < nodes.length; at += 1) {
      steps.push({
        from: nodes[at],
        to: nodes[at + 1],
        fromOffset: at === 0 ? link.fromOffset : 0,
        toOffset: at + 2 === nodes.length ? link.toOffset : 0,
      });
    }
    return {nodes, link};
  });
  return {chains, layers, widths, steps};
}

function heightsOf(layers: readonly (readonly number[])[], boxes: readonly Box[]): number[] {
  return layers.map((layer) => layer.reduce((height, node) => Math.max(height, boxes[node]?.height ?? 0), 0));
}

function layerIndex(layers: readonly (readonly number[])[], count: number): Int32Array {
  const index = new Int32Array(count);
  layers.forEach((layer, at) => {
    for (const node of layer) {
      index[node] = at;
    }
  });
  return index;
}

function route(
  {nodes, link}: Chain,
  boxes: readonly Box[],
  x: Float64Array,
  y: Float64Array,
  of: readonly Column[],
  columns: {readonly tops: readonly number[]; readonly heights: readonly number[]},
  layerOf: Int32Array,
): Points {
  const first = layerOf[link.from];
  const points: Points = [x[link.from] + link.fromOffset, y[link.from] + boxes[link.from].height / 2];
  for (let at = 0; at + 1 < nodes.length; at += 1) {
    const layer = first + at;
    const left = x[nodes[at]] + (at === 0 ? link.fromOffset : 0);
    const right = x[nodes[at + 1]] + (at + 2 === nodes.length ? link.toOffset : 0);
    const bottom = columns.tops[layer] + columns.heights[layer];
    points.push(left, bottom);
    if (of[layer] !== of[layer + 1]) {
      points.push(...detour(left, bottom, right, columns.tops[layer + 1], of[layer + 1].gutter));
    }
    points.push(right, columns.tops[layer + 1]);
  }
  points.push(x[link.to] + link.toOffset, y[link.to] - boxes[link.to].height / 2);
  return points;
}

/** Below the column, up next to it, and into the next from above. */
function detour(left: number, bottom: number, right: number, top: number, gutter: number): Points {
  const below = bottom + GAP_Y / 2;
  const above = top - GAP_Y / 2;
  return [left, below, gutter, below, gutter, above, right, above];
}

function reversePoints(points: Points): void {
  for (let left = 0, right = points.length - 2; left < right; left += 2, right -= 2) {
    [points[left], points[right]] = [points[right], points[left]];
    [points[left + 1], points[right + 1]] = [points[right + 1], points[left + 1]];
  }
}
