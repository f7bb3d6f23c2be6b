/** A picture as SVG, written by the same painters. Text stays text. */

import type {Size} from "../layout/sizes.ts";
import {paintAreas, paintBoxes} from "./boxes.ts";
import type {Brush} from "./brush.ts";
import {paintEdges} from "./edges.ts";
import {keyHeight, paintKey} from "./key.ts";
import type {Palette} from "./palette.ts";
import type {Focus, Picture} from "./picture.ts";

const MARGIN = 24;
/** The maximum width of the key's words. */
const KEY_WIDTH = 240;

/** The whole scene at its own size, and below it the key of its colours. */
export function svgOf(
  picture: Picture,
  scene: Size,
  focus: Focus,
  palette: Palette,
  measure: (text: string, font: string) => TextMetrics,
): string {
  const brush = new SvgBrush(measure);
  paintAreas(brush, picture.boxes, palette, 1);
  paintEdges(brush, picture, picture.edges, focus, palette, 1);
  paintBoxes(brush, picture, picture.boxes, focus, palette, 1);
  brush.globalAlpha = 1;
  paintKey(brush, picture, palette, 0, scene.height + MARGIN);
  const [width, height] = [Math.ceil(Math.max(scene.width, KEY_WIDTH) + 2 * MARGIN), Math.ceil(scene.height + keyHeight(picture) + 3 * MARGIN)];
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="${-MARGIN} ${-MARGIN} ${width} ${height}">`,
    `<rect x="${-MARGIN}" y="${-MARGIN}" width="${width}" height="${height}" fill="${palette.canvas}"/>`,
    ...brush.elements,
    "</svg>",
  ].join("\n");
}

const ANCHORS: Record<string, string> = {left: "start", start: "start", center: "middle", right: "end", end: "end"};

/** Implements the part of a canvas that the painters use: paths, text, alpha and dashes, no transformations. */
export class SvgBrush implements Brush {
  readonly elements: string[] = [];
  readonly #measure: (text: string, font: string) => TextMetrics;
  fillStyle: Brush["fillStyle"] = "#000";
  strokeStyle: Brush["strokeStyle"] = "#000";
  lineWidth = 1;
  globalAlpha = 1;
  font = "10px sans-serif";
  textAlign: CanvasTextAlign = "start";
  textBaseline: CanvasTextBaseline = "alphabetic";
  #dash: readonly number[] = [];
  #path = "";

  constructor(measure: (text: string, font: string) => TextMetrics) {
    this.#measure = measure;
  }

  beginPath(): void {
    this.#path = "";
  }

  moveTo(x: number, y: number): void {
    this.#path += `M${short(x)} ${short(y)}`;
  }

  lineTo(x: number, y: number): void {
    this.#path += `L${short(x)} ${short(y)}`;
  }

  bezierCurveTo(x0: number, y0: number, x1: number, y1: number, x: number, y: number): void {
    this.#path += `C${[x0, y0, x1, y1, x, y].map(short).join(" ")}`;
  }

  /** Whole circles only: nothing else is painted with arcs. */
  arc(x: number, y: number, radius: number): void {
    const r = short(radius);
    this.#path += `M${short(x - radius)} ${short(y)}a${r} ${r} 0 1 0 ${short(2 * radius)} 0a${r} ${r} 0 1 0 ${short(-2 * radius)} 0Z`;
  }

  roundRect(x: number, y: number, width: number, height: number, radii?: number | DOMPointInit | (number | DOMPointInit)[]): void {
    const r = Math.max(0, Math.min(typeof radii === "number" ? radii : 0, width / 2, height / 2));
    const corner = (dx: number, dy: number): string => `a${short(r)} ${short(r)} 0 0 1 ${short(dx)} ${short(dy)}`;
    const [w, h] = [width - 2 * r, height - 2 * r];
    this.#path += `M${short(x + r)} ${short(y)}h${short(w)}${corner(r, r)}v${short(h)}${corner(-r, r)}h${short(-w)}${corner(-r, -r)}v${short(-h)}${corner(r, -r)}Z`;
  }

  closePath(): void {
    this.#path += "Z";
  }

  fill(): void {
    this.#add(`<path d="${this.#path}" fill="${this.fillStyle}"`);
  }

  stroke(): void {
    const dash = this.#dash.length === 0 ? "" : ` stroke-dasharray="${this.#dash.map(short).join(" ")}"`;
    this.#add(`<path d="${this.#path}" fill="none" stroke="${this.strokeStyle}" stroke-width="${short(this.lineWidth)}"${dash}`);
  }

  fillRect(x: number, y: number, width: number, height: number): void {
    this.#add(`<rect x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}" fill="${this.fillStyle}"`);
  }

  setLineDash(dash: Iterable<number>): void {
    this.#dash = [...dash];
  }

  measureText(text: string): TextMetrics {
    return this.#measure(text, this.font);
  }

  fillText(text: string, x: number, y: number): void {
    const baseline = this.textBaseline === "middle" ? ' dominant-baseline="central"' : "";
    this.#add(
      `<text x="${short(x)}" y="${short(y)}" text-anchor="${ANCHORS[this.textAlign]}"${baseline} style="font:${escaped(this.font)}" fill="${this.fillStyle}"`,
      escaped(text),
    );
  }

  #add(element: string, content?: string): void {
    const alpha = this.globalAlpha === 1 ? "" : ` opacity="${short(this.globalAlpha)}"`;
    this.elements.push(content === undefined ? `${element}${alpha}/>` : `${element}${alpha}>${content}</text>`);
  }
}

function short(value: number): string {
  return String(Math.round(value * 100) / 100);
}

const ENTITIES: Record<string, string> = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"};

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (character) => ENTITIES[character]);
}
