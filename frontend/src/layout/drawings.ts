/** Drawings of what was drawn before: copies of a block have one, and are alike to the eye. */

import {layered, type Box, type Layered} from "./layered.ts";
import type {Attached} from "./place.ts";

/** More than this is not kept. */
const MOST = 5000;

export class Drawings {
  readonly #known = new Map<string, Layered>();

  of(boxes: readonly Box[], links: readonly Attached[]): Layered {
    const key = keyOf(boxes, links);
    let drawing = this.#known.get(key);
    if (drawing === undefined) {
      drawing = layered(boxes, links);
      if (this.#known.size < MOST) {
        this.#known.set(key, drawing);
      }
    }
    return drawing;
  }
}

/** Everything that a drawing depends on. */
function keyOf(boxes: readonly Box[], links: readonly Attached[]): string {
  let key = "";
  for (const {width, height, pin} of boxes) {
    key += `${width},${height},${pin ?? ""};`;
  }
  for (const {from, to, fromOffset, toOffset} of links) {
    key += `|${from},${to},${fromOffset},${toOffset}`;
  }
  return key;
}
