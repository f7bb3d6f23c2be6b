/** The reader's view: the camera, its animations, and the part of the view that is free of panels. */

import {between, centredOn, fitted, moved, zoomedAt, type Camera, type Rectangle} from "../draw/camera.ts";
import type {Size} from "../layout/sizes.ts";
import {areasOf, cornersOf, coveredOf, ROOM_FOR_MAP} from "./corners.ts";

/** Milliseconds of a camera animation. */
const FLIGHT = 320;
/** Below this zoom text cannot be read. */
const LEGIBLE = 0.55;
/** A path is shown as a whole only down to this zoom: its names must be readable. */
const READABLE = 0.58;
const COMFORTABLE = 0.85;
/** A small graph is enlarged up to this zoom if there is space; larger text is not easier to read. */
const LARGEST = 1.6;
/** Centred in the view, unless it could be that much larger next to the centre. */
const ALMOST = 0.85;
const MARGIN = 36;
/** A view is computed with at least this size: a frame has none while it is hidden, or not laid out yet. */
const LEAST: Size = {width: 200, height: 100};
/** Pixels below which the camera does not move to show one item. */
const FAR = 1e6;
/** Pixels around the shown part of a path: the name of its group is above it. */
const EDGE = 30;
/** Number of items after the main one that are shown with it. */
const AFTER = 1;
/** Height of the buttons at the top. */
const BUTTONS = 16;
/** Items that begin further left are placed below the buttons, by this distance. */
const BESIDE_BUTTONS = 190;
const BELOW_BUTTONS = 54;
/** Widths of the legend, on the left, and of the map, on the right. */
const LEGEND = 220;
const MAP = 180;
/** Height of the map, at the bottom. */
const MAP_HEIGHT = 150;

export class Viewport {
  camera: Camera = {zoom: 1, x: 0, y: 0};
  view: Size = {width: 0, height: 0};
  /** Pixels on the right that a panel covers. */
  covered = 0;
  /** The part of the bottom left corner that the legend covers. */
  legend: Size = {width: 0, height: 0};
  /** Whether the view is still the first one. */
  isFresh = false;
  isFlying = false;
  readonly #changed: () => void;
  #flight = 0;

  constructor(changed: () => void) {
    this.#changed = changed;
  }

  /** Keeps the centre in place. */
  resize(width: number, height: number): void {
    this.camera = moved(this.camera, (width - this.view.width) / 2, (height - this.view.height) / 2);
    this.view = {width, height};
    this.#changed();
  }

  /** Everything, however small; enlarged if there is space for it without covering anything. */
  whole(scene: Size): Camera {
    return this.#enlarged(scene) ?? this.#reduced(scene);
  }

  #enlarged(scene: Size): Camera | null {
    const free = this.#free;
    const corners = cornersOf(free, this.legend);
    const world = {x: 0, y: 0, ...scene};
    const cameras = areasOf(free, this.legend)
      .map((area) => moved(fitted(world, area, LARGEST), area.x, area.y))
      .filter((camera) => camera.zoom > 1 && coveredOf(camera, [world], -1, corners, free) === 0);
    const best = Math.max(...cameras.map(({zoom}) => zoom));
    return cameras.find(({zoom}) => zoom >= ALMOST * best) ?? null;
  }

  #reduced(scene: Size): Camera {
    const {width, height} = this.#free;
    const camera = moved(fitted({x: 0, y: 0, ...scene}, {width, height: height - BUTTONS}), 0, BUTTONS);
    return this.#besideLegend(camera, scene.width, MARGIN);
  }

  /** Far enough to the right that the legend covers nothing, if the part left of `right` still keeps its distance. */
  #besideLegend(camera: Camera, right: number, distance: number): Camera {
    const room = this.#free.width - distance - (camera.x + right * camera.zoom);
    const shift = Math.max(0, LEGEND - camera.x);
    return shift <= room ? moved(camera, shift, 0) : camera;
  }

  /** Everything if it can be read; otherwise the beginning, where the corners cover the fewest boxes. */
  beginning(scene: Size, boxes: readonly Rectangle[] = []): Camera {
    const whole = this.whole(scene);
    if (whole.zoom >= LEGIBLE) {
      return whole;
    }
    const world = {x: 0, y: 0, ...scene};
    const looks = areasOf(this.#free, this.legend).map((area) => moved(centredOn(world, area, LEGIBLE), area.x, 0).x);
    const usual = this.#besideLegend(centredOn(world, this.#free, LEGIBLE), scene.width, MARGIN).x;
    const cameras = [usual, ...looks].map((x): Camera => ({zoom: LEGIBLE, x, y: x < BESIDE_BUTTONS ? BELOW_BUTTONS : MARGIN}));
    const covered = cameras.map((camera) => this.covers(camera, boxes));
    return cameras[covered.indexOf(Math.min(...covered))];
  }

  /** Number of the boxes in view of a camera that are covered, or that are beside the view; boxes below it do not count. */
  covers(camera: Camera, boxes: readonly Rectangle[]): number {
    const begun = boxes.filter((box) => box.y * camera.zoom + camera.y < this.#free.height);
    const view = {...this.#free, height: Infinity};
    return coveredOf(camera, begun, -1, cornersOf(this.#free, this.legend), view);
  }

  /**
   * The item at index `at` of a path, and as much of the path as can be read together with it: first everything from
   * the beginning, then on towards the end. If the beginning is too far, the items right after it come first. `most`:
   * the maximum zoom.
   */
  along(way: readonly Rectangle[], at: number, most = 1): Camera {
    const free = this.#free;
    const corners = cornersOf(free, this.legend);
    const looks = areasOf(free, this.legend).map((area) => this.#alongIn(area, way, at, most));
    const covered = looks.map((look) => coveredOf(look, way, at, corners, free));
    return looks[covered.indexOf(Math.min(...covered))];
  }

  /** The same in the centre of a part of the view, ignoring its corners. */
  #alongIn(area: Rectangle, way: readonly Rectangle[], at: number, most: number): Camera {
    const look = (first: number, last: number): Camera =>
      moved(fitted(hull(way.slice(first, last + 1)), area, most, EDGE), area.x, area.y);
    const fits = (first: number, last: number): boolean => look(first, last).zoom >= READABLE;
    if (!fits(at, at)) {
      return moved(centredOn(way[at], area, COMFORTABLE), area.x, area.y);
    }
    let last = at;
    const reach = fits(0, at) ? way.length - 1 : Math.min(at + AFTER, way.length - 1);
    let first = fits(0, at) ? 0 : at;
    while (last < reach && fits(first, last + 1)) {
      last += 1;
    }
    while (first > 0 && fits(first - 1, last)) {
      first -= 1;
    }
    const seen = hull(way.slice(first, last + 1));
    return this.#besideMap(this.#besideLegend(look(first, last), seen.x + seen.width, MAP), way[at]);
  }

  /** Far enough to the left that the map, if there is one, does not cover the main part. */
  #besideMap(camera: Camera, main: Rectangle): Camera {
    const over = (main.x + main.width) * camera.zoom + camera.x - (this.#free.width - MAP);
    const isLow = (main.y + main.height) * camera.zoom + camera.y > this.#free.height - MAP_HEIGHT;
    return isLow && over > 0 && this.#free.width >= ROOM_FOR_MAP ? moved(camera, -over, 0) : camera;
  }

  /** Moves as little as possible to show all of an item uncovered, if there is space for it at this zoom. */
  bringIn(thing: Rectangle): void {
    const goal = this.clearing(thing);
    if (goal.x !== this.camera.x || goal.y !== this.camera.y) {
      this.fly(() => goal);
    }
  }

  /** The closest of the cameras that show most of an item. */
  clearing(thing: Rectangle): Camera {
    const free = this.#free;
    const corners = cornersOf(free, this.legend);
    const goals = areasOf(free, this.legend).map((area) => this.#broughtInto(area, thing));
    const costs = goals.map((goal) => {
      const way = Math.hypot(goal.x - this.camera.x, goal.y - this.camera.y);
      return coveredOf(goal, [thing], 0, corners, free) * FAR + way;
    });
    return goals[costs.indexOf(Math.min(...costs))];
  }

  /** Whether a camera would show all of some boxes, uncovered. */
  shows(camera: Camera, boxes: readonly Rectangle[]): boolean {
    return coveredOf(camera, boxes, -1, cornersOf(this.#free, this.legend), this.#free) === 0;
  }

  /** The selection may be where a panel or a corner is now; once the camera has moved for it, it does not move back. */
  uncover(thing: Rectangle): void {
    if (!this.isFlying && coveredOf(this.camera, [thing], 0, cornersOf(this.#free, this.legend), this.#free) > 0) {
      this.bringIn(thing);
    }
  }

  #broughtInto(area: Rectangle, thing: Rectangle): Camera {
    const {zoom, x, y} = this.camera;
    const shift = (start: number, size: number, room: number): number => {
      const [low, high] = [MARGIN - start, room - MARGIN - start - size];
      return high < low ? 0 : Math.min(Math.max(0, low), high);
    };
    const dx = shift(thing.x * zoom + x - area.x, thing.width * zoom, area.width);
    const dy = shift(thing.y * zoom + y - area.y, thing.height * zoom, area.height);
    return moved(this.camera, dx, dy);
  }

  /** The first look. */
  begin(camera: Camera): void {
    this.jump(camera);
    this.isFresh = true;
  }

  jump(camera: Camera): void {
    this.land();
    this.isFresh = false;
    this.camera = camera;
    this.#changed();
  }

  /** `goal` is read again during the animation: the view may change in the meantime. */
  fly(goal: () => Camera): void {
    cancelAnimationFrame(this.#flight);
    [this.isFresh, this.isFlying] = [false, true];
    const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    const from = this.camera;
    const begin = performance.now();
    const step = (now: number): void => {
      const share = still ? 1 : Math.min(1, Math.max(0, (now - begin) / FLIGHT));
      this.camera = between(from, goal(), 1 - (1 - share) ** 3);
      this.#changed();
      this.isFlying = share < 1;
      if (share < 1) {
        this.#flight = requestAnimationFrame(step);
      }
    };
    this.#flight = requestAnimationFrame(step);
  }

  /** Ends an animation where it is. */
  land(): void {
    cancelAnimationFrame(this.#flight);
    this.isFlying = false;
  }

  pan(dx: number, dy: number): void {
    this.jump(moved(this.camera, dx, dy));
  }

  zoomAt(x: number, y: number, factor: number): void {
    this.jump(zoomedAt(this.camera, x, y, factor));
  }

  zoom(factor: number): void {
    const goal = zoomedAt(this.camera, this.#free.width / 2, this.#free.height / 2, factor);
    this.fly(() => goal);
  }

  /** The visible part of the world, and a little more. */
  window(margin = 30): Rectangle {
    const {zoom, x, y} = this.camera;
    return {
      x: -x / zoom - margin,
      y: -y / zoom - margin,
      width: this.view.width / zoom + 2 * margin,
      height: this.view.height / zoom + 2 * margin,
    };
  }

  get seen(): {readonly camera: Camera; readonly view: Size; readonly window: Rectangle} {
    return {camera: this.camera, view: this.view, window: this.window()};
  }

  seesAllOf(scene: Size): boolean {
    const {x, y, width, height} = this.window(0);
    return x <= 0 && y <= 0 && x + width >= scene.width && y + height >= scene.height;
  }

  /** Width that no panel covers. */
  get room(): number {
    return this.view.width - this.covered;
  }

  get #free(): Size {
    return {width: Math.max(LEAST.width, this.view.width - this.covered), height: Math.max(LEAST.height, this.view.height)};
  }
}

function hull(boxes: readonly Rectangle[]): Rectangle {
  const x = Math.min(...boxes.map((box) => box.x));
  const y = Math.min(...boxes.map((box) => box.y));
  const right = Math.max(...boxes.map((box) => box.x + box.width));
  const bottom = Math.max(...boxes.map((box) => box.y + box.height));
  return {x, y, width: right - x, height: bottom - y};
}
