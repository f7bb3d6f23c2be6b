/** A picture on a canvas, as a camera sees it. */

import type {Size} from "../layout/sizes.ts";
import {paintAreas, paintBoxes} from "./boxes.ts";
import type {Camera, Rectangle} from "./camera.ts";
import {paintEdges} from "./edges.ts";
import type {Palette} from "./palette.ts";
import type {Focus, Picture, PictureBox} from "./picture.ts";

export interface Stage {
  readonly camera: Camera;
  readonly view: Size;
  /** The part of the world that is seen. */
  readonly window: Rectangle;
  readonly focus: Focus;
  readonly palette: Palette;
}

export function paint(canvas: HTMLCanvasElement, picture: Picture | null, stage: Stage): void {
  const context = prepared(canvas, stage.view);
  if (context === null || picture === null) {
    return;
  }
  const {zoom, x, y} = stage.camera;
  const ratio = ratioOf(canvas, stage.view);
  context.setTransform(ratio * zoom, 0, 0, ratio * zoom, ratio * x, ratio * y);
  const boxes = picture.boxes.filter((box) => touches(box, stage.window));
  const edges = picture.edges.filter((edge) => touches(edge, stage.window));
  paintAreas(context, boxes, stage.palette, zoom);
  paintEdges(context, picture, edges, stage.focus, stage.palette, zoom);
  paintBoxes(context, picture, boxes, stage.focus, stage.palette, zoom);
}

/** All of a scene at the scale of a thumbnail, troubles on top, and the window on it. */
export function paintMap(
  canvas: HTMLCanvasElement,
  picture: Picture,
  scene: Size,
  view: Size,
  window: Rectangle,
  palette: Palette,
): void {
  const context = prepared(canvas, view);
  if (context === null) {
    return;
  }
  const {zoom, x, y} = mapCamera(scene, view);
  const ratio = ratioOf(canvas, view);
  context.setTransform(ratio * zoom, 0, 0, ratio * zoom, ratio * x, ratio * y);
  // Open groups are behind everything; the others do not lie over one another.
  fillAll(context, picture.boxes.filter((box) => box.kind === "open"), palette.inside);
  fillAll(context, picture.boxes.filter((box) => box.kind !== "open" && box.kind !== "loss"), palette.none);
  fillAll(context, picture.boxes.filter((box) => box.kind === "loss"), palette.loss);
  picture.boxes.forEach((box) => paintTrouble(context, box, palette, zoom));
  context.strokeStyle = palette.accent;
  context.lineWidth = 1.5 / zoom;
  context.strokeRect(window.x, window.y, window.width, window.height);
}

function fillAll(context: CanvasRenderingContext2D, boxes: readonly Rectangle[], colour: string): void {
  context.fillStyle = colour;
  for (const {x, y, width, height} of boxes) {
    context.fillRect(x, y, width, height);
  }
}

function paintTrouble(context: CanvasRenderingContext2D, box: PictureBox, palette: Palette, zoom: number): void {
  const inside = box.kind === "group" && (box.badge > 0 || box.warnings > 0);
  const bad = box.missing || box.mark === "blocking" || (inside && box.badge > 0);
  if (bad || box.mark === "warning" || inside) {
    context.fillStyle = bad ? palette.bad : palette.warn;
    const [width, height] = [Math.max(box.width, 5 / zoom), Math.max(box.height, 4 / zoom)];
    context.fillRect(box.x + (box.width - width) / 2, box.y + (box.height - height) / 2, width, height);
  }
}

/** How a map shows a scene. */
export function mapCamera(scene: Size, view: Size): Camera {
  const zoom = Math.min((view.width - 8) / scene.width, (view.height - 8) / scene.height);
  return {zoom, x: (view.width - scene.width * zoom) / 2, y: (view.height - scene.height * zoom) / 2};
}

function ratioOf(canvas: HTMLCanvasElement, view: Size): number {
  return view.width > 0 ? canvas.width / view.width : 1;
}

/** The canvas at the size of the view in the screen's own pixels, empty. */
function prepared(canvas: HTMLCanvasElement, view: Size): CanvasRenderingContext2D | null {
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

function touches(a: Rectangle, b: Rectangle): boolean {
  return a.x <= b.x + b.width && a.x + a.width >= b.x && a.y <= b.y + b.height && a.y + a.height >= b.y;
}
