/** The graph: canvases, camera and pointer. What it shows is made elsewhere; a hidden list says it in words. */

import {css, html, LitElement, type PropertyValues, type TemplateResult} from "lit";
import {paintAreas, paintBoxes} from "../draw/boxes.ts";
import {between, centredOn, fitted, moved, toWorld, zoomedAt, type Camera, type Rectangle} from "../draw/camera.ts";
import {paintEdges} from "../draw/edges.ts";
import {edgeAt, boxAt, isOnToggle} from "../draw/hit.ts";
import {pictureOf, type Condition} from "../draw/look.ts";
import {LIGHT, type Palette} from "../draw/palette.ts";
import type {Focus, Picture} from "../draw/picture.ts";
import {Arranger, type Scene} from "../layout/scene.ts";
import type {Model} from "../model/model.ts";
import {groupsToShow} from "../model/opening.ts";
import {itemsOnPath, type Path} from "../model/paths.ts";
import {ancestorsOf, isGroup} from "../model/tree.ts";
import {mirrorOf} from "./mirror.ts";
import {shared} from "./styles.ts";
import {tooltipOf} from "./tooltip.ts";

/** Milliseconds of a flight. */
const FLIGHT = 320;
const CLICK_DISTANCE = 4;

export class GraphView extends LitElement {
  static override properties = {
    model: {attribute: false},
    condition: {attribute: false},
    initiallyOpen: {attribute: false},
    path: {attribute: false},
    selected: {attribute: false},
    palette: {attribute: false},
    open: {state: true},
    hovered: {state: true},
    tip: {state: true},
  };
  declare model: Model | null;
  declare condition: Condition | null;
  declare initiallyOpen: ReadonlySet<number>;
  /** The way that is lit; everything else steps back. */
  declare path: Path | null;
  /** An item; -1 for none. */
  declare selected: number;
  declare palette: Palette;
  declare open: ReadonlySet<number>;
  declare hovered: number;
  declare tip: {x: number; y: number; lines: readonly string[]} | null;

  #arranger: Arranger | null = null;
  #scene: Scene | null = null;
  #picture: Picture | null = null;
  #camera: Camera = {zoom: 1, x: 0, y: 0};
  #view = {width: 0, height: 0};
  #mustFit = true;
  #frame = 0;
  #flight = 0;
  #pressed: {x: number; y: number; camera: Camera; moved: boolean} | null = null;
  readonly #resized = new ResizeObserver(() => this.#resize());

  static override styles = [
    shared,
    css`
      :host {
        position: relative;
        display: block;
        overflow: hidden;
        background: var(--gf-canvas);
        touch-action: none;
      }
      canvas {
        position: absolute;
        inset: 0;
        width: 100%;
        height: 100%;
        outline-offset: -3px;
      }
      canvas.dragging {
        cursor: grabbing;
      }
      .tools {
        position: absolute;
        right: 12px;
        top: 12px;
        display: flex;
        flex-direction: column;
        gap: 4px;
      }
      .tools button {
        width: 30px;
        height: 30px;
        padding: 0;
        font-size: 15px;
      }
      .tip {
        position: absolute;
        z-index: 2;
        max-width: 340px;
        pointer-events: none;
        border: 1px solid var(--gf-line);
        border-radius: 7px;
        background: var(--gf-page);
        box-shadow: 0 4px 14px rgb(0 0 0 / 14%);
        padding: 6px 10px;
        font-size: 12px;
        overflow-wrap: anywhere;
      }
      .tip div:first-child {
        font-weight: 600;
      }
    `,
  ];

  constructor() {
    super();
    this.model = null;
    this.condition = null;
    this.initiallyOpen = new Set();
    this.path = null;
    this.selected = -1;
    this.palette = LIGHT;
    this.open = new Set();
    this.hovered = -1;
    this.tip = null;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.#resized.observe(this);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#resized.disconnect();
  }

  override willUpdate(changed: PropertyValues<this>): void {
    if (changed.has("model")) {
      this.#arranger = this.model === null ? null : new Arranger(this.model.tree, this.model.flows);
      this.open = this.initiallyOpen;
      this.#mustFit = true;
    }
    if (changed.has("model") || changed.has("open")) {
      this.#scene = this.#arranger?.arrange(this.open) ?? null;
    }
    if (changed.has("model") || changed.has("open") || changed.has("condition")) {
      const ready = this.#scene !== null && this.condition !== null && this.condition.tree === this.model?.tree;
      this.#picture = ready ? pictureOf(this.#scene as Scene, this.condition as Condition) : null;
    }
  }

  override render(): TemplateResult {
    return html`
      <canvas
        tabindex="0"
        role="img"
        aria-label="Graph of the model: where its gradient flows. The list after it says the same in words."
        @wheel=${this.#wheel}
        @pointerdown=${this.#press}
        @pointermove=${this.#move}
        @pointerup=${this.#release}
        @pointerleave=${this.#leave}
        @dblclick=${this.#doubleClick}
        @keydown=${this.#key}
      ></canvas>
      <div class="tools">
        <button title="Zoom in (+)" aria-label="Zoom in" @click=${() => this.#zoom(1.3)}>+</button>
        <button title="Zoom out (−)" aria-label="Zoom out" @click=${() => this.#zoom(1 / 1.3)}>−</button>
        <button title="Show all (0)" aria-label="Show all" @click=${() => this.fit()}>⤢</button>
        <button title="Close all groups" aria-label="Close all groups" @click=${() => this.#closeAll()}>⊟</button>
      </div>
      ${this.tip === null ? "" : this.#tooltip(this.tip)} ${this.#mirror()}
    `;
  }

  override updated(): void {
    if (this.#mustFit && this.#picture !== null && this.#view.width > 0) {
      this.#mustFit = false;
      this.#camera = this.#whole();
    }
    this.#paintSoon();
  }

  /** Shows everything. */
  fit(): void {
    this.#flyTo(this.#whole());
  }

  /** Opens what hides a path and shows where it is cut. */
  showPath(path: Path): void {
    if (this.model === null) {
      return;
    }
    this.#openAlso(groupsToShow(this.model.tree, path));
    const centre = path.culprit >= 0 ? path.culprit : (path.nodes[0] ?? -1);
    this.#flyAround(centre, path);
  }

  /** Opens the groups around an item and goes there. */
  reveal(item: number): void {
    if (this.model !== null && item >= 0) {
      this.#openAlso(new Set(ancestorsOf(this.model.tree, item)));
      this.#flyAround(item, null);
    }
  }

  toggle(item: number): void {
    if (this.model === null || !isGroup(this.model.tree, item)) {
      return;
    }
    const before = this.#scene?.byItem.get(item);
    const open = new Set(this.open);
    if (!open.delete(item)) {
      open.add(item);
    }
    this.#rearrange(open);
    const after = this.#scene?.byItem.get(item);
    if (before !== undefined && after !== undefined) {
      // What was clicked stays under the pointer.
      const {zoom} = this.#camera;
      this.#camera = moved(this.#camera, (before.x - after.x) * zoom, (before.y - after.y) * zoom);
    }
  }

  #rearrange(open: ReadonlySet<number>): void {
    this.open = open;
    this.#scene = this.#arranger?.arrange(open) ?? null;
  }

  #openAlso(groups: ReadonlySet<number>): void {
    if ([...groups].some((group) => !this.open.has(group))) {
      this.#rearrange(new Set([...this.open, ...groups]));
    }
  }

  #closeAll(): void {
    this.#rearrange(new Set());
    this.#camera = this.#whole();
  }

  #whole(): Camera {
    const {width, height} = this.#scene ?? {width: 1, height: 1};
    return fitted({x: 0, y: 0, width, height}, this.#view);
  }

  /** Flies to an item, as near as its path allows, but near enough to read. */
  #flyAround(item: number, path: Path | null): void {
    const at = this.#scene?.byItem.get(item);
    if (at === undefined) {
      return;
    }
    const onPath = (path?.nodes ?? []).map((node) => this.#scene?.byItem.get(node)).filter((each) => each !== undefined);
    const all = fitted(around([at, ...onPath]), this.#view);
    this.#flyTo(all.zoom >= 0.55 ? all : centredOn(at, this.#view, Math.max(0.8, Math.min(1, this.#camera.zoom))));
  }

  #flyTo(goal: Camera): void {
    cancelAnimationFrame(this.#flight);
    const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    const from = this.#camera;
    const begin = performance.now();
    const fly = (now: number): void => {
      const share = still ? 1 : Math.min(1, Math.max(0, (now - begin) / FLIGHT));
      this.#camera = between(from, goal, 1 - (1 - share) ** 3);
      this.#paint();
      if (share < 1) {
        this.#flight = requestAnimationFrame(fly);
      }
    };
    this.#flight = requestAnimationFrame(fly);
  }

  #resize(): void {
    const {clientWidth: width, clientHeight: height} = this;
    if (width === 0 || height === 0) {
      return;
    }
    const first = this.#view.width === 0;
    this.#camera = moved(this.#camera, (width - this.#view.width) / 2, (height - this.#view.height) / 2);
    this.#view = {width, height};
    if (first && this.#picture !== null) {
      this.#mustFit = false;
      this.#camera = this.#whole();
    }
    this.#paint();
  }

  #paintSoon(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame(() => this.#paint());
  }

  #paint(): void {
    const canvas = this.renderRoot.querySelector("canvas");
    const context = canvas?.getContext("2d");
    if (!canvas || !context) {
      return;
    }
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [Math.round(this.#view.width * ratio), Math.round(this.#view.height * ratio)];
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width;
      canvas.height = height;
    }
    const {zoom, x, y} = this.#camera;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, width, height);
    context.setTransform(ratio * zoom, 0, 0, ratio * zoom, ratio * x, ratio * y);
    if (this.#picture !== null) {
      const seen = this.#window();
      const boxes = this.#picture.boxes.filter((box) => touches(box, seen));
      const edges = this.#picture.edges.filter((edge) => touches(edge, seen));
      paintAreas(context, boxes, this.palette, zoom);
      paintEdges(context, this.#picture, edges, this.#focus(), this.palette, zoom);
      paintBoxes(context, this.#picture, boxes, this.#focus(), this.palette, zoom);
    }
  }

  #window(): Rectangle {
    const {zoom, x, y} = this.#camera;
    const margin = 30;
    return {
      x: -x / zoom - margin,
      y: -y / zoom - margin,
      width: this.#view.width / zoom + 2 * margin,
      height: this.#view.height / zoom + 2 * margin,
    };
  }

  #focus(): Focus {
    const path = this.path;
    return {
      litItems: path === null || this.model === null ? null : itemsOnPath(this.model.tree, path),
      litEdges: path?.edges ?? null,
      selected: this.selected,
      hovered: this.hovered,
    };
  }

  #mirror(): TemplateResult {
    if (this.#picture === null || this.model === null) {
      return html``;
    }
    return mirrorOf(this.model.tree, this.#picture, this.#focus(), (item) => this.#select(item));
  }

  #tooltip(tip: NonNullable<GraphView["tip"]>): TemplateResult {
    const left = Math.min(tip.x + 14, Math.max(0, this.#view.width - 360));
    const top = Math.min(tip.y + 16, Math.max(0, this.#view.height - 90));
    return html`<div class="tip" style="left:${left}px;top:${top}px">
      ${tip.lines.map((line) => html`<div>${line}</div>`)}
    </div>`;
  }

  #select(item: number): void {
    this.dispatchEvent(new CustomEvent<number>("gf-select", {detail: item}));
  }

  #zoom(factor: number): void {
    this.#flyTo(zoomedAt(this.#camera, this.#view.width / 2, this.#view.height / 2, factor));
  }

  #wheel(event: WheelEvent): void {
    event.preventDefault();
    cancelAnimationFrame(this.#flight);
    const lines = event.deltaMode === 1 ? 16 : 1;
    const factor = Math.exp(-event.deltaY * lines * (event.ctrlKey ? 0.01 : 0.0016));
    this.#camera = zoomedAt(this.#camera, event.offsetX, event.offsetY, factor);
    this.#paintSoon();
  }

  #press(event: PointerEvent): void {
    if (event.button === 0) {
      cancelAnimationFrame(this.#flight);
      (event.target as Element).setPointerCapture(event.pointerId);
      this.#pressed = {x: event.clientX, y: event.clientY, camera: this.#camera, moved: false};
    }
  }

  #move(event: PointerEvent): void {
    if (this.#pressed !== null) {
      const dx = event.clientX - this.#pressed.x;
      const dy = event.clientY - this.#pressed.y;
      this.#pressed.moved ||= Math.hypot(dx, dy) > CLICK_DISTANCE;
      if (this.#pressed.moved) {
        this.tip = null;
        this.#camera = moved(this.#pressed.camera, dx, dy);
        this.#paintSoon();
      }
      return;
    }
    this.#hover(event.offsetX, event.offsetY);
  }

  #hover(x: number, y: number): void {
    if (this.#picture === null || this.condition === null) {
      return;
    }
    const point = toWorld(this.#camera, x, y);
    const box = boxAt(this.#picture, point, this.#camera.zoom);
    const edge = box === null || box.kind === "open" ? edgeAt(this.#picture, point, 7 / this.#camera.zoom) : null;
    this.hovered = edge === null && box !== null ? box.item : -1;
    const lines = tooltipOf(this.condition, edge === null ? box : null, edge);
    this.tip = lines.length === 0 ? null : {x, y, lines};
  }

  #release(event: PointerEvent): void {
    const pressed = this.#pressed;
    this.#pressed = null;
    if (pressed === null || pressed.moved || this.#picture === null) {
      return;
    }
    const point = toWorld(this.#camera, event.offsetX, event.offsetY);
    const box = boxAt(this.#picture, point, this.#camera.zoom);
    if (box !== null && isOnToggle(box, point)) {
      this.toggle(box.item);
    } else {
      this.#select(box?.item ?? -1);
    }
  }

  #leave(): void {
    this.tip = null;
    this.hovered = -1;
  }

  #doubleClick(event: MouseEvent): void {
    if (this.#picture === null) {
      return;
    }
    const point = toWorld(this.#camera, event.offsetX, event.offsetY);
    const box = boxAt(this.#picture, point, this.#camera.zoom);
    if (box !== null && !isOnToggle(box, point)) {
      this.toggle(box.item);
    }
  }

  #key(event: KeyboardEvent): void {
    const pan: Record<string, [number, number]> = {
      ArrowUp: [0, 60],
      ArrowDown: [0, -60],
      ArrowLeft: [60, 0],
      ArrowRight: [-60, 0],
    };
    const actions: Record<string, () => void> = {
      "+": () => this.#zoom(1.3),
      "=": () => this.#zoom(1.3),
      "-": () => this.#zoom(1 / 1.3),
      "0": () => this.fit(),
      Enter: () => this.toggle(this.selected),
    };
    const step = pan[event.key];
    if (step !== undefined) {
      this.#camera = moved(this.#camera, ...step);
      this.#paintSoon();
      event.preventDefault();
    } else if (actions[event.key] !== undefined && !event.ctrlKey && !event.metaKey) {
      actions[event.key]();
      event.preventDefault();
    }
  }
}

function touches(a: Rectangle, b: Rectangle): boolean {
  return a.x <= b.x + b.width && a.x + a.width >= b.x && a.y <= b.y + b.height && a.y + a.height >= b.y;
}

function around(boxes: readonly Rectangle[]): Rectangle {
  const x = Math.min(...boxes.map((box) => box.x));
  const y = Math.min(...boxes.map((box) => box.y));
  const right = Math.max(...boxes.map((box) => box.x + box.width));
  const bottom = Math.max(...boxes.map((box) => box.y + box.height));
  return {x, y, width: right - x, height: bottom - y};
}

customElements.define("gf-graph", GraphView);
