/**
 * Moves the reader's view to something, past the legend, which covers part of the graph and folds and unfolds
 * automatically.
 */

import {centredOn} from "../draw/camera.ts";
import type {Size} from "../layout/sizes.ts";
import type {Unfolding} from "../layout/unfolding.ts";
import type {Path} from "../model/paths.ts";
import type {Legend} from "./legend.ts";
import {firstLook, lookAlong} from "./looks.ts";
import type {Viewport} from "./viewport.ts";

/** The folded legend, in pixels, and a width below which it may cover anything. */
const FOLDED: Size = {width: 90, height: 36};
const ROOM_FOR_LEGEND = 900;

export class Leading {
  readonly #viewport: Viewport;
  readonly #legend: () => Legend | null;

  constructor(viewport: Viewport, legend: () => Legend | null) {
    this.#viewport = viewport;
    this.#legend = legend;
  }

  /** If nothing is wrong and the frame is narrow, the legend folds if that shows more of the first view. */
  begin(unfolding: Unfolding, worst: Path | null): void {
    this.#measure();
    const viewport = this.#viewport;
    const look = firstLook(viewport, unfolding, worst);
    if (worst !== null || viewport.room >= ROOM_FOR_LEGEND || viewport.legend.height <= FOLDED.height) {
      viewport.begin(look);
      return;
    }
    const boxes = [...unfolding.scene.byItem.values()].filter(({open}) => !open);
    const covered = viewport.covers(look, boxes);
    const unfolded = viewport.legend;
    viewport.legend = FOLDED;
    const other = firstLook(viewport, unfolding, null);
    const folds = viewport.covers(other, boxes) < covered;
    viewport.legend = folds ? FOLDED : unfolded;
    viewport.begin(folds ? other : look);
    if (folds) {
      this.#legend()?.giveWay();
    }
  }

  /** `unfolding` is read again during the move: groups may open in the meantime. */
  along(unfolding: () => Unfolding | null, way: readonly number[], item: number): void {
    this.#viewport.fly(() => {
      this.#measure();
      return lookAlong(this.#viewport, unfolding(), way, item);
    });
  }

  /** If a panel or the legend now covers an item, it is moved into view; an open group is too large for that. */
  uncover(unfolding: Unfolding | null, item: number): void {
    this.#measure();
    unfolding?.placed([item]).forEach((box) => box.open || this.#viewport.uncover(box));
  }

  whole(scene: () => Size): void {
    this.#viewport.fly(() => this.#viewport.whole(scene()));
  }

  /** Moves to a point of the world. */
  readonly to = ({detail: {x, y, fly}}: CustomEvent<{x: number; y: number; fly: boolean}>): void => {
    const {view, camera} = this.#viewport;
    const goal = centredOn({x, y, width: 0, height: 0}, view, camera.zoom);
    fly ? this.#viewport.fly(() => goal) : this.#viewport.jump(goal);
  };

  #measure(): void {
    const legend = this.#legend();
    this.#viewport.legend = {width: legend?.offsetWidth ?? 0, height: legend?.offsetHeight ?? 0};
  }
}
