/** The graph as text, visually hidden: for screen readers, and for tests of what is drawn. */

import {html, LitElement, nothing, type TemplateResult} from "lit";
import type {Picture, PictureBox, PictureEdge} from "../draw/picture.ts";
import {describeBundle} from "../model/bundle.ts";
import {formatNumber, plural} from "../model/format.ts";
import {tellMeasured, type Measure} from "../model/measure.ts";
import type {Tree} from "../model/tree.ts";
import {STATUS} from "../model/words.ts";
import {shared} from "./styles.ts";

/** A longer list does not help; problems and lit items come first. */
const LONGEST = 600;

const CHANGED = {
  better: "better than in the other run",
  worse: "worse than in the other run",
  new: "not in the other run",
  changed: "different from the other run",
};

const MARKED = {
  blocking: "blocking op",
  warning: "op with a warning",
  aside: "a side path ends here",
};

/** The state of a box, in words. */
export function stateOf(box: PictureBox): string[] {
  const state: string[] = [];
  if (box.mark !== null) {
    state.push(MARKED[box.mark]);
  }
  if (box.status !== null) {
    state.push(STATUS[box.status].word);
  }
  if (box.magnitude !== null && box.magnitude.kind === "finite") {
    state.push(`gradient norm ${formatNumber(box.magnitude.norm)}`);
  }
  if (box.copies > 1) {
    state.push(`one of ${box.copies} identical ones`);
  }
  if (box.kind === "group" && box.named > 0) {
    state.push(`${plural(box.named, "blocking op")} inside`);
  }
  if (box.kind === "group" && box.without > 0) {
    state.push(`${plural(box.without, "variable")} without a gradient inside`);
  }
  if (box.kind === "group" && box.notFinite > 0) {
    state.push(`${plural(box.notFinite, "gradient")} not finite inside`);
  }
  if (box.kind === "group" && box.warnings > 0) {
    state.push(`${plural(box.warnings, "warning")} inside`);
  }
  if (box.change !== null) {
    state.push(CHANGED[box.change]);
  } else if (box.changesInside > 0) {
    state.push(`${plural(box.changesInside, "change")} inside`);
  }
  return state;
}

export class Mirror extends LitElement {
  static override properties = {
    tree: {attribute: false},
    picture: {attribute: false},
    litItems: {attribute: false},
    litEdges: {attribute: false},
    selected: {attribute: false},
  };
  declare tree: Tree | null;
  declare picture: Picture | null;
  declare litItems: ReadonlySet<number> | null;
  declare litEdges: ReadonlySet<number> | null;
  declare selected: number;

  static override styles = shared;

  constructor() {
    super();
    this.tree = null;
    this.picture = null;
    this.litItems = null;
    this.litEdges = null;
    this.selected = -1;
  }

  /** After the frame with its picture: the visual update need not wait for it. */
  protected override async scheduleUpdate(): Promise<void> {
    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
    super.scheduleUpdate();
  }

  override render(): TemplateResult | typeof nothing {
    const {tree, picture} = this;
    if (tree === null || picture === null) {
      return nothing;
    }
    const boxes = picture.foremost(LONGEST, this.litItems);
    const edges = picture.broken.slice(0, LONGEST);
    return html`<div class="hidden" data-mirror>
      <ul aria-label="Visible parts of the graph">
        ${boxes.map((box) => this.#item(tree, box))}
      </ul>
      <ul aria-label="Disconnected edges">
        ${edges.map((edge) => this.#edge(tree, edge, picture.measure))}
      </ul>
    </div>`;
  }

  #isLit(box: PictureBox): boolean {
    return this.litItems?.has(box.item) ?? false;
  }

  #item(tree: Tree, box: PictureBox): TemplateResult {
    const name = tree.items[box.item].name || box.title;
    const group = box.kind === "open" || box.kind === "group";
    const kind = box.kind === "open" ? "open group" : box.kind === "group" ? "closed group" : box.kind;
    const lit = this.#isLit(box) ? ["on the highlighted path"] : [];
    const state = [...stateOf(box), ...lit, ...(box.item === this.selected ? ["selected"] : [])].join(", ");
    return html`<li data-name=${name} data-kind=${kind} data-state=${state}>
      <button tabindex="-1" @click=${() => this.#tell("gf-select", box.item)}>${kind} ${name}${state === "" ? "" : `: ${state}`}</button>
      ${group
        ? html`<button tabindex="-1" @click=${() => this.#tell("gf-toggle", box.item)}>${box.kind === "open" ? "Close" : "Open"} ${name}</button>`
        : nothing}
    </li>`;
  }

  #edge(tree: Tree, edge: PictureEdge, measure: Measure): TemplateResult {
    const {segment} = edge.routed;
    const inner = tree.graph.edges[segment.edges[0]];
    const from = tree.items[segment.from < 0 ? inner.from : segment.from].name;
    const to = tree.items[segment.to < 0 ? inner.to : segment.to].name;
    const lit = segment.edges.some((id) => this.litEdges?.has(id)) ? ", on the highlighted path" : "";
    const cut = edge.bundle.cut ? ", the gradient ends here" : "";
    const state = `${describeBundle(edge.bundle, tellMeasured(measure, edge.bundle.value))}${cut}${lit}`;
    return html`<li data-from=${from} data-to=${to} data-state=${state}>${from} to ${to}: ${state}</li>`;
  }

  #tell(name: string, item: number): void {
    this.dispatchEvent(new CustomEvent<number>(name, {detail: item}));
  }
}

customElements.define("gf-mirror", Mirror);
