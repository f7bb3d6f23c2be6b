/** The graph: open groups, the camera, the hovered item. A hidden list describes what is drawn. */

import {html, LitElement, nothing, type PropertyValues, type TemplateResult} from "lit";
import {pointedAt} from "../draw/hit.ts";
import {pictureOf, type Condition} from "../draw/look.ts";
import {isSame, marksOf, NO_MARKS, type Marks} from "../draw/marks.ts";
import {paint} from "../draw/paint.ts";
import {LIGHT, type Palette} from "../draw/palette.ts";
import type {Focus, Picture} from "../draw/picture.ts";
import type {Scene} from "../layout/scene.ts";
import {steered, type Direction} from "../layout/steer.ts";
import {Unfolding} from "../layout/unfolding.ts";
import type {Model} from "../model/model.ts";
import {groupsToShow} from "../model/opening.ts";
import {mainOf, type Path} from "../model/paths.ts";
import {ancestorsOf} from "../model/tree.ts";
import "./crumbs.ts";
import type {Crumbs} from "./crumbs.ts";
import {Gestures} from "./gestures.ts";
import {graphStyles} from "./graph_styles.ts";
import {graphTools} from "./graph_tools.ts";
import {litIn} from "./lit.ts";
import {Leading} from "./leading.ts";
import type {Minimap} from "./minimap.ts";
import "./minimap.ts";
import "./mirror.ts";
import {given} from "./given.ts";
import {shared} from "./styles.ts";
import {pictureAs} from "./takeaway.ts";
import {tooltip, tooltipOf, type Tip} from "./tooltip.ts";
import {Viewport} from "./viewport.ts";

export class GraphView extends LitElement {
  static override properties = {
    ...given("model", "condition", "initiallyOpen", "open", "found", "worst", "judged", "path", "selected", "covered", "palette"),
    scene: {state: true},
    hovered: {state: true},
    tip: {state: true},
  };
  declare model: Model | null;
  declare condition: Condition | null;
  declare initiallyOpen: ReadonlySet<number>;
  /** The groups to open; null for the default. */
  declare open: ReadonlySet<number> | null;
  /** Items that a search found; null while there is no search. */
  declare found: ReadonlySet<number> | null;
  /** The path of the worst finding: shown first. */
  declare worst: Path | null;
  /** Whether that path, and the default groups, are known from a report. */
  declare judged: boolean;
  /** The lit path; everything else is dimmed. */
  declare path: Path | null;
  /** An item; -1 for none. */
  declare selected: number;
  /** Pixels on the right that a panel covers. */
  declare covered: number;
  declare palette: Palette;
  /** The current layout; null while there is nothing. */
  declare scene: Scene | null;
  declare hovered: number;
  declare tip: Tip | null;

  #unfolding: Unfolding | null = null;
  #picture: Picture | null = null;
  #focus: Focus = {litItems: null, litEdges: null, selected: -1, hovered: -1};
  #marks: Marks = NO_MARKS;
  #mustPlace = true;
  /** Whether the selection may be covered, and the view had no size yet. */
  #mustUncover = false;
  #frame = 0;
  readonly #viewport = new Viewport(() => this.#paintSoon());
  readonly #leading = new Leading(this.#viewport, () => this.parentElement?.querySelector("gf-legend") ?? null);
  readonly #gestures = new Gestures(this.#viewport, {
    click: (x, y) => this.#click(x, y),
    doubleClick: (x, y) => this.#click(x, y, true),
    hover: (x, y) => this.#hover(x, y),
    leave: () => this.#leave(),
    showAll: () => this.showAll(),
    toggleSelected: () => this.toggle(this.selected),
    steer: (direction) => this.#steer(direction),
  });
  readonly #resized = new ResizeObserver(() => this.#resize());

  static override styles = [shared, graphStyles];

  constructor() {
    super();
    [this.model, this.condition, this.open, this.found, this.worst, this.path] = [null, null, null, null, null, null];
    [this.selected, this.hovered, this.covered] = [-1, -1, 0];
    [this.initiallyOpen, this.judged, this.palette] = [new Set(), false, LIGHT];
    [this.scene, this.tip] = [null, null];
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.#resized.observe(this);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#resized.disconnect();
    cancelAnimationFrame(this.#frame);
    this.#viewport.land();
  }

  override willUpdate(changed: PropertyValues<this>): void {
    this.#viewport.covered = this.covered;
    // A reader who has touched nothing sees the same as if the report had been there before.
    const begins = this.judged && changed.get("judged") === false && this.open === null && this.#viewport.isFresh;
    if (changed.has("model") || begins) {
      this.#unfold(begins);
    } else if (changed.has("open")) {
      const open = this.open ?? this.initiallyOpen;
      this.#rearrange((unfolding) => unfolding.openOnly(open), false);
    }
    if (changed.has("model") || changed.has("scene") || changed.has("condition")) {
      const fits = this.condition !== null && this.condition.tree === this.model?.tree;
      this.#picture = this.scene !== null && fits ? pictureOf(this.scene, this.condition as Condition) : null;
    }
    if (changed.has("model") || changed.has("path") || changed.has("found")) {
      this.#focus = {...this.#focus, ...litIn(this.model, this.found, this.path)};
    }
    this.#focus = {...this.#focus, selected: this.selected, hovered: this.hovered};
  }

  override render(): TemplateResult {
    const on = this.#gestures;
    return html`
      <canvas class="stage ${this.hovered >= 0 ? "pointing" : ""}" tabindex="0" role="img"
        aria-label="Graph of the model: where its gradient flows. The list after it says the same in text."
        @pointerdown=${on.press} @pointermove=${on.move} @pointerup=${on.release} @pointercancel=${on.cancel} @pointerleave=${this.#leave}
        @wheel=${on.wheel} @dblclick=${on.doubleClick} @keydown=${on.key}
      ></canvas>
      ${graphTools({zoom: (factor) => this.#viewport.zoom(factor), showAll: () => this.showAll(), openAll: () => this.openAll(), closeAll: () => this.closeAll()})}
      <gf-minimap hidden style="right:${this.covered + 12}px" @gf-look=${this.#leading.to}></gf-minimap>
      <gf-crumbs hidden style="right:${this.covered + 12}px" @gf-toggle=${(event: CustomEvent<number>) => this.toggle(event.detail)}></gf-crumbs>
      ${this.tip === null ? nothing : tooltip(this.tip, this.#viewport.view)}
      <gf-mirror
        .tree=${this.#picture === null ? null : this.model?.tree ?? null}
        .picture=${this.#picture}
        .litItems=${this.#focus.litItems}
        .litEdges=${this.#focus.litEdges}
        .selected=${this.selected}
        @gf-select=${(event: CustomEvent<number>) => this.#select(event.detail)}
        @gf-toggle=${(event: CustomEvent<number>) => this.toggle(event.detail)}
      ></gf-mirror>
    `;
  }

  override updated(changed: PropertyValues<this>): void {
    const marks = this.#picture === null ? NO_MARKS : marksOf(this.#picture, this.#focus);
    if (!isSame(marks, this.#marks)) {
      this.#marks = marks;
      this.dispatchEvent(new CustomEvent<Marks>("gf-marks", {detail: marks}));
    }
    if (this.#mustPlace && this.#picture !== null && this.#viewport.view.width > 0) {
      this.#mustPlace = false;
      this.#leading.begin(this.#unfolding as Unfolding, this.worst);
      // The legend appears only now, before anything is painted.
      requestAnimationFrame(this.#beginAgain);
    }
    this.#mustUncover ||= changed.has("selected") || changed.has("covered");
    if (this.#mustUncover && !this.#mustPlace) {
      this.#mustUncover = false;
      this.#leading.uncover(this.#unfolding, this.selected);
    }
    this.#paintSoon();
  }

  override focus(): void {
    this.renderRoot.querySelector<HTMLElement>("canvas")?.focus();
  }

  showAll(): void {
    this.#leading.whole(() => this.scene ?? {width: 1, height: 1});
  }

  openAll(): void {
    this.#rearrange((unfolding) => unfolding.openAll());
    this.showAll();
  }

  closeAll(): void {
    this.#rearrange((unfolding) => unfolding.closeAll());
    this.showAll();
  }

  /** Opens the groups that hide a path and shows its cut, with as much of the path as can be read. */
  showPath(path: Path): void {
    if (this.model !== null) {
      this.#rearrange((unfolding, {tree}) => unfolding.openAlso(groupsToShow(tree, path)));
      this.#leading.along(() => this.#unfolding, path.nodes, mainOf(path));
    }
  }

  /** The layout as a file. */
  async picture(kind: "svg" | "png"): Promise<Blob | null> {
    const [picture, scene] = [this.#picture, this.scene];
    return picture === null || scene === null ? null : pictureAs(kind, picture, scene, this.#focus, this.palette);
  }

  openAround(items: readonly number[]): void {
    this.#rearrange((unfolding, {tree}) => unfolding.openAlso(new Set(items.flatMap((item) => ancestorsOf(tree, item)))));
  }

  /** Opens the groups around an item and moves to it. */
  reveal(item: number): void {
    if (this.model !== null && item >= 0) {
      this.#rearrange((unfolding, {tree}) => unfolding.openAlso(new Set(ancestorsOf(tree, item))));
      this.#leading.along(() => this.#unfolding, [item], item);
    }
  }

  /** Opens or closes a group; the clicked part stays under the pointer, if all of the group is visible there. */
  toggle(item: number): void {
    this.#rearrange((unfolding) => {
      if (unfolding.isGroup(item)) {
        const {dx, dy} = unfolding.toggle(item);
        const {zoom} = this.#viewport.camera;
        this.#viewport.pan(-dx * zoom, -dy * zoom);
        unfolding.placed([item]).forEach((box) => this.#viewport.bringIn(box));
      }
    });
  }

  #rearrange(change: (unfolding: Unfolding, model: Model) => void, tell = true): void {
    if (this.#unfolding !== null && this.model !== null) {
      const before = this.#unfolding.open;
      change(this.#unfolding, this.model);
      this.scene = this.#unfolding.scene;
      if (tell && this.#unfolding.open !== before) {
        this.dispatchEvent(new CustomEvent<ReadonlySet<number>>("gf-open", {detail: this.#unfolding.open}));
      }
    }
  }

  /** Another trace of the same run keeps the view; another run starts with the first view. */
  #unfold(anew: boolean): void {
    const before = anew ? null : this.#unfolding;
    const {model} = this;
    this.#unfolding = model === null ? null : (before?.continuedIn(model) ?? new Unfolding(model, this.open ?? this.initiallyOpen));
    this.#mustPlace ||= before === null;
    this.scene = this.#unfolding?.scene ?? null;
    this.#leave();
  }

  #resize(): void {
    if (this.clientWidth > 0 && this.clientHeight > 0) {
      this.#viewport.resize(this.clientWidth, this.clientHeight);
      this.#beginAgain();
      this.requestUpdate();
    }
  }

  /** A reader who has touched nothing gets the first view again when the frame changes its size. */
  readonly #beginAgain = (): void => {
    if (this.isConnected && this.#viewport.isFresh && !this.#mustPlace && this.#unfolding !== null) {
      this.#leading.begin(this.#unfolding, this.worst);
    }
  };

  #paintSoon(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = this.isConnected ? requestAnimationFrame(() => this.#paint()) : 0;
  }

  #paint(): void {
    const canvas = this.renderRoot.querySelector("canvas");
    if (canvas !== null) {
      paint(canvas, this.#picture, {...this.#viewport.seen, focus: this.#focus, palette: this.palette});
      this.renderRoot.querySelector<Crumbs>("gf-crumbs")?.show(this.model?.tree ?? null, this.scene, this.#viewport);
      this.renderRoot.querySelector<Minimap>("gf-minimap")?.show(this.#picture, this.scene, this.#viewport, this.palette);
    }
  }

  /** Selects the next box in a direction, and brings it into view. */
  #steer(direction: Direction): void {
    const item = steered(this.scene?.placed ?? [], this.selected, direction);
    if (item >= 0) {
      this.#select(item);
      this.#unfolding?.placed([item]).forEach((box) => this.#viewport.bringIn(box));
    }
  }

  #select(item: number): void {
    this.#leave(); // the view may move below the pointer
    this.dispatchEvent(new CustomEvent<number>("gf-select", {detail: item}));
  }

  /** The sign of a group reacts to one click, the rest of it to two. */
  #click(x: number, y: number, twice = false): void {
    const {box, toggles} = pointedAt(this.#picture, this.#viewport.camera, x, y);
    if (box !== null && toggles !== twice) {
      this.toggle(box.item);
    } else if (!twice) {
      this.#select(box?.item ?? -1);
    }
  }

  #hover(x: number, y: number): void {
    const {box, edge} = pointedAt(this.#picture, this.#viewport.camera, x, y);
    const solid = edge === null && box !== null && box.kind !== "open" ? box : null;
    this.hovered = solid?.item ?? -1;
    this.tip = this.condition === null ? null : tooltipOf(this.condition, solid, edge, x, y);
  }

  readonly #leave = (): void => {
    [this.tip, this.hovered] = [null, -1];
  };
}

customElements.define("gf-graph", GraphView);
