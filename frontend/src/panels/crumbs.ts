/** The groups around the reader's view whose headers are above it: their names stay visible. */

import {css, html, LitElement, type TemplateResult} from "lit";
import type {Part, Scene} from "../layout/scene.ts";
import {titleOf} from "../model/titles.ts";
import type {Tree} from "../model/tree.ts";
import {shared} from "./styles.ts";
import type {Viewport} from "./viewport.ts";

/** The height of a group's header, in world units. */
const HEADER = 26;
/** More would be a list to read. */
const MOST = 4;

export class Crumbs extends LitElement {
  static override properties = {groups: {state: true}};
  declare groups: readonly {readonly item: number; readonly title: string}[];

  static override styles = [
    shared,
    css`
      :host {
        position: absolute;
        left: 190px;
        top: 12px;
        display: flex;
        justify-content: flex-end;
        gap: 4px;
        overflow: hidden;
        pointer-events: none;
      }
      :host([hidden]) {
        display: none;
      }
      button {
        flex: 0 1 auto;
        min-width: 44px;
        height: 30px;
        pointer-events: auto;
        overflow: hidden;
        text-overflow: ellipsis;
        white-space: nowrap;
        font-size: 12px;
        font-weight: 600;
      }
    `,
  ];

  constructor() {
    super();
    this.groups = [];
  }

  override render(): TemplateResult {
    return html`${this.groups.map(
      ({item, title}) => html`<button title="Inside ${title}: close it" @click=${() => this.#close(item)}><span aria-hidden="true">⊟</span> ${title}</button>`,
    )}`;
  }

  /** Outermost first; only the innermost few. */
  show(tree: Tree | null, scene: Scene | null, viewport: Viewport): void {
    // The first part is the whole scene, which has no header.
    const around = (scene?.parts ?? []).filter((part, at) => at > 0 && isLeftAbove(part, viewport)).slice(-MOST);
    const inside = around.map(({layout}) => layout.routes.group);
    if (inside.length !== this.groups.length || inside.some((item, at) => item !== this.groups[at].item)) {
      this.groups = tree === null ? [] : inside.map((item) => ({item, title: titleOf(tree, item)}));
    }
    this.hidden = inside.length === 0;
  }

  #close(item: number): void {
    this.dispatchEvent(new CustomEvent<number>("gf-toggle", {detail: item}));
  }
}

/** Whether the centre of the view is inside a group whose header is not visible. */
function isLeftAbove({x, y, layout: {width, height}}: Part, {camera, view, room}: Viewport): boolean {
  const {zoom} = camera;
  const [left, top] = [x * zoom + camera.x, y * zoom + camera.y];
  const [middle, centre] = [room / 2, view.height / 2];
  return top + HEADER * zoom < 0 && top + height * zoom > centre && left < middle && left + width * zoom > middle;
}

customElements.define("gf-crumbs", Crumbs);
