/** Pointer, wheel and keys on the graph, as what they mean. */

import type {Viewport} from "./viewport.ts";

/** A press that moved less than this is a click. */
const CLICK_DISTANCE = 4;
const ARROW = 60;

export interface Gesture {
  /** Coordinates are those of the view. */
  click(x: number, y: number): void;
  doubleClick(x: number, y: number): void;
  hover(x: number, y: number): void;
  leave(): void;
  showAll(): void;
  toggleSelected(): void;
}

export class Gestures {
  readonly #viewport: Viewport;
  readonly #gesture: Gesture;
  #pressed: {x: number; y: number; moved: boolean} | null = null;

  constructor(viewport: Viewport, gesture: Gesture) {
    this.#viewport = viewport;
    this.#gesture = gesture;
  }

  readonly wheel = (event: WheelEvent): void => {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    const factor = Math.exp(-event.deltaY * lines * (event.ctrlKey ? 0.01 : 0.0016));
    this.#viewport.zoomAt(event.offsetX, event.offsetY, factor);
  };

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
    const actions: Record<string, () => void> = {
      ArrowUp: () => this.#viewport.pan(0, ARROW),
      ArrowDown: () => this.#viewport.pan(0, -ARROW),
      ArrowLeft: () => this.#viewport.pan(ARROW, 0),
      ArrowRight: () => this.#viewport.pan(-ARROW, 0),
      "+": () => this.#viewport.zoom(1.3),
      "=": () => this.#viewport.zoom(1.3),
      "-": () => this.#viewport.zoom(1 / 1.3),
      "0": () => this.#gesture.showAll(),
      Enter: () => this.#gesture.toggleSelected(),
    };
    const action = actions[event.key];
    if (action !== undefined && !event.ctrlKey && !event.metaKey) {
      action();
      event.preventDefault();
    }
  };
}
