/** The whole scene as a thumbnail, with the visible window. A click or a drag moves the view there. */

import {css, html, LitElement, type TemplateResult} from "lit";
import {toWorld, type Rectangle} from "../draw/camera.ts";
import {mapCamera, paintMap, paintWindow} from "../draw/map.ts";
import type {Palette} from "../draw/palette.ts";
import type {Picture} from "../draw/picture.ts";
import type {Size} from "../layout/sizes.ts";
import {ROOM_FOR_MAP} from "./corners.ts";
import type {Viewport} from "./viewport.ts";

const MAP = {width: 150, height: 120};

export class Minimap extends LitElement {
  #scene: Size = {width: 1, height: 1};
  /** The map without the window, and the picture from which it was painted. */
  readonly #map = document.createElement("canvas");
  #painted: readonly unknown[] = [];
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

  /** Draws the map again if the picture or the window has changed; hides it if it is not useful. */
  show(picture: Picture | null, scene: Size | null, viewport: Viewport, palette: Palette): void {
    this.hidden = picture === null || scene === null || viewport.room < ROOM_FOR_MAP || viewport.seesAllOf(scene);
    if (picture !== null && scene !== null && !this.hidden) {
      this.#draw(picture, scene, viewport.window(0), palette);
    }
  }

  #draw(picture: Picture, scene: Size, window: Rectangle, palette: Palette): void {
    const canvas = this.renderRoot?.querySelector("canvas");
    const painted = [picture.steady, scene, palette, devicePixelRatio];
    const shown = [...painted, window.x, window.y, window.width, window.height];
    if (!canvas || isSame(shown, this.#shown)) {
      return;
    }
    if (!isSame(painted, this.#painted)) {
      paintMap(this.#map, picture, scene, MAP, palette);
    }
    [this.#painted, this.#shown, this.#scene] = [painted, shown, scene];
    paintWindow(canvas, this.#map, scene, MAP, window, palette);
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

function isSame(causes: readonly unknown[], before: readonly unknown[]): boolean {
  return causes.length === before.length && causes.every((cause, index) => cause === before[index]);
}

customElements.define("gf-minimap", Minimap);
