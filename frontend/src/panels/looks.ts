/** Where to look: at first, and at a way. */

import type {Camera} from "../draw/camera.ts";
import type {Unfolding} from "../layout/unfolding.ts";
import {mainOf, type Path} from "../model/paths.ts";
import type {Viewport} from "./viewport.ts";

/** A look at an item of a way; as it is if there is nothing to look at. */
export function lookAlong(viewport: Viewport, unfolding: Unfolding | null, way: readonly number[], item: number): Camera {
  const places = unfolding?.standIns(way.includes(item) ? way : [item]) ?? [];
  const [main] = unfolding?.standIns([item]) ?? [];
  return main === undefined ? viewport.camera : viewport.along(places, places.indexOf(main));
}

/** The first look: all of it, or where the worst is, or the beginning. */
export function firstLook(viewport: Viewport, unfolding: Unfolding, worst: Path | null): Camera {
  const beginning = viewport.beginning(unfolding.scene);
  const readable = viewport.whole(unfolding.scene).zoom === beginning.zoom;
  return worst === null || readable ? beginning : lookAlong(viewport, unfolding, worst.nodes, mainOf(worst));
}
