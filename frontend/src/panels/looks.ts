/** Camera positions: for the first view, and for a path. */

import type {Camera, Rectangle} from "../draw/camera.ts";
import type {Placed} from "../layout/scene.ts";
import type {Unfolding} from "../layout/unfolding.ts";
import {mainOf, type Path} from "../model/paths.ts";
import type {Viewport} from "./viewport.ts";

/** In world units: the distance of a group's header to its first item is at most this. */
const HEADER = 80;

/** The view of an item of a path; unchanged if there is nothing to show, as for a finding without an op or a variable. */
export function lookAlong(viewport: Viewport, unfolding: Unfolding | null, way: readonly number[], item: number): Camera {
  if (unfolding === null || item < 0) {
    return viewport.camera;
  }
  const places = unfolding.standIns(way.includes(item) ? way : [item]);
  const [main] = unfolding.standIns([item]);
  if (main === undefined) {
    return viewport.camera;
  }
  const groups = [...unfolding.scene.byItem.values()].filter(({open}) => open);
  const at = places.indexOf(main);
  // Something that is completely visible and large is not made smaller to show a part of it.
  const most = Math.max(1, viewport.whole(unfolding.scene).zoom);
  const [plain, headed] = [places, places.map((place) => withHeaders(place, groups))].map((way) => viewport.along(way, at, most));
  // The beginning of a path says more than the names above it, if there is no space for both.
  const beginning = places.find((place) => seesHeightOf(place, plain, viewport.view.height));
  return beginning === undefined || seesHeightOf(beginning, headed, viewport.view.height) ? headed : plain;
}

function seesHeightOf({y, height}: Placed, camera: Camera, view: number): boolean {
  return y * camera.zoom + camera.y >= 0 && (y + height) * camera.zoom + camera.y <= view;
}

/** The first view: everything, or the worst place, or the beginning. */
export function firstLook(viewport: Viewport, unfolding: Unfolding, worst: Path | null): Camera {
  const boxes = [...unfolding.scene.byItem.values()].filter(({open}) => !open);
  const beginning = viewport.beginning(unfolding.scene, boxes);
  const readable = viewport.whole(unfolding.scene).zoom === beginning.zoom;
  const nowhere = worst === null || mainOf(worst) < 0;
  return nowhere || (readable && viewport.shows(beginning, unfolding.standIns(worst.nodes))) ? beginning : lookAlong(viewport, unfolding, worst.nodes, mainOf(worst));
}

/** An item together with the headers right above it, which say what it is part of. */
function withHeaders(place: Placed, groups: readonly Placed[]): Rectangle {
  const {x, y, width, height} = place;
  const around = groups.filter((group) => group !== place && contains(group, place));
  // The innermost first.
  const top = around.sort((a, b) => b.y - a.y).reduce((top, group) => (top - group.y <= HEADER ? group.y : top), y);
  return {x, y: top, width, height: height + y - top};
}

function contains(group: Rectangle, {x, y, width, height}: Rectangle): boolean {
  return group.x <= x && group.y <= y && group.x + group.width >= x + width && group.y + group.height >= y + height;
}
