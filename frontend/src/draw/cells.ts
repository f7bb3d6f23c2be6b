/** The look of the heat map's cells: a colour for a number, a pattern for everything else. */

import type {Cell} from "../model/heat.ts";
import type {Palette} from "./palette.ts";

export type Special = Exclude<Cell, "finite">;

/** Side of a tile of a pattern, in CSS pixels. */
export const TILE = 8;

/** The fill of cells of that kind. */
export function patternOf(context: CanvasRenderingContext2D, cell: Special, palette: Palette): CanvasPattern | string {
  const tile = document.createElement("canvas");
  tile.width = TILE;
  tile.height = TILE;
  const on = tile.getContext("2d");
  if (on !== null) {
    paintTile(on, cell, palette);
  }
  return context.createPattern(tile, "repeat") ?? palette.none;
}

function paintTile(on: CanvasRenderingContext2D, cell: Special, palette: Palette): void {
  const grounds: Record<Special, string> = {
    nan: palette.nan,
    inf: palette.inf,
    zero: palette.page,
    none: palette.badSoft,
    unrecorded: palette.canvas,
  };
  on.fillStyle = grounds[cell];
  on.fillRect(0, 0, TILE, TILE);
  const marks: Record<Special, () => void> = {
    nan: () => strokes(on, palette.page, [[-2, 6, 6, -2], [2, 10, 10, 2]]),
    inf: () => strokes(on, palette.page, [[2, 0, 2, TILE], [6, 0, 6, TILE]]),
    zero: () => dots(on, palette.zero),
    none: () => strokes(on, palette.bad, [[0, 2, 5, 2], [0, 6, 5, 6]]),
    unrecorded: () => {},
  };
  marks[cell]();
}

function strokes(on: CanvasRenderingContext2D, colour: string, lines: readonly (readonly number[])[]): void {
  on.strokeStyle = colour;
  on.lineWidth = 1.4;
  on.beginPath();
  for (const [x0, y0, x1, y1] of lines) {
    on.moveTo(x0, y0);
    on.lineTo(x1, y1);
  }
  on.stroke();
}

function dots(on: CanvasRenderingContext2D, colour: string): void {
  on.fillStyle = colour;
  for (const [x, y] of [[2, 2], [6, 6]]) {
    on.beginPath();
    on.arc(x, y, 1.3, 0, 2 * Math.PI);
    on.fill();
  }
}
