/** Sizes of things before anything is drawn. Widths of text are estimated: drawing shortens what does not fit. */

const CHARACTER = 7.3;
const LONGEST = 30;

export const OP_HEIGHT = 30;
export const GROUP_HEIGHT = 46;
export const HEADER = 36;
export const PADDING = 20;

export interface Size {
  readonly width: number;
  readonly height: number;
}

export interface Rectangle extends Size {
  readonly x: number;
  readonly y: number;
}

export function touches(a: Rectangle, b: Rectangle): boolean {
  return a.x <= b.x + b.width && a.x + a.width >= b.x && a.y <= b.y + b.height && a.y + a.height >= b.y;
}

function textWidth(characters: number): number {
  return Math.min(characters, LONGEST) * CHARACTER;
}

export function opSize(label: string): Size {
  return {width: Math.max(64, textWidth(label.length) + 30), height: OP_HEIGHT};
}

export function variableSize(label: string): Size {
  return {width: Math.max(72, textWidth(label.length) + 50), height: 28};
}

export function lossSize(label: string): Size {
  return {width: Math.max(110, textWidth(label.length) + 56), height: 38};
}

export function groupSize(label: string, subtitle: string): Size {
  return {width: Math.max(130, textWidth(Math.max(label.length, subtitle.length * 0.9)) + 64), height: GROUP_HEIGHT};
}
