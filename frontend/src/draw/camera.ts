/** The window on a scene: screen = world * zoom + (x, y). */

import type {Rectangle, Size} from "../layout/sizes.ts";

export type {Rectangle};

export interface Camera {
  readonly zoom: number;
  readonly x: number;
  readonly y: number;
}

/** A graph of 30,000 ops, all open, fits at 0.015. */
const LEAST_ZOOM = 0.005;
const MOST_ZOOM = 2.5;
const MARGIN = 36;

/** Shows all of a rectangle, centred, but never enlarged. */
export function fitted(target: Rectangle, view: Size, mostZoom = 1, margin = MARGIN): Camera {
  const zoom = clamp(
    Math.min((view.width - 2 * margin) / target.width, (view.height - 2 * margin) / target.height, mostZoom),
    LEAST_ZOOM,
    MOST_ZOOM,
  );
  return centredOn(target, view, zoom);
}

export function centredOn(target: Rectangle, view: Size, zoom: number): Camera {
  return {
    zoom,
    x: view.width / 2 - (target.x + target.width / 2) * zoom,
    y: view.height / 2 - (target.y + target.height / 2) * zoom,
  };
}

/** Zooms by a factor, keeping the world under a point of the screen in place. */
export function zoomedAt(camera: Camera, screenX: number, screenY: number, factor: number): Camera {
  const zoom = clamp(camera.zoom * factor, LEAST_ZOOM, MOST_ZOOM);
  const scale = zoom / camera.zoom;
  return {zoom, x: screenX - (screenX - camera.x) * scale, y: screenY - (screenY - camera.y) * scale};
}

export function moved(camera: Camera, dx: number, dy: number): Camera {
  return {...camera, x: camera.x + dx, y: camera.y + dy};
}

export function toWorld(camera: Camera, screenX: number, screenY: number): {x: number; y: number} {
  return {x: (screenX - camera.x) / camera.zoom, y: (screenY - camera.y) / camera.zoom};
}

/** A camera on the path from one to another, `share` from 0 to 1; zoom changes at a constant ratio. */
export function between(from: Camera, to: Camera, share: number): Camera {
  const mix = (a: number, b: number): number => a + (b - a) * share;
  return {zoom: from.zoom * (to.zoom / from.zoom) ** share, x: mix(from.x, to.x), y: mix(from.y, to.y)};
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(high, Math.max(low, value));
}
