/** Paints the badges at the corners of boxes: problems on the right, changes on the left. */

import {formatCount} from "../model/format.ts";
import type {Brush} from "./brush.ts";
import type {Palette} from "./palette.ts";
import type {PictureBox} from "./picture.ts";

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';

export function paintBadges(context: Brush, box: PictureBox, palette: Palette, zoom: number): void {
  const size = Math.max(9, 8 / zoom);
  if (box.kind === "op" && box.mark === "aside") {
    paintFaintBadge(context, box.x + box.width - 2, box.y + 1, "⊘", size * 0.8, palette);
  } else if (box.kind === "op" && box.mark !== null) {
    const colour = box.mark === "blocking" ? palette.bad : palette.warn;
    paintBadge(context, box.x + box.width - 2, box.y + 1, box.mark === "blocking" ? "⊘" : "!", colour, size, palette);
  }
  if (box.kind === "group" && box.named > 0) {
    paintBadge(context, box.x + box.width - 2, box.y + 2, box.named > 1 ? `⊘ ${formatCount(box.named)}` : "⊘", palette.bad, size, palette);
  } else if (box.kind === "group" && box.without > 0) {
    paintFaintBadge(context, box.x + box.width - 2, box.y + 2, formatCount(box.without), size, palette);
  } else if (box.kind === "group" && box.warnings > 0) {
    paintBadge(context, box.x + box.width - 2, box.y + 2, formatCount(box.warnings), palette.warn, size, palette);
  }
  if (box.kind === "group" && box.notFinite > 0) {
    const [sign, colour] = box.nan > 0 ? ["NaN", palette.nan] : ["∞", palette.inf];
    paintBadge(context, box.x + box.width - 6, box.y + box.height, sign, colour, size * 0.9, palette);
  }
}

const CHANGES = {better: "↑", worse: "↓", new: "+", changed: "≠"} as const;

/** On the left, where no problem is shown. */
export function paintChange(context: Brush, box: PictureBox, palette: Palette, zoom: number): void {
  const colours = {better: palette.good, worse: palette.bad, new: palette.accent, changed: palette.accent};
  const size = Math.max(8, 7 / zoom);
  if (box.change !== null) {
    paintBadge(context, box.x + 2, box.y + 1, CHANGES[box.change], colours[box.change], size, palette);
  } else if (box.changesInside > 0) {
    paintBadge(context, box.x + 2, box.y + 1, `≠ ${formatCount(box.changesInside)}`, palette.accent, size, palette);
  }
}

/** For what hangs on a problem, and is none itself. */
function paintFaintBadge(context: Brush, x: number, y: number, text: string, size: number, palette: Palette): void {
  paintPill(context, x, y, text, {fill: palette.canvas, line: palette.bad, text: palette.bad}, size);
}

function paintBadge(context: Brush, x: number, y: number, text: string, colour: string, size: number, palette: Palette): void {
  paintPill(context, x, y, text, {fill: colour, line: palette.canvas, text: palette.onBad}, size);
}

interface Colours {
  readonly fill: string;
  readonly line: string;
  readonly text: string;
}

function paintPill(context: Brush, x: number, y: number, text: string, colours: Colours, size: number): void {
  context.font = `700 ${size * 1.25}px ${FONT}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  const half = Math.max(size, context.measureText(text).width / 2 + size * 0.5);
  context.fillStyle = colours.fill;
  context.strokeStyle = colours.line;
  context.lineWidth = size / 5;
  context.beginPath();
  context.roundRect(x - half, y - size, 2 * half, 2 * size, size);
  context.fill();
  context.stroke();
  context.fillStyle = colours.text;
  context.fillText(text, x, y + size * 0.08);
}
