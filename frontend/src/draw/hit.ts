/** Finds the part of the scene under a point. */

import {TOGGLE} from "./boxes.ts";
import {toWorld, type Camera, type Rectangle} from "./camera.ts";
import type {Picture, PictureBox, PictureEdge} from "./picture.ts";

interface Point {
  readonly x: number;
  readonly y: number;
}

export interface Pointed {
  /** The innermost box. */
  readonly box: PictureBox | null;
  /** Whether the point is on the open/close sign of the box. */
  readonly toggles: boolean;
  /** The nearest edge, unless a closed box is in front of it. */
  readonly edge: PictureEdge | null;
}

/** Distance in screen pixels within which an edge is hit. */
const NEAR = 7;

/** The part under a point of the screen. */
export function pointedAt(picture: Picture | null, camera: Camera, x: number, y: number): Pointed {
  if (picture === null) {
    return {box: null, toggles: false, edge: null};
  }
  const point = toWorld(camera, x, y);
  const box = boxAt(picture, point, camera.zoom);
  const edge = box === null || box.kind === "open" ? edgeAt(picture, point, NEAR / camera.zoom) : null;
  return {box, toggles: box !== null && isOnToggle(box, point), edge};
}

function boxAt(picture: Picture, point: Point, zoom: number): PictureBox | null {
  const slack = Math.max(0, 2 / zoom - 2);
  const near = picture.boxesIn(around(point, slack));
  for (let at = near.length - 1; at >= 0; at -= 1) {
    const box = near[at];
    const dx = Math.max(box.x - point.x, point.x - box.x - box.width);
    const dy = Math.max(box.y - point.y, point.y - box.y - box.height);
    if (dx <= slack && dy <= slack) {
      return box;
    }
  }
  return null;
}

function around({x, y}: Point, distance: number): Rectangle {
  return {x: x - distance, y: y - distance, width: 2 * distance, height: 2 * distance};
}

function isOnToggle(box: PictureBox, point: Point): boolean {
  const isGroup = box.kind === "group" || box.kind === "open";
  return isGroup && Math.hypot(point.x - box.x - TOGGLE.x, point.y - box.y - TOGGLE.y) <= TOGGLE.radius + 2;
}

/** The nearest edge within a distance; null if there is none. */
function edgeAt(picture: Picture, point: Point, distance: number): PictureEdge | null {
  let nearest: PictureEdge | null = null;
  let least = distance;
  for (const edge of picture.edgesIn(around(point, distance))) {
    const near =
      point.x >= edge.x - least &&
      point.x <= edge.x + edge.width + least &&
      point.y >= edge.y - least &&
      point.y <= edge.y + edge.height + least;
    const away = near ? distanceTo(edge.routed.points, point) : Infinity;
    if (away < least) {
      least = away;
      nearest = edge;
    }
  }
  return nearest;
}

function distanceTo(points: readonly number[], point: Point): number {
  let least = Infinity;
  for (let at = 2; at < points.length; at += 2) {
    least = Math.min(least, distanceToLine(points[at - 2], points[at - 1], points[at], points[at + 1], point));
  }
  return least;
}

function distanceToLine(x0: number, y0: number, x1: number, y1: number, point: Point): number {
  const length = (x1 - x0) ** 2 + (y1 - y0) ** 2;
  const along = length === 0 ? 0 : ((point.x - x0) * (x1 - x0) + (point.y - y0) * (y1 - y0)) / length;
  const share = Math.min(1, Math.max(0, along));
  return Math.hypot(point.x - x0 - share * (x1 - x0), point.y - y0 - share * (y1 - y0));
}
