/** The whole scene as a thumbnail, with the window on it. A click or a drag looks there. */

import {css, html, LitElement, type TemplateResult} from "lit";
import {toWorld, type Rectangle} from "../draw/camera.ts";
import {mapCamera, paintMap} from "../draw/paint.ts";
import type {Palette} from "../draw/palette.ts";
import type {Picture} from "../draw/picture.ts";
import type {Size} from "../layout/sizes.ts";
import type {Viewport} from "./viewport.ts";

/** In less width, in pixels, it would cover what it shows. */
const ROOM = 540;
const MAP = {width: 150, height: 120};

export class Minimap extends LitElement {
  #scene: Size = {width: 1, height: 1};
  #shown: readonly unknown[] = [];

  static override styles = css`
    :host {
      position: absolute;
      bottom: 12px;
      width: ${MAP.width}px;
      height: ${MAP.height}px;
      border: 1px solid var(--gf-line);
      border-radius: 8px;
      background: color-mix(in srgb, var(--gf-page) 88%, transparent);
      cursor: pointer;
      touch-action: none;
    }
    :host([hidden]) {
      display: none;
    }
    canvas {
      display: block;
      width: 100%;
      height: 100%;
    }
  `;

  override render(): TemplateResult {
    return html`<canvas aria-hidden="true" @pointerdown=${this.#press} @pointermove=${this.#drag}></canvas>`;
  }

  /** Draws a picture again if it, or the window on it, is another than before; hides itself where it is of no use. */
  show(picture: Picture | null, scene: Size | null, viewport: Viewport, palette: Palette): void {
    this.hidden = picture === null || scene === null || viewport.room < ROOM || viewport.seesAllOf(scene);
    if (picture !== null && scene !== null && !this.hidden) {
      this.#draw(picture, scene, viewport.window(0), palette);
    }
  }

  #draw(picture: Picture, scene: Size, window: Rectangle, palette: Palette): void {
    const causes = [picture, scene, palette, window.x, window.y, window.width, window.height];
    const canvas = this.renderRoot?.querySelector("canvas");
    if (canvas && causes.some((cause, index) => cause !== this.#shown[index])) {
      this.#shown = causes;
      this.#scene = scene;
      paintMap(canvas, picture, scene, MAP, window, palette);
    }
  }

  readonly #press = (event: PointerEvent): void => {
    (event.target as Element).setPointerCapture(event.pointerId);
    this.#look(event, true);
  };

  readonly #drag = (event: PointerEvent): void => {
    if (event.buttons === 1) {
      this.#look(event, false);
    }
  };

  #look({offsetX, offsetY}: PointerEvent, fly: boolean): void {
    const point = toWorld(mapCamera(this.#scene, MAP), offsetX, offsetY);
    this.dispatchEvent(new CustomEvent("gf-look", {detail: {...point, fly}}));
  }
}

customElements.define("gf-minimap", Minimap);
