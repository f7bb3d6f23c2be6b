/** The edge of a pane, which can be moved with the pointer or with the arrow keys. */

import {css, html, LitElement, type TemplateResult} from "lit";
import type {Limits} from "../state/panes.ts";

const STEP = 40;

/** The side of its pane. */
export type Edge = "top" | "left" | "right";

export class Splitter extends LitElement {
  static override properties = {
    edge: {reflect: true},
    label: {},
    size: {attribute: false},
    limits: {attribute: false},
  };
  declare edge: Edge;
  declare label: string;
  declare size: number;
  declare limits: Limits;

  static override styles = css`
    div {
      position: absolute;
      z-index: 4;
      touch-action: none;
    }
    :host([edge="top"]) div {
      top: -4px;
      left: 0;
      right: 0;
      height: 7px;
      cursor: row-resize;
    }
    :host(:not([edge="top"])) div {
      top: 0;
      bottom: 0;
      width: 7px;
      cursor: col-resize;
    }
    :host([edge="left"]) div {
      left: -4px;
    }
    :host([edge="right"]) div {
      right: -4px;
    }
    div:hover,
    div:focus-visible {
      background: color-mix(in srgb, var(--gf-accent) 40%, transparent);
      outline: none;
    }
  `;

  constructor() {
    super();
    [this.edge, this.label, this.size, this.limits] = ["top", "", 0, {least: 0, most: 0}];
  }

  override render(): TemplateResult {
    const orientation = this.edge === "top" ? "horizontal" : "vertical";
    return html`<div
      role="separator"
      tabindex="0"
      aria-orientation=${orientation}
      aria-label=${this.label}
      aria-valuenow=${Math.round(this.size)}
      aria-valuemin=${this.limits.least}
      aria-valuemax=${Math.round(this.limits.most)}
      title="Drag, or press the arrow keys; double-click to reset"
      @pointerdown=${this.#press}
      @pointermove=${this.#drag}
      @keydown=${this.#key}
      @dblclick=${() => this.#tell(null)}
    ></div>`;
  }

  readonly #press = (event: PointerEvent): void => {
    (event.target as HTMLElement).setPointerCapture(event.pointerId);
    (event.target as HTMLElement).focus();
    event.preventDefault();
  };

  readonly #drag = (event: PointerEvent): void => {
    const pane = this.parentElement?.getBoundingClientRect();
    if (event.buttons === 1 && pane !== undefined) {
      this.#tell({top: pane.bottom - event.clientY, left: pane.right - event.clientX, right: event.clientX - pane.left}[this.edge]);
    }
  };

  /** An arrow key moves the edge in its direction. */
  readonly #key = (event: KeyboardEvent): void => {
    const {least, most} = this.limits;
    const outwards = {top: "ArrowUp", left: "ArrowLeft", right: "ArrowRight"}[this.edge];
    const inwards = {top: "ArrowDown", left: "ArrowRight", right: "ArrowLeft"}[this.edge];
    const goal = {[outwards]: this.size + STEP, [inwards]: this.size - STEP, Home: least, End: most}[event.key];
    if (goal !== undefined) {
      this.#tell(goal);
      event.preventDefault();
    }
  };

  /** Null for the default size. */
  #tell(size: number | null): void {
    const {least, most} = this.limits;
    this.dispatchEvent(new CustomEvent<number | null>("gf-resize", {detail: size === null ? null : Math.max(least, Math.min(most, size))}));
  }
}

customElements.define("gf-splitter", Splitter);
