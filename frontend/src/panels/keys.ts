/** The keys that work everywhere in the page, and the list of all keys. */

import {html, type TemplateResult} from "lit";

export interface Shortcut {
  /** As `KeyboardEvent.key` has it. */
  readonly key: string;
  readonly words: string;
  readonly run: () => void;
}

/** Those of the graph, while it has the focus. */
const GRAPH: readonly (readonly [string, string])[] = [
  ["← ↑ → ↓", "select what is next in that direction"],
  ["Enter", "open the selected group, or close it"],
  ["W A S D, Shift + arrow", "move the picture"],
  ["+ − 0", "zoom in, zoom out, show all"],
  ["Wheel, pinch; two fingers", "zoom; move the picture"],
];

/** Runs what a key stands for, unless it is meant for a field or for the browser. */
export function press(event: KeyboardEvent, shortcuts: readonly Shortcut[]): void {
  const target = event.composedPath()[0];
  const typing = target instanceof HTMLInputElement && target.type === "search";
  const pressing = event.key === " " && (target instanceof HTMLButtonElement || target instanceof HTMLSelectElement);
  if (typing || pressing || event.ctrlKey || event.metaKey || event.altKey) {
    return;
  }
  const shortcut = shortcuts.find(({key}) => key === event.key);
  if (shortcut !== undefined) {
    event.preventDefault();
    shortcut.run();
  }
}

export function keysDialog(shortcuts: readonly Shortcut[], close: () => void): TemplateResult {
  const named = (key: string): string => (key === " " ? "Space" : key);
  const everywhere = shortcuts.filter(({words}) => words !== "").map(({key, words}) => [named(key), words] as const);
  const row = ([key, words]: readonly [string, string]): TemplateResult => html`<dt><kbd>${key}</kbd></dt><dd>${words}</dd>`;
  return html`<dialog open aria-label="Keys" class="keys" @click=${close}>
    <h2>Keys</h2>
    <dl>${everywhere.map(row)}</dl>
    <h2>In the graph</h2>
    <dl>${GRAPH.map(row)}</dl>
    <button autofocus @click=${close}>Close</button>
  </dialog>`;
}
