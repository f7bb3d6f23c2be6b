/** Paints the visible rows of the heat map, each with its name. */

import {cellOf, type Cell, type Heat} from "../model/heat.ts";
import {position, type Scale} from "../model/scale.ts";
import type {Size} from "../layout/sizes.ts";
import {patternOf, type Special} from "./cells.ts";
import {magnitudeColour, shadeOf, SHADES} from "./colour.ts";
import type {Palette} from "./palette.ts";

export const ROW = 16;
const GAP = 1;
const FONT = '11.5px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
const SPECIAL: readonly Special[] = ["nan", "inf", "zero", "none", "unrecorded"];

export interface HeatStage {
  readonly view: Size;
  /** Width of the names. */
  readonly names: number;
  /** Pixels scrolled at the top. */
  readonly scrolled: number;
  readonly scale: Scale;
  readonly palette: Palette;
  /** The column of the chosen step; -1 for none. */
  readonly column: number;
  /** Index of the selected variable; -1 for none. */
  readonly selected: number;
}

export function paintHeat(canvas: HTMLCanvasElement, heat: Heat, rows: readonly number[], nameOf: (row: number) => string, stage: HeatStage): void {
  const context = prepared(canvas, stage.view);
  if (context === null) {
    return;
  }
  const {view, names, scrolled, palette} = stage;
  const patterns = new Map<Cell, CanvasPattern | string>(SPECIAL.map((cell) => [cell, patternOf(context, cell, palette)]));
  const first = Math.floor(scrolled / ROW);
  const last = Math.min(rows.length, Math.ceil((scrolled + view.height) / ROW));
  context.font = FONT;
  context.textBaseline = "middle";
  for (let at = first; at < last; at += 1) {
    const y = at * ROW - scrolled;
    if (rows[at] === stage.selected) {
      context.fillStyle = palette.accentSoft;
      context.fillRect(0, y, names, ROW);
    }
    context.fillStyle = rows[at] === stage.selected ? palette.accent : palette.text;
    context.fillText(ending(context, nameOf(rows[at]), names - 14), 8, y + ROW / 2);
    paintRow(context, heat, rows[at], y, stage, patterns);
  }
  paintStep(context, heat, stage);
}

/** Adjacent cells that look the same are painted as one. */
function paintRow(
  context: CanvasRenderingContext2D,
  heat: Heat,
  row: number,
  y: number,
  {view, names, scale, palette}: HeatStage,
  patterns: ReadonlyMap<Cell, CanvasPattern | string>,
): void {
  const width = (view.width - names) / heat.columns;
  const shades = Array.from({length: SHADES}, (_, shade) => magnitudeColour(shade / (SHADES - 1), palette.dark));
  const lookAt = (column: number): CanvasPattern | string => {
    const value = heat.at(column, row);
    const cell = cellOf(value);
    return cell === "finite" ? shades[shadeOf(position(scale, value))] : (patterns.get(cell) as CanvasPattern);
  };
  let begin = 0;
  let look = lookAt(0);
  for (let column = 1; column <= heat.columns; column += 1) {
    const next = column < heat.columns ? lookAt(column) : null;
    if (next !== look) {
      const left = Math.round(names + begin * width);
      context.fillStyle = look;
      context.fillRect(left, y, Math.round(names + column * width) - left, ROW - GAP);
      begin = column;
      look = next ?? look;
    }
  }
}

function paintStep(context: CanvasRenderingContext2D, heat: Heat, {view, names, column, palette}: HeatStage): void {
  if (column >= 0) {
    const width = (view.width - names) / heat.columns;
    context.strokeStyle = palette.text;
    context.lineWidth = 1.5;
    context.strokeRect(names + column * width, -2, Math.max(2, width), view.height + 4);
  }
}

/** The end of a name distinguishes variables. */
function ending(context: CanvasRenderingContext2D, text: string, room: number): string {
  const width = context.measureText(text).width;
  return width <= room ? text : `…${text.slice(text.length - Math.max(1, Math.floor((text.length * room) / width) - 1))}`;
}

function prepared(canvas: HTMLCanvasElement, {width, height}: Size): CanvasRenderingContext2D | null {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  context?.scale(ratio, ratio);
  return context;
}
