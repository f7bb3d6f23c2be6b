/** The panes around the graph, in pixels: what they take where nobody has said, and how much of that there is room for. */

export type Pane = "side" | "details" | "drawer";

/** What a reader has drawn them to; null where nobody has. */
export type Chosen = Readonly<Record<Pane, number | null>>;

export interface Frame {
  readonly width: number;
  readonly height: number;
}

export interface Limits {
  readonly least: number;
  readonly most: number;
}

/** In a narrower frame the findings lie over the graph, and for a moment. */
export const ROOM_FOR_FINDINGS = 900;
/** In a narrower one the details cover what they cover. */
export const ROOM_FOR_DETAILS = 700;

/** What the graph keeps. */
const GRAPH = 220;
/** What is seen of the graph beside a pane that lies over it. */
const EDGE = 40;
/** Around graph and drawer: the header, the slider and the summary. */
const ABOVE = 130;

/** The table of variables: what stands above its rows, and one of them. */
const ABOVE_ROWS = 104;
const ROW = 27;

const LEAST: Readonly<Record<Pane, number>> = {side: 220, details: 220, drawer: 130};

/** `rows`: of the table in the drawer, which takes no more than it needs; null where something else is in it. */
export function usualSize(pane: Pane, {width, height}: Frame, rows: number | null = null): number {
  const table = rows === null ? Infinity : ABOVE_ROWS + ROW * rows;
  const usual: Readonly<Record<Pane, number>> = {
    // Lines of code are what needs the width.
    side: Math.max(330, Math.min(440, 0.28 * width)),
    details: 310,
    drawer: Math.max(LEAST.drawer, Math.min(380, 0.38 * (height - ABOVE), table)),
  };
  return Math.round(usual[pane]);
}

/** `side`: the width of the findings where they stand beside the graph, else 0. */
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

/** As it was kept; null for what is no size. */
export function sizeFrom(text: string | null): number | null {
  const size = Number(text ?? NaN);
  return text !== null && text !== "" && Number.isFinite(size) && size > 0 ? size : null;
}
