/** A picture on a canvas, as a camera sees it. */

import type {Size} from "../layout/sizes.ts";
import {LEGIBLE, paintAreas, paintBoxes} from "./boxes.ts";
import type {Camera, Rectangle} from "./camera.ts";
import {prepared, ratioOf} from "./canvas.ts";
import {paintEdges} from "./edges.ts";
import type {Palette} from "./palette.ts";
import type {Focus, Picture} from "./picture.ts";

export interface Stage {
  readonly camera: Camera;
  readonly view: Size;
  /** The visible part of the world. */
  readonly window: Rectangle;
  readonly focus: Focus;
  readonly palette: Palette;
}

/** The layers behind and in front of the edges, as they were last painted for the same view. */
class Still {
  readonly ground = document.createElement("canvas");
  readonly boxes = document.createElement("canvas");
  causes: readonly unknown[] = [];
  isPainted = false;
}

const STILLS = new WeakMap<HTMLCanvasElement, Still>();

export function paint(canvas: HTMLCanvasElement, picture: Picture | null, stage: Stage): void {
  const context = prepared(canvas, stage.view);
  if (context === null || picture === null) {
    return;
  }
  const {focus, palette, camera: {zoom}} = stage;
  const still = stillOf(canvas, picture, stage);
  const boxes = still === null ? picture.boxesIn(stage.window) : [];
  const paintStill = (layer: HTMLCanvasElement): void => {
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.drawImage(layer, 0, 0);
    look(canvas, context, stage);
  };
  look(canvas, context, stage);
  still === null ? paintAreas(context, boxes, palette, zoom) : paintStill(still.ground);
  paintEdges(context, picture, picture.edgesIn(stage.window), focus, palette, zoom);
  still === null ? paintBoxes(context, picture, boxes, focus, palette, zoom) : paintStill(still.boxes);
}

/**
 * While only numbers change, as from one step to the next, boxes that are too small to show numbers are kept. Null if
 * they may not be kept: moving things are not worth it.
 */
function stillOf(canvas: HTMLCanvasElement, picture: Picture, stage: Stage): Still | null {
  const {camera: {zoom, x, y}, view, focus: {litItems, selected, hovered}, palette} = stage;
  const still = STILLS.get(canvas) ?? new Still();
  STILLS.set(canvas, still);
  const causes = [picture.steady, zoom, x, y, view.width, view.height, canvas.width, litItems, selected, hovered, palette];
  if (zoom >= LEGIBLE || causes.some((cause, index) => cause !== still.causes[index])) {
    still.causes = causes;
    still.isPainted = false;
    return null;
  }
  if (!still.isPainted) {
    const boxes = picture.boxesIn(stage.window);
    const [ground, front] = [prepared(still.ground, view), prepared(still.boxes, view)];
    if (ground === null || front === null) {
      return null;
    }
    look(still.ground, ground, stage);
    look(still.boxes, front, stage);
    paintAreas(ground, boxes, palette, zoom);
    paintBoxes(front, picture, boxes, stage.focus, palette, zoom);
    still.isPainted = true;
  }
  return still;
}

/** Paints the camera's view. */
function look(canvas: HTMLCanvasElement, context: CanvasRenderingContext2D, {camera: {zoom, x, y}, view}: Stage): void {
  const ratio = ratioOf(canvas, view);
  context.setTransform(ratio * zoom, 0, 0, ratio * zoom, ratio * x, ratio * y);
}
