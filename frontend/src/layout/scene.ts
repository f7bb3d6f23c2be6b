/**
 * The position of everything. Each open group is a part of the scene. The content of a part is computed on request,
 * because few of tens of thousands of things are ever visible.
 */

import type {Segment} from "../model/segments.ts";
import type {Layered, Points} from "./layered.ts";
import type {Rectangle, Size} from "./sizes.ts";

/** A drawn item: left, top and size, absolute. */
export interface Placed extends Rectangle {
  readonly item: number;
  readonly open: boolean;
}

/** With the bounding rectangle of its points. */
export interface Routed extends Rectangle {
  readonly group: number;
  readonly segment: Segment;
  readonly points: Points;
  /** Whether it runs against the flow. */
  readonly back: boolean;
  /** Whether it ends at a closed box. */
  readonly arrives: boolean;
}

/** One group, relative to its left and top. */
export interface GroupLayout extends Size {
  readonly children: readonly {readonly item: number; readonly x: number; readonly y: number; readonly size: Size}[];
  readonly routes: Routes;
  /** The x of each port, by its key. */
  readonly portX: ReadonlyMap<number, number>;
}

/** The routes of a group's segments as they were drawn, and the position of that drawing in the group. */
export interface Routes {
  readonly group: number;
  readonly segments: readonly Segment[];
  readonly drawing: Layered;
  readonly left: number;
  readonly top: number;
}

type Layouts = ReadonlyMap<number, GroupLayout>;

export class Scene implements Size {
  readonly width: number;
  readonly height: number;
  /** Outer ones first. */
  readonly parts: readonly Part[];
  #placed: readonly Placed[] | null = null;
  #byItem: ReadonlyMap<number, Placed> | null = null;

  /** `layouts`: of the root and of every visible open group. */
  constructor(root: number, layouts: Layouts) {
    const parts = [new Part(layouts.get(root) as GroupLayout, 0, 0, layouts)];
    for (let at = 0; at < parts.length; at += 1) {
      const {layout, x, y} = parts[at];
      for (const child of layout.children) {
        const inner = layouts.get(child.item);
        if (inner !== undefined) {
          parts.push(new Part(inner, x + child.x, y + child.y, layouts));
        }
      }
    }
    this.parts = parts;
    this.width = parts[0].layout.width;
    this.height = parts[0].layout.height;
  }

  /** Everything, outer things first. */
  get placed(): readonly Placed[] {
    this.#placed ??= this.parts.flatMap((part) => part.placed);
    return this.#placed;
  }

  get byItem(): ReadonlyMap<number, Placed> {
    this.#byItem ??= new Map(this.placed.map((each) => [each.item, each]));
    return this.#byItem;
  }

  get routed(): readonly Routed[] {
    return this.parts.flatMap((part) => part.routed);
  }
}

/** An open group, or the root. */
export class Part {
  readonly layout: GroupLayout;
  readonly x: number;
  readonly y: number;
  readonly #layouts: Layouts;
  #placed: readonly Placed[] | null = null;
  #routed: readonly Routed[] | null = null;
  #bounds: Rectangle | null = null;

  constructor(layout: GroupLayout, x: number, y: number, layouts: Layouts) {
    this.layout = layout;
    this.x = x;
    this.y = y;
    this.#layouts = layouts;
  }

  /** Whether a child is an open group. */
  isOpen(item: number): boolean {
    return this.#layouts.has(item);
  }

  /** The group's children. */
  get placed(): readonly Placed[] {
    const {layout, x, y} = this;
    this.#placed ??= layout.children.map(({item, x: left, y: top, size: {width, height}}) => {
      return {item, x: x + left, y: y + top, width, height, open: this.isOpen(item)};
    });
    return this.#placed;
  }

  /** The links between them. */
  get routed(): readonly Routed[] {
    this.#routed ??= this.#route();
    return this.#routed;
  }

  /** The bounding rectangle of both. */
  get bounds(): Rectangle {
    const {layout, x, y} = this;
    this.#bounds ??= moved(extentOf(layout), x, y);
    return this.#bounds;
  }

  /** Ends at ports are on the group's border, however short their column is. */
  #route(): Routed[] {
    const {layout: {routes, height}, x, y} = this;
    const {group, segments, drawing, left, top} = routes;
    return segments.map((segment, index) => {
      const route = drawing.routes[index];
      const points: Points = new Array(route.length);
      for (let at = 0; at < route.length; at += 2) {
        points[at] = route[at] + left + x;
        points[at + 1] = route[at + 1] + top + y;
      }
      points[1] = segment.from < 0 ? y : points[1];
      points[points.length - 1] = segment.to < 0 ? height + y : points[points.length - 1];
      const arrives = segment.to >= 0 && !this.isOpen(segment.to);
      return {group, segment, points, back: drawing.back[index], arrives, ...boundsOf([points])};
    });
  }
}

/** Copies of a block share their drawing. */
const EXTENTS = new WeakMap<Layered, Rectangle>();

/** The area of a group, including its links, relative to its left and top. */
function extentOf({width, height, routes: {drawing, left, top}}: GroupLayout): Rectangle {
  let links = EXTENTS.get(drawing);
  if (links === undefined) {
    links = boundsOf(drawing.routes);
    EXTENTS.set(drawing, links);
  }
  const [x, y] = [Math.min(0, links.x + left), Math.min(0, links.y + top)];
  const [right, bottom] = [links.x + left + links.width, links.y + top + links.height];
  return {x, y, width: Math.max(width, right) - x, height: Math.max(height, bottom) - y};
}

function moved({x, y, width, height}: Rectangle, dx: number, dy: number): Rectangle {
  return {x: x + dx, y: y + dy, width, height};
}

/** For no points, an empty rectangle at the origin. */
function boundsOf(lines: readonly Points[]): Rectangle {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const points of lines) {
    for (let at = 0; at < points.length; at += 2) {
      left = Math.min(left, points[at]);
      right = Math.max(right, points[at]);
      top = Math.min(top, points[at + 1]);
      bottom = Math.max(bottom, points[at + 1]);
    }
  }
  return left > right ? {x: 0, y: 0, width: 0, height: 0} : {x: left, y: top, width: right - left, height: bottom - top};
}
