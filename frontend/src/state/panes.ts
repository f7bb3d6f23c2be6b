/** The panes around the graph, in pixels: their default sizes, and how much space there is for them. */

export type Pane = "side" | "details" | "drawer";

/** The sizes that a reader has chosen; null for the default. */
export type Chosen = Readonly<Record<Pane, number | null>>;

export interface Frame {
  readonly width: number;
  readonly height: number;
}

export interface Limits {
  readonly least: number;
  readonly most: number;
}

/** In a narrower frame the findings cover the graph, temporarily. */
export const ROOM_FOR_FINDINGS = 900;
/** In a narrower frame the details cover the graph. */
export const ROOM_FOR_DETAILS = 700;

/** The space that the graph keeps. */
const GRAPH = 220;
/** The visible part of the graph next to a pane that covers it. */
const EDGE = 40;
/** Around graph and drawer: the header, the slider and the summary. */
const ABOVE = 130;

/** The table of variables: its height above the rows, and that of one row. */
const ABOVE_ROWS = 104;
const ROW = 27;

const LEAST: Readonly<Record<Pane, number>> = {side: 220, details: 220, drawer: 130};

/**
 * `rows`: of the table in the drawer, which takes no more space than it needs; null if the drawer shows something else.
 */
export function usualSize(pane: Pane, {width, height}: Frame, rows: number | null = null): number {
  const table = rows === null ? Infinity : ABOVE_ROWS + ROW * rows;
  const usual: Readonly<Record<Pane, number>> = {
    // Lines of code need the width.
    side: Math.max(330, Math.min(440, 0.28 * width)),
    details: 310,
    drawer: Math.max(LEAST.drawer, Math.min(380, 0.38 * (height - ABOVE), table)),
  };
  return Math.round(usual[pane]);
}

/** `side`: the width of the findings if they are next to the graph, otherwise 0. */
export function limitsOf(pane: Pane, {width, height}: Frame, side: number): Limits {
  const most: Readonly<Record<Pane, number>> = {
    side: width - (width < ROOM_FOR_FINDINGS ? EDGE : GRAPH),
    details: width - side - (width < ROOM_FOR_DETAILS ? EDGE : GRAPH),
    drawer: height - ABOVE - GRAPH / 2,
  };
  return {least: LEAST[pane], most: Math.max(LEAST[pane], most[pane])};
}

export function sizeOf(pane: Pane, chosen: Chosen, frame: Frame, side: number, rows: number | null = null): number {
  const {least, most} = limitsOf(pane, frame, side);
  return Math.max(least, Math.min(most, chosen[pane] ?? usualSize(pane, frame, rows)));
}

/** As it was stored; null if it is not a valid size. */
export function sizeFrom(text: string | null): number | null {
  const size = Number(text ?? NaN);
  return text !== null && text !== "" && Number.isFinite(size) && size > 0 ? size : null;
}
