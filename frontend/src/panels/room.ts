/** The space for the findings, and next to them. */

import {ROOM_FOR_FINDINGS, type Frame, type Pane} from "../state/panes.ts";

export function frame(): Frame {
  return {width: window.innerWidth, height: window.innerHeight};
}

/** Whether the findings fit next to the graph. */
export function hasRoom(): boolean {
  return window.innerWidth >= ROOM_FOR_FINDINGS;
}

/** The width of the findings if they are next to the graph, otherwise 0. */
export function besideGraph({side, sizes}: {readonly side: boolean; readonly sizes: Readonly<Pick<Record<Pane, number>, "side">>}): number {
  return side && hasRoom() ? sizes.side : 0;
}
