/** Translates pointer, wheel and keys on the graph into actions. */

import type {Direction} from "../layout/steer.ts";
import type {Viewport} from "./viewport.ts";

/** A press that moved less than this is a click. */
const CLICK_DISTANCE = 4;
const ARROW = 60;
/** Pixels of the smallest turn of a wheel. */
const NOTCH = 50;
/** Milliseconds within which wheel events are attributed to the same device. */
const GOES_ON = 200;

export interface Gesture {
  /** Coordinates are those of the view. */
  click(x: number, y: number): void;
  doubleClick(x: number, y: number): void;
  hover(x: number, y: number): void;
  leave(): void;
  showAll(): void;
  toggleSelected(): void;
  /** Selects the next item in that direction. */
  steer(direction: Direction): void;
}

export class Gestures {
  readonly #viewport: Viewport;
  readonly #gesture: Gesture;
  #wheeled = -Infinity;
  #wheelTurns = false;
  #pressed: {x: number; y: number; moved: boolean} | null = null;

  constructor(viewport: Viewport, gesture: Gesture) {
    this.#viewport = viewport;
    this.#gesture = gesture;
  }

  /** A mouse's wheel zooms, and so does a two-finger pinch; two fingers that move on a trackpad pan. */
  readonly wheel = (event: WheelEvent): void => {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    const [dx, dy] = [event.deltaX * lines, event.deltaY * lines];
    if (event.shiftKey && dx === 0) {
      this.#viewport.pan(-dy, 0);
    } else if (event.ctrlKey || this.#isWheel(event)) {
      this.#viewport.zoomAt(event.offsetX, event.offsetY, Math.exp(-dy * (event.ctrlKey ? 0.01 : 0.0016)));
    } else {
      this.#viewport.pan(-dx, -dy);
    }
  };

  /** Trackpads send many small steps, also horizontal ones; a wheel's are large, or in lines, and only vertical. */
  #isWheel({deltaMode, deltaX, deltaY, timeStamp}: WheelEvent): boolean {
    const goesOn = timeStamp - this.#wheeled < GOES_ON;
    this.#wheeled = timeStamp;
    if (!goesOn) {
      this.#wheelTurns = deltaMode !== 0 || (deltaX === 0 && Math.abs(deltaY) >= NOTCH);
    }
    return this.#wheelTurns;
  }

  readonly press = (event: PointerEvent): void => {
    if (event.button === 0) {
      (event.target as Element).setPointerCapture(event.pointerId);
      this.#pressed = {x: event.clientX, y: event.clientY, moved: false};
    }
  };

  readonly move = (event: PointerEvent): void => {
    if (this.#pressed === null) {
      this.#gesture.hover(event.offsetX, event.offsetY);
      return;
    }
    const dx = event.clientX - this.#pressed.x;
    const dy = event.clientY - this.#pressed.y;
    if (this.#pressed.moved || Math.hypot(dx, dy) > CLICK_DISTANCE) {
      this.#pressed = {x: event.clientX, y: event.clientY, moved: true};
      this.#gesture.leave();
      this.#viewport.pan(dx, dy);
    }
  };

  readonly release = (event: PointerEvent): void => {
    const pressed = this.#pressed;
    this.#pressed = null;
    if (pressed !== null && !pressed.moved) {
      this.#gesture.click(event.offsetX, event.offsetY);
    }
  };

  readonly cancel = (): void => {
    this.#pressed = null;
    this.#gesture.leave();
  };

  readonly doubleClick = (event: MouseEvent): void => this.#gesture.doubleClick(event.offsetX, event.offsetY);

  readonly key = (event: KeyboardEvent): void => {
    const {key, shiftKey} = event;
    const steer = (direction: Direction, dx: number, dy: number) => (): void =>
      shiftKey ? this.#viewport.pan(dx * ARROW, dy * ARROW) : this.#gesture.steer(direction);
    const actions: Record<string, () => void> = {
      ArrowUp: steer("up", 0, 1),
      ArrowDown: steer("down", 0, -1),
      ArrowLeft: steer("left", 1, 0),
      ArrowRight: steer("right", -1, 0),
      w: () => this.#viewport.pan(0, ARROW),
      s: () => this.#viewport.pan(0, -ARROW),
      a: () => this.#viewport.pan(ARROW, 0),
      d: () => this.#viewport.pan(-ARROW, 0),
      "+": () => this.#viewport.zoom(1.3),
      "=": () => this.#viewport.zoom(1.3),
      "-": () => this.#viewport.zoom(1 / 1.3),
      "0": () => this.#gesture.showAll(),
      Enter: () => this.#gesture.toggleSelected(),
    };
    const action = actions[key];
    if (action !== undefined && !event.ctrlKey && !event.metaKey && !event.altKey) {
      action();
      event.preventDefault();
      event.stopPropagation();
    }
  };
}
