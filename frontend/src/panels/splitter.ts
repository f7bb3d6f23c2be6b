/** The upper edge of the drawer: it is drawn up and down with the pointer, or with the arrow keys. */

import {css, html, LitElement, type TemplateResult} from "lit";

const LEAST = 130;
/** Pixels that the graph keeps. */
const LEFT_OVER = 160;
const STEP = 40;

export class Splitter extends LitElement {
  static override styles = css`
    div {
      height: 7px;
      margin-top: -4px;
      position: relative;
      z-index: 2;
      cursor: row-resize;
      touch-action: none;
    }
    div:hover,
    div:focus-visible {
      background: color-mix(in srgb, var(--gf-accent) 40%, transparent);
      outline: none;
    }
  `;

  override render(): TemplateResult {
    return html`<div role="separator" tabindex="0" aria-orientation="horizontal" aria-label="Height of the drawer" @pointerdown=${this.#press} @pointermove=${this.#drag} @keydown=${this.#key}></div>`;
  }

  readonly #press = (event: PointerEvent): void => {
    (event.target as Element).setPointerCapture(event.pointerId);
    event.preventDefault();
  };

  readonly #drag = (event: PointerEvent): void => {
    if (event.buttons === 1) {
      this.#resize((this.parentElement?.getBoundingClientRect().bottom ?? 0) - event.clientY);
    }
  };

  readonly #key = (event: KeyboardEvent): void => {
    const change = {ArrowUp: STEP, ArrowDown: -STEP}[event.key];
    if (change !== undefined) {
      this.#resize((this.parentElement?.clientHeight ?? 0) + change);
      event.preventDefault();
    }
  };

  #resize(height: number): void {
    const room = (this.parentElement?.parentElement?.clientHeight ?? 0) - LEFT_OVER;
    this.parentElement?.style.setProperty("--gf-drawer", `${Math.max(LEAST, Math.min(room, height))}px`);
  }
}

customElements.define("gf-splitter", Splitter);
