/** How much room there is: for the findings, and beside them. */

import {ROOM_FOR_FINDINGS, type Frame, type Pane} from "../state/panes.ts";

export function frame(): Frame {
  return {width: window.innerWidth, height: window.innerHeight};
}

/** Whether the findings fit beside the graph. */
export function hasRoom(): boolean {
  return window.innerWidth >= ROOM_FOR_FINDINGS;
}

/** The width of the findings where they stand beside the graph, else 0. */
export function besideGraph({side, sizes}: {readonly side: boolean; readonly sizes: Readonly<Pick<Record<Pane, number>, "side">>}): number {
  return side && hasRoom() ? sizes.side : 0;
}
