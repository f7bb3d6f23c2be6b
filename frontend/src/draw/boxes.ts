/** Paints ops, variables, losses and groups. */

import {formatNumber} from "../model/format.ts";
import {position} from "../model/scale.ts";
import {percent} from "../model/terms.ts";
import type {Brush} from "./brush.ts";
import {bucketed} from "./buckets.ts";
import {magnitudeColour} from "./colour.ts";
import {paintBadges, paintChange} from "./badges.ts";
import {lineColours, type Palette} from "./palette.ts";
import type {Focus, Picture, PictureBox} from "./picture.ts";

/** Below this zoom text of the usual size cannot be read, and boxes show no numbers. */
export const LEGIBLE = 0.38;
/** Boxes at least this high, in screen pixels, show small text instead. */
const SMALL = 8;
/** Fewer letters of a longer name say nothing. */
const LEAST = 6;
/** Boxes lower than this, in screen pixels, have no corners, and an outline only if it means something. */
const TINY = 4;
/** A corner smaller than this, in screen pixels, does not look round, and a plain rectangle is painted faster. */
const ROUND = 0.75;
const DIMMED = 0.22;
const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';

/** The position of a group's open/close sign, from its left and top, in world units. */
export const TOGGLE = {x: 17, y: 17, radius: 8};

/** The layer behind the edges: the areas of open groups. */
export function paintAreas(context: Brush, boxes: readonly PictureBox[], palette: Palette, zoom: number): void {
  context.fillStyle = palette.inside;
  context.strokeStyle = palette.groupLine;
  context.lineWidth = 1 / zoom;
  for (const box of boxes) {
    if (box.kind === "open") {
      outline(context, box, 10, zoom);
      context.fill();
      context.globalAlpha = 0.55;
      context.stroke();
      context.globalAlpha = 1;
    }
  }
}

export function paintBoxes(
  context: Brush,
  picture: Picture,
  boxes: readonly PictureBox[],
  focus: Focus,
  palette: Palette,
  zoom: number,
): void {
  const alphaOf = (box: PictureBox): number => (focus.litItems !== null && !focus.litItems.has(box.item) ? DIMMED : 1);
  paintTiny(context, boxes.filter((box) => isTiny(box, zoom)), alphaOf, palette, zoom);
  for (const box of boxes) {
    context.globalAlpha = alphaOf(box);
    paintBody(context, box, palette, zoom);
    if (zoom >= LEGIBLE) {
      paintText(context, box, picture, palette);
    } else if (box.kind !== "open" && box.height * zoom >= SMALL) {
      paintSmallText(context, box, palette, zoom);
    }
    paintBadges(context, box, palette, zoom);
    paintChange(context, box, palette, zoom);
    if (box.item === focus.selected || box.item === focus.hovered) {
      paintRing(context, box, palette, zoom, box.item === focus.selected);
    }
  }
  context.globalAlpha = 1;
}

function outline(context: Brush, box: PictureBox, radius: number, zoom: number, grow = 0): void {
  const round = radius + grow;
  context.beginPath();
  context.roundRect(box.x - grow, box.y - grow, box.width + 2 * grow, box.height + 2 * grow, round * zoom < ROUND ? 0 : round);
}

function radiusOf(box: PictureBox): number {
  const round = box.kind === "variable" || box.kind === "loss";
  return round ? box.height / 2 : box.kind === "op" ? 5 : 10;
}

function paintBody(context: Brush, box: PictureBox, palette: Palette, zoom: number): void {
  if (box.kind === "open" || isTiny(box, zoom)) {
    return;
  }
  const [fill, line] = coloursOf(box, palette);
  if (box.kind === "group") {
    // A second sheet behind it shows that there is more inside.
    context.fillStyle = fill;
    context.strokeStyle = line;
    context.lineWidth = 1;
    context.beginPath();
    context.roundRect(box.x + 4, box.y + 4, box.width, box.height, 10);
    context.fill();
    context.stroke();
  }
  context.fillStyle = fill;
  context.strokeStyle = line;
  const isNamed = box.mark === "blocking" || box.mark === "warning";
  context.lineWidth = isNamed ? Math.max(2, 1.6 / zoom) : Math.max(1, 0.8 / zoom);
  outline(context, box, radiusOf(box), zoom);
  context.fill();
  if (box.missing) {
    context.setLineDash([6 / zoom ** 0.5, 3 / zoom ** 0.5]);
    context.stroke();
    context.setLineDash([]);
  } else {
    context.stroke();
  }
  if (box.kin >= 0) {
    paintKin(context, box, palette);
  }
}

/** Whether little of a box is visible, and need not be. */
function isTiny(box: PictureBox, zoom: number): boolean {
  return box.height * zoom < TINY && box.kind !== "open" && !box.missing && box.mark !== "blocking" && box.mark !== "warning";
}

/**
 * Their outlines, then the backgrounds of those that have room for one; boxes that look the same are painted together.
 */
function paintTiny(
  context: Brush,
  boxes: readonly PictureBox[],
  alphaOf: (box: PictureBox) => number,
  palette: Palette,
  zoom: number,
): void {
  const border = 0.8 / zoom;
  const roomy = boxes.filter((box) => box.height > 2 * border && box.width > 2 * border);
  for (const [at, some, inset] of [[1, boxes, 0], [0, roomy, border]] as const) {
    for (const [colour, alike] of bucketed(some, (box) => coloursOf(box, palette)[at])) {
      context.fillStyle = colour;
      for (const box of alike) {
        context.globalAlpha = alphaOf(box);
        context.fillRect(box.x + inset, box.y + inset, box.width - 2 * inset, box.height - 2 * inset);
      }
    }
  }
}

/** Groups with the same content have the same stripe. */
function paintKin(context: Brush, box: PictureBox, palette: Palette): void {
  const colours = lineColours(palette);
  context.fillStyle = colours[box.kin % colours.length];
  context.beginPath();
  context.roundRect(box.x, box.y + 8, 4, box.height - 16, 2);
  context.fill();
}

function coloursOf(box: PictureBox, palette: Palette): [string, string] {
  if (box.mark === "blocking") {
    return [palette.badSoft, palette.bad];
  }
  if (box.mark === "warning") {
    return [palette.warnSoft, palette.warn];
  }
  switch (box.kind) {
    case "op":
      return [palette.node, palette.nodeLine];
    case "variable":
      return box.missing ? [palette.node, palette.bad] : [palette.variable, palette.variableLine];
    case "loss":
      return [palette.loss, palette.loss];
    case "group":
      return [palette.group, box.named > 0 ? palette.bad : palette.groupLine];
    case "open":
      return [palette.inside, palette.groupLine];
  }
}

function paintText(context: Brush, box: PictureBox, picture: Picture, palette: Palette): void {
  context.textBaseline = "middle";
  context.textAlign = "left";
  if (box.kind === "group" || box.kind === "open") {
    paintGroupText(context, box, picture, palette);
    return;
  }
  const middle = box.y + box.height / 2 + 0.5;
  if (box.kind === "variable") {
    paintSwatch(context, box, picture, palette);
    write(context, box.title, box.x + 27, middle, box.width - 40, palette.text, `12px ${FONT}`);
    return;
  }
  const colour = box.kind === "loss" ? palette.lossText : palette.text;
  const font = box.kind === "loss" ? `600 13px ${FONT}` : `12px ${FONT}`;
  context.textAlign = "center";
  write(context, box.kind === "loss" ? `◎  ${box.title}` : box.title, box.x + box.width / 2, middle, box.width - 16, colour, font);
}

/** The title in text of constant size on the screen, as far as it fits. */
function paintSmallText(context: Brush, box: PictureBox, palette: Palette, zoom: number): void {
  context.font = `${box.kind === "group" ? "600 " : ""}${SMALL / zoom}px ${FONT}`;
  const text = shortened(context, box.title, box.width - 4 / zoom);
  if (text === box.title || text.length >= LEAST) {
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillStyle = box.kind === "loss" ? palette.lossText : palette.text;
    context.fillText(text, box.x + box.width / 2, box.y + box.height / 2);
  } else if (box.mark === "blocking" || box.mark === "warning") {
    // What a finding names has its name next to it: its sign is on the other side.
    context.textAlign = "right";
    context.textBaseline = "middle";
    context.fillStyle = box.mark === "blocking" ? palette.bad : palette.warn;
    context.fillText(box.title, box.x - 4 / zoom, box.y + box.height / 2);
  }
}

function paintGroupText(context: Brush, box: PictureBox, picture: Picture, palette: Palette): void {
  const left = box.x + TOGGLE.x + 14;
  const room = box.width - TOGGLE.x - 24;
  const font = `600 12px ${FONT}`;
  if (box.kind === "open") {
    // Links run through the header, so the text has its own background.
    context.font = font;
    const width = context.measureText(shortened(context, box.title, room)).width;
    context.fillStyle = palette.canvas;
    context.beginPath();
    context.roundRect(box.x + 7, box.y + 7, width + 34, 20, 6);
    context.fill();
  }
  paintToggle(context, box, palette);
  write(context, box.title, left, box.y + 17, room, palette.text, font);
  if (box.part !== null && box.kind === "group") {
    paintPart(context, box, picture, palette);
  } else if (box.kind === "group") {
    context.font = `11px ${FONT}`;
    write(context, subtitleIn(context, box, room), left, box.y + 33, room, palette.muted, context.font);
  }
}

/** The share of the chosen term in the gradient of the group: as text, and as a bar in the colour of the norm. */
function paintPart(context: Brush, box: PictureBox, picture: Picture, palette: Palette): void {
  const {norm, share} = box.part as NonNullable<PictureBox["part"]>;
  const left = box.x + TOGGLE.x + 14;
  const room = box.width - TOGGLE.x - 24;
  const told = norm === 0 ? "no gradient" : `${formatNumber(norm)} · ${Number.isNaN(share) ? "–" : percent(share)}`;
  write(context, told, left, box.y + 31, room, palette.text, `11px ${FONT}`);
  const [y, height] = [box.y + box.height - 5, 3];
  context.fillStyle = palette.line;
  context.fillRect(left, y, room, height);
  if (norm > 0 && share > 0) {
    context.fillStyle = magnitudeColour(position(picture.scale, norm), palette.dark);
    context.fillRect(left, y, Math.max(1.5, share * room), height);
  }
}

/** If not all of it fits, the number of copies says more than the class of the layer. */
function subtitleIn(context: Brush, {subtitle, copies}: PictureBox, room: number): string {
  const inside = subtitle.split(" · ").at(-1);
  const all = [`${subtitle} · ×${copies}`, `${inside} · ×${copies}`, `${inside} ×${copies}`];
  return copies <= 1 ? subtitle : (all.find((text) => context.measureText(text).width <= room) ?? `×${copies}`);
}

function write(
  context: Brush,
  text: string,
  x: number,
  y: number,
  room: number,
  colour: string,
  font: string,
): void {
  context.font = font;
  context.fillStyle = colour;
  context.fillText(shortened(context, text, room), x, y);
}

/** The text, or its beginning and its end with an ellipsis between, so that it fits. */
function shortened(context: Brush, text: string, room: number): string {
  if (context.measureText(text).width <= room) {
    return text;
  }
  const share = room / context.measureText(text).width;
  const kept = Math.max(1, Math.floor(text.length * share) - 1);
  return kept < 2 ? "" : `${text.slice(0, Math.ceil(kept * 0.6))}…${text.slice(text.length - Math.floor(kept * 0.4))}`;
}

function paintToggle(context: Brush, box: PictureBox, palette: Palette): void {
  const x = box.x + TOGGLE.x;
  const y = box.y + TOGGLE.y;
  context.strokeStyle = palette.muted;
  context.lineWidth = 1.4;
  context.beginPath();
  context.roundRect(x - 6.5, y - 6.5, 13, 13, 3);
  context.moveTo(x - 3.5, y);
  context.lineTo(x + 3.5, y);
  if (box.kind === "group") {
    context.moveTo(x, y - 3.5);
    context.lineTo(x, y + 3.5);
  }
  context.stroke();
}

/** The variable's own gradient: a disc of its colour; empty if there is none, with a ring if it is zero. */
function paintSwatch(context: Brush, box: PictureBox, picture: Picture, palette: Palette): void {
  const [x, y] = [box.x + 15, box.y + box.height / 2];
  const kind = box.missing ? "missing" : (box.magnitude?.kind ?? "unmeasured");
  context.lineWidth = 1.6;
  context.beginPath();
  context.arc(x, y, 5, 0, 2 * Math.PI);
  if (kind === "finite" && box.value > 0) {
    context.fillStyle = magnitudeColour(position(picture.scale, box.value), palette.dark);
    context.fill();
    return;
  }
  const signs: Record<string, [string, string]> = {
    missing: ["✕", palette.bad],
    zero: ["0", palette.zero],
    nan: ["?", palette.nan],
    inf: ["∞", palette.inf],
  };
  const [sign, colour] = signs[kind] ?? ["", palette.none];
  if (sign === "") {
    context.strokeStyle = colour;
    context.stroke();
    return;
  }
  context.textAlign = "center";
  write(context, sign, x, y + 0.5, 20, colour, `700 12px ${FONT}`);
  context.textAlign = "left";
}

function paintRing(context: Brush, box: PictureBox, palette: Palette, zoom: number, strong: boolean): void {
  context.strokeStyle = palette.accent;
  context.lineWidth = (strong ? 2.5 : 1.2) / zoom;
  outline(context, box, radiusOf(box), zoom, (strong ? 4 : 2.5) / Math.max(zoom, 0.5));
  context.stroke();
}
