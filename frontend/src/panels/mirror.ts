/** The graph in words, hidden from the eye: for screen readers, and for whoever wants to know what is drawn. */

import {html, type TemplateResult} from "lit";
import type {Focus, Picture, PictureBox, PictureEdge} from "../draw/picture.ts";
import {describeBundle} from "../model/bundle.ts";
import {formatNumber, plural} from "../model/format.ts";
import type {Tree} from "../model/tree.ts";
import {STATUS} from "../model/words.ts";

/** A longer list helps nobody; what is in trouble or lit comes first. */
const LONGEST = 1000;

/** What is to be said of a box beside its name. */
export function stateOf(box: PictureBox): string[] {
  const state: string[] = [];
  if (box.mark !== null) {
    state.push(box.mark === "blocking" ? "blocking op" : "op with a warning");
  }
  if (box.status !== null) {
    state.push(STATUS[box.status].word);
  }
  if (box.magnitude !== null && box.magnitude.kind === "finite") {
    state.push(`gradient norm ${formatNumber(box.magnitude.norm)}`);
  }
  if (box.kind === "group" && box.badge > 0) {
    state.push(`${plural(box.badge, "problem")} inside`);
  }
  if (box.kind === "group" && box.warnings > 0) {
    state.push(`${plural(box.warnings, "warning")} inside`);
  }
  return state;
}

export function mirrorOf(tree: Tree, picture: Picture, focus: Focus, select: (item: number) => void): TemplateResult {
  const lit = (box: PictureBox): boolean => focus.litItems?.has(box.item) ?? false;
  const urgent = (box: PictureBox): boolean => lit(box) || box.missing || box.mark !== null || box.badge > 0;
  const boxes = [...picture.boxes.filter(urgent), ...picture.boxes.filter((box) => !urgent(box))].slice(0, LONGEST);
  const edges = picture.edges.filter((edge) => edge.bundle.broken > 0).slice(0, LONGEST);
  return html`<div class="hidden" data-mirror>
    <ul aria-label="Visible parts of the graph">
      ${boxes.map((box) => mirrorItem(tree, box, lit(box), focus, select))}
    </ul>
    <ul aria-label="Disconnected edges">
      ${edges.map((edge) => mirrorEdge(tree, edge, focus))}
    </ul>
  </div>`;
}

function mirrorItem(tree: Tree, box: PictureBox, lit: boolean, focus: Focus, select: (item: number) => void): TemplateResult {
  const name = tree.items[box.item].name || box.title;
  const kind = box.kind === "open" ? "open group" : box.kind === "group" ? "closed group" : box.kind;
  const state = [...stateOf(box), ...(lit ? ["on the lit path"] : []), ...(box.item === focus.selected ? ["selected"] : [])];
  return html`<li data-name=${name} data-kind=${kind} data-state=${state.join(", ")}>
    <button tabindex="-1" @click=${() => select(box.item)}>${kind} ${name}${state.length > 0 ? `: ${state.join(", ")}` : ""}</button>
  </li>`;
}

function mirrorEdge(tree: Tree, edge: PictureEdge, focus: Focus): TemplateResult {
  const {segment} = edge.routed;
  const inner = tree.graph.edges[segment.edges[0]];
  const from = tree.items[segment.from < 0 ? inner.from : segment.from].name;
  const to = tree.items[segment.to < 0 ? inner.to : segment.to].name;
  const lit = segment.edges.some((id) => focus.litEdges?.has(id)) ? ", on the lit path" : "";
  const cut = edge.bundle.cut ? ", the gradient ends here" : "";
  const state = `${describeBundle(edge.bundle, formatNumber(edge.bundle.norm))}${cut}${lit}`;
  return html`<li data-from=${from} data-to=${to} data-state=${state}>${from} to ${to}: ${state}</li>`;
}
