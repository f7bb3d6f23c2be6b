/** Paints the edges: one stroke for all that look the same. Widths and dashes are in screen pixels. */

import type {Look} from "../model/bundle.ts";
import {position} from "../model/scale.ts";
import type {Points} from "../layout/layered.ts";
import type {Brush} from "./brush.ts";
import {bucketed} from "./buckets.ts";
import {shadeOf} from "./colour.ts";
import type {Palette} from "./palette.ts";
import type {Focus, Picture, PictureEdge} from "./picture.ts";
import {magnitudeStroke, SIGNS, strokeOf, type Stroke} from "./strokes.ts";

/** Below this zoom, curves become lines and marks are left out. */
export const COARSE = 0.3;
/** Bends closer than this, in screen pixels, are merged. */
const FINEST = 0.7;
const DIMMED = 0.13;
/** Width in screen pixels of a hairline, which is painted several times as fast as a line of two pixels. */
const HAIR = 0.99;

export function paintEdges(
  context: Brush,
  picture: Picture,
  edges: readonly PictureEdge[],
  focus: Focus,
  palette: Palette,
  zoom: number,
): void {
  const {litEdges} = focus;
  if (litEdges === null) {
    paintAll(context, picture, edges, palette, zoom, 1);
    return;
  }
  const lit = new Set(edges.filter((edge) => edge.routed.segment.edges.some((id) => litEdges.has(id))));
  context.globalAlpha = DIMMED;
  paintAll(context, picture, edges.filter((edge) => !lit.has(edge)), palette, zoom, 1);
  context.globalAlpha = 1;
  paintAll(context, picture, [...lit], palette, zoom, 1.5);
}

function paintAll(
  context: Brush,
  picture: Picture,
  edges: readonly PictureEdge[],
  palette: Palette,
  zoom: number,
  boost: number,
): void {
  const base = bucketed(edges.filter((edge) => edge.bundle.look !== "broken"), (edge) => baseKey(edge, picture));
  for (const [key, bucket] of base) {
    strokeBucket(context, bucket, typeof key === "string" ? strokeOf(key, palette) : magnitudeStroke(key, palette), zoom, boost);
  }
  // Broken edges come last, on top of all others.
  const broken = edges.filter((edge) => edge.bundle.broken > 0);
  strokeBucket(context, broken, strokeOf("broken", palette), zoom, boost);
  if (zoom >= COARSE) {
    edges.forEach((edge) => paintMark(context, edge, palette, zoom));
  }
}

/** The shade of a magnitude, or the look of an edge without one. */
type Key = number | Exclude<Look, "finite">;

function baseKey(edge: PictureEdge, picture: Picture): Key {
  const {look, value} = edge.bundle;
  return look === "finite" ? shadeOf(position(picture.scale, value)) : look;
}

function strokeBucket(
  context: Brush,
  edges: readonly PictureEdge[],
  stroke: Stroke,
  zoom: number,
  boost: number,
): void {
  if (edges.length === 0) {
    return;
  }
  context.strokeStyle = stroke.colour;
  context.fillStyle = stroke.colour;
  context.lineWidth = (widthAt(stroke, zoom) * boost) / zoom;
  context.setLineDash(stroke.dash.map((length) => length / zoom));
  context.beginPath();
  edges.forEach((edge) => trace(context, edge.routed.points, zoom));
  context.stroke();
  context.setLineDash([]);
  if (zoom >= COARSE) {
    context.beginPath();
    edges.filter((edge) => edge.arrow).forEach((edge) => traceArrow(context, edge, stroke.width));
    context.fill();
  }
}

/** When zoomed out, whole lines get thinner with the boxes; dashed ones keep the width that makes them recognisable. */
function widthAt({width, dash}: Stroke, zoom: number): number {
  const usual = width * Math.min(1, 0.55 + zoom * 0.6);
  return dash.length > 0 || zoom >= COARSE ? usual : Math.min(usual, Math.max(HAIR, (usual * zoom) / COARSE));
}

function trace(context: Brush, points: Points, zoom: number): void {
  if (zoom < COARSE) {
    traceCoarsely(context, points, FINEST / zoom);
    return;
  }
  context.moveTo(points[0], points[1]);
  for (let at = 2; at < points.length; at += 2) {
    const [x0, y0, x1, y1] = [points[at - 2], points[at - 1], points[at], points[at + 1]];
    if (x0 === x1 || y0 === y1) {
      context.lineTo(x1, y1);
    } else {
      const middle = (y0 + y1) / 2;
      context.bezierCurveTo(x0, middle, x1, middle, x1, y1);
    }
  }
}

/** Drops the bends that are closer to the last one than a distance: they are not visible. */
function traceCoarsely(context: Brush, points: Points, distance: number): void {
  let [x, y] = points;
  context.moveTo(x, y);
  const last = points.length - 2;
  for (let at = 2; at <= last; at += 2) {
    if (at === last || Math.abs(points[at] - x) >= distance || Math.abs(points[at + 1] - y) >= distance) {
      [x, y] = [points[at], points[at + 1]];
      context.lineTo(x, y);
    }
  }
}

function traceArrow(context: Brush, edge: PictureEdge, width: number): void {
  const {points, back} = edge.routed;
  const [x, y] = points.slice(-2);
  const size = 4.5 + width * 0.6;
  const direction = back ? -1 : 1;
  context.moveTo(x, y);
  context.lineTo(x - size * 0.62, y - size * 1.25 * direction);
  context.lineTo(x + size * 0.62, y - size * 1.25 * direction);
  context.closePath();
}

/** A word or sign on edges whose look does not depend on colour alone. */
function paintMark(context: Brush, edge: PictureEdge, palette: Palette, zoom: number): void {
  const {bundle, routed} = edge;
  if (bundle.cut === "path" && routed.segment.to >= 0) {
    const [x, y] = routed.points.slice(-2);
    paintCross(context, x, y - 11, palette, zoom);
  }
  const sign = SIGNS[bundle.look];
  if (sign !== undefined && bundle.look !== "finite" && zoom >= 0.5) {
    const middle = 2 * Math.floor(routed.points.length / 4);
    const x = (routed.points[middle - 2] + routed.points[middle]) / 2;
    const y = (routed.points[middle - 1] + routed.points[middle + 1]) / 2;
    paintWord(context, x, y, sign, strokeOf(bundle.look, palette).colour, palette);
  }
}

function paintCross(context: Brush, x: number, y: number, palette: Palette, zoom: number): void {
  const size = Math.max(6.5, 5 / zoom);
  context.fillStyle = palette.bad;
  context.beginPath();
  context.arc(x, y, size, 0, 2 * Math.PI);
  context.fill();
  context.strokeStyle = palette.onBad;
  context.lineWidth = size / 3.6;
  context.beginPath();
  const arm = size * 0.42;
  context.moveTo(x - arm, y - arm);
  context.lineTo(x + arm, y + arm);
  context.moveTo(x + arm, y - arm);
  context.lineTo(x - arm, y + arm);
  context.stroke();
}

function paintWord(context: Brush, x: number, y: number, word: string, colour: string, palette: Palette): void {
  context.font = "600 10px system-ui, sans-serif";
  context.textAlign = "center";
  context.textBaseline = "middle";
  const width = context.measureText(word).width + 8;
  context.fillStyle = palette.canvas;
  context.beginPath();
  context.roundRect(x - width / 2, y - 7, width, 14, 7);
  context.fill();
  context.strokeStyle = colour;
  context.lineWidth = 1;
  context.stroke();
  context.fillStyle = colour;
  context.fillText(word, x, y + 0.5);
}
