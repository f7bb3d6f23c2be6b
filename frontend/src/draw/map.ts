/** A scene as a thumbnail, with problems on top and the visible window. */

import type {Size} from "../layout/sizes.ts";
import type {Camera, Rectangle} from "./camera.ts";
import {prepared, ratioOf} from "./canvas.ts";
import type {Palette} from "./palette.ts";
import type {Picture} from "./picture.ts";

/** Parts smaller than this share of a pixel are not painted separately, but added up for each pixel. */
const SPECK = 0.3;

/** The transformation from a scene to its map. */
export function mapCamera(scene: Size, view: Size): Camera {
  const zoom = Math.min((view.width - 8) / scene.width, (view.height - 8) / scene.height);
  return {zoom, x: (view.width - scene.width * zoom) / 2, y: (view.height - scene.height * zoom) / 2};
}

/** What hangs on a problem, and is none itself. */
const FAINT = 0.35;

/** The whole scene, without the window. */
export function paintMap(canvas: HTMLCanvasElement, picture: Picture, scene: Size, view: Size, palette: Palette): void {
  const context = prepared(canvas, view);
  if (context === null) {
    return;
  }
  const {zoom, x, y} = mapCamera(scene, view);
  const ratio = ratioOf(canvas, view);
  const scale = ratio * zoom;
  context.setTransform(scale, 0, 0, scale, ratio * x, ratio * y);
  const specks = new Float32Array(canvas.width * canvas.height);
  const troubles: (() => void)[] = [];
  const colours = {open: palette.inside, closed: palette.none, loss: palette.loss, warning: palette.warn, bad: palette.bad, without: palette.bad};
  picture.eachDot((left, top, width, height, dot) => {
    const area = width * height * scale * scale;
    if (dot === "closed" && area < SPECK) {
      const column = Math.floor((left + width / 2) * scale + ratio * x);
      specks[Math.floor((top + height / 2) * scale + ratio * y) * canvas.width + column] += area;
      return;
    }
    const paint = (): void => {
      const trouble = dot === "bad" || dot === "warning";
      const [wide, high] = trouble ? [Math.max(width, 5 / zoom), Math.max(height, 4 / zoom)] : [width, height];
      context.fillStyle = colours[dot];
      context.globalAlpha = dot === "without" ? FAINT : 1;
      context.fillRect(left + (width - wide) / 2, top + (height - high) / 2, wide, high);
      context.globalAlpha = 1;
    };
    // A problem is always visible, whatever is in front of it.
    dot === "bad" || dot === "warning" ? troubles.push(paint) : paint();
  });
  context.setTransform(1, 0, 0, 1, 0, 0);
  paintSpecks(context, specks, canvas.width, palette.none);
  context.setTransform(scale, 0, 0, scale, ratio * x, ratio * y);
  troubles.forEach((paint) => paint());
}

/** `specks`: how much of each pixel they would cover if they did not overlap. */
function paintSpecks(context: CanvasRenderingContext2D, specks: Float32Array, width: number, colour: string): void {
  context.fillStyle = colour;
  specks.forEach((covered, at) => {
    if (covered > 0) {
      context.globalAlpha = 1 - Math.exp(-covered);
      context.fillRect(at % width, Math.floor(at / width), 1, 1);
    }
  });
  context.globalAlpha = 1;
}

/** A painted map, with the window on its scene. */
export function paintWindow(canvas: HTMLCanvasElement, map: HTMLCanvasElement, scene: Size, view: Size, window: Rectangle, palette: Palette): void {
  const context = prepared(canvas, view);
  if (context === null) {
    return;
  }
  context.drawImage(map, 0, 0);
  const {zoom, x, y} = mapCamera(scene, view);
  const ratio = ratioOf(canvas, view);
  context.setTransform(ratio * zoom, 0, 0, ratio * zoom, ratio * x, ratio * y);
  context.strokeStyle = palette.accent;
  context.lineWidth = 1.5 / zoom;
  context.strokeRect(window.x, window.y, window.width, window.height);
}
