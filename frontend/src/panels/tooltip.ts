/** What the thing under the pointer is, in a line or two. */

import type {Condition} from "../draw/look.ts";
import type {PictureBox, PictureEdge} from "../draw/picture.ts";
import {describeBundle} from "../model/bundle.ts";
import {formatNumber} from "../model/format.ts";
import {stateOf} from "./mirror.ts";

export function tooltipOf({tree}: Condition, box: PictureBox | null, edge: PictureEdge | null): readonly string[] {
  if (edge !== null) {
    const {segment} = edge.routed;
    const inner = tree.graph.edges[segment.edges[0]];
    const name = (end: number, node: number): string => tree.items[end < 0 ? node : end].label;
    return [
      `${name(segment.from, inner.from)} → ${name(segment.to, inner.to)}`,
      describeBundle(edge.bundle, formatNumber(edge.bundle.norm)),
    ];
  }
  if (box === null || box.kind === "open") {
    return [];
  }
  const lines = [tree.items[box.item].name || box.title, box.subtitle, stateOf(box).join(", ")];
  return lines.filter((line) => line !== "");
}
