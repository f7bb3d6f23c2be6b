/** The overlays in the graph's corners, and how much of a path they cover. */

import type {Camera, Rectangle} from "../draw/camera.ts";
import type {Size} from "../layout/sizes.ts";

/** Pixels between a corner and its overlay, and between that and the graph. */
const GAP = 12;
const TOOLS: Size = {width: 166, height: 30};
const MAP: Size = {width: 150, height: 120};
/** At a lower height, the area next to the buttons, at most names of groups, is given up. */
const HIGH = 300;
/** The map is not shown in a narrower frame. */
export const ROOM_FOR_MAP = 540;

/** The covered rectangles, on the screen, in a free space of that size. */
export function cornersOf({width, height}: Size, legend: Size): readonly Rectangle[] {
  const grown = ({width, height}: Size): Size => ({width: width + 2 * GAP, height: height + 2 * GAP});
  const [left, right, top] = [grown(legend), grown(MAP), grown(TOOLS)];
  return [
    {x: 0, y: 0, width: height < HIGH ? top.width : width, height: top.height},
    ...(legend.width === 0 ? [] : [{x: 0, y: height - left.height, ...left}]),
    ...(width < ROOM_FOR_MAP ? [] : [{x: width - right.width, y: height - right.height, ...right}]),
  ];
}

/** The free space, and parts of it with fewer corners: next to each corner, and above all of them. */
export function areasOf({width, height}: Size, legend: Size): readonly Rectangle[] {
  const [{height: top}, ...low] = cornersOf({width, height}, legend);
  const left = Math.max(0, ...low.filter(({x}) => x === 0).map((corner) => corner.width));
  const right = Math.max(0, ...low.filter(({x}) => x > 0).map((corner) => corner.width));
  const bottom = Math.max(0, ...low.map((corner) => corner.height));
  return [
    {x: 0, y: 0, width, height},
    {x: left, y: 0, width: width - left, height},
    {x: 0, y: 0, width: width - right, height},
    {x: left, y: 0, width: width - left - right, height},
    {x: 0, y: 0, width, height: height - bottom},
    {x: 0, y: top, width, height: height - top},
    {x: left, y: top, width: width - left - right, height: height - top},
  ].filter((area) => area.width > 0 && area.height > 0);
}

/** The weight of items after the main one and its successor, relative to the path to it. */
const BEHIND = 0.01;

/** A penalty for boxes that are covered or not visible; the one at `at` counts for more than all others. */
export function coveredOf(camera: Camera, boxes: readonly Rectangle[], at: number, corners: readonly Rectangle[], {width, height}: Size): number {
  const worth = (index: number): number => (index === at ? boxes.length : at < 0 || index <= at + 1 ? 1 : BEHIND);
  const weigh = (box: Rectangle, index: number): number => {
    const seen = {x: box.x * camera.zoom + camera.x, y: box.y * camera.zoom + camera.y, width: box.width * camera.zoom, height: box.height * camera.zoom};
    const isOutside = seen.x < 0 || seen.y < 0 || seen.x + seen.width > width || seen.y + seen.height > height;
    return (isOutside || corners.some((corner) => overlap(seen, corner)) ? 1 : 0) * worth(index);
  };
  return boxes.reduce((sum, box, index) => sum + weigh(box, index), 0);
}

export function overlap(a: Rectangle, b: Rectangle): boolean {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}
