/** A canvas in the screen's own pixels. */

import type {Size} from "../layout/sizes.ts";

/** The canvas at the size of the view, empty. */
export function prepared(canvas: HTMLCanvasElement, view: Size): CanvasRenderingContext2D | null {
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [Math.round(view.width * ratio), Math.round(view.height * ratio)];
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  const context = canvas.getContext("2d");
  context?.setTransform(1, 0, 0, 1, 0, 0);
  context?.clearRect(0, 0, width, height);
  return context;
}

/** Its pixels to one of the view's. */
export function ratioOf(canvas: HTMLCanvasElement, view: Size): number {
  return view.width > 0 ? canvas.width / view.width : 1;
}
