/** The item under the pointer, in a line or two. */

import {html, type TemplateResult} from "lit";
import type {Condition} from "../draw/look.ts";
import type {PictureBox, PictureEdge} from "../draw/picture.ts";
import type {Size} from "../layout/sizes.ts";
import {describeBundle} from "../model/bundle.ts";
import {detailsOf} from "../model/details.ts";
import {fileName} from "../model/format.ts";
import {tellMeasured} from "../model/measure.ts";
import {gradientOf} from "../model/stops.ts";
import {stateOf} from "./mirror.ts";

/** Text at a point of the view. */
export interface Tip {
  readonly x: number;
  readonly y: number;
  readonly lines: readonly string[];
}

/** Next to its point, and inside the view. */
export function tooltip({x, y, lines}: Tip, view: Size): TemplateResult {
  const left = Math.min(x + 14, Math.max(0, view.width - 360));
  const top = Math.min(y + 16, Math.max(0, view.height - 90));
  return html`<div class="tip" style="left:${left}px;top:${top}px">${lines.map((line) => html`<div>${line}</div>`)}</div>`;
}

/** The text for a box or an edge at a point; null if there is nothing. */
export function tooltipOf(condition: Condition, box: PictureBox | null, edge: PictureEdge | null, x: number, y: number): Tip | null {
  const lines = edge !== null ? linesOfEdge(condition, edge) : box !== null ? linesOfBox(condition, box) : [];
  return lines.length === 0 ? null : {x, y, lines};
}

function linesOfEdge({tree, measured: {measure}}: Condition, {routed, bundle}: PictureEdge): readonly string[] {
  const {segment} = routed;
  const inner = tree.graph.edges[segment.edges[0]];
  const name = (end: number, node: number): string => tree.items[end < 0 ? node : end].label;
  return [`${name(segment.from, inner.from)} → ${name(segment.to, inner.to)}`, describeBundle(bundle, tellMeasured(measure, bundle.value))];
}

function linesOfBox(condition: Condition, box: PictureBox): readonly string[] {
  const lines = [condition.tree.items[box.item].name || box.title, box.subtitle, stateOf(box).join(", "), ...linesOfNode(condition, box)];
  return lines.filter((line) => line !== "");
}

/** Shape, gradient and line of code of an op or a variable. */
function linesOfNode({tree, answers, numbers}: Condition, {item, kind}: PictureBox): readonly string[] {
  if (kind !== "op" && kind !== "variable") {
    return [];
  }
  const {facts, tensors, source} = detailsOf(tree, item, answers);
  const shape = facts.find(([name]) => name === "Output" || name === "Value")?.[1] ?? "";
  const gradient = kind === "op" && tensors.length > 0 ? gradientOf(tensors[0], numbers).words : "";
  const line = source === null ? "" : `${fileName(source.file)}:${source.line}${source.code === "" ? "" : `  ${source.code}`}`;
  return [shape, gradient, line];
}
