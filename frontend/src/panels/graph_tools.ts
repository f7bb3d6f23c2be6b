/** The buttons over the graph. */

import {html, type TemplateResult} from "lit";

const STEP = 1.3;

export interface Tools {
  zoom(factor: number): void;
  showAll(): void;
  openAll(): void;
  closeAll(): void;
}

export function graphTools({zoom, showAll, openAll, closeAll}: Tools): TemplateResult {
  return html`<div class="tools">
    <button title="Zoom in (+)" aria-label="Zoom in" @click=${() => zoom(STEP)}>+</button>
    <button title="Zoom out (−)" aria-label="Zoom out" @click=${() => zoom(1 / STEP)}>−</button>
    <button title="Show all (0)" aria-label="Show all" @click=${showAll}>⤢</button>
    <button title="Open all groups" aria-label="Open all groups" @click=${openAll}>⊞</button>
    <button title="Close all groups" aria-label="Close all groups" @click=${closeAll}>⊟</button>
  </div>`;
}
