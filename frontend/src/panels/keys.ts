/** The keys that work everywhere on the page, and the list of all keys. */

import {css, html, type TemplateResult} from "lit";
import {howToRead} from "./hint.ts";
import {ref} from "lit/directives/ref.js";

export const keysStyles = css`
  .keys {
    position: fixed;
    z-index: 10;
    inset: 0;
    margin: auto;
    width: fit-content;
    height: fit-content;
    max-height: 90vh;
    overflow: auto;
    border: 1px solid var(--gf-line);
    border-radius: 10px;
    background: var(--gf-page);
    color: var(--gf-text);
    box-shadow: 0 8px 40px rgb(0 0 0 / 30%);
    padding: 16px 22px;
  }
  .keys p {
    max-width: 52ch;
    margin: 0 0 14px;
  }
  .keys dl {
    display: grid;
    grid-template-columns: auto auto;
    gap: 3px 16px;
    margin: 6px 0 14px;
  }
  .keys dd {
    margin: 0;
  }
  kbd {
    border: 1px solid var(--gf-line);
    border-radius: 4px;
    background: var(--gf-raised);
    padding: 0 5px;
    font: inherit;
    font-size: 12px;
  }
`;

export interface Shortcut {
  /** As in `KeyboardEvent.key`. */
  readonly key: string;
  readonly words: string;
  readonly run: () => void;
}

/** The graph's own keys, while it has the focus. */
const GRAPH: readonly (readonly [string, string])[] = [
  ["← ↑ → ↓", "select the next item in that direction"],
  ["Enter", "open or close the selected group"],
  ["W A S D, Shift + arrow", "move the view"],
  ["+ − 0", "zoom in, zoom out, show all"],
  ["Wheel, pinch; two fingers", "zoom; move the view"],
];

/** Runs the action of a key, unless it is meant for a field or for the browser. */
export function press(event: KeyboardEvent, shortcuts: readonly Shortcut[]): void {
  const target = event.composedPath()[0];
  const typing = target instanceof HTMLInputElement && target.type === "search";
  // Typing in a list selects entries by their first letters.
  const choosing = target instanceof HTMLSelectElement && event.key !== "Escape";
  const pressing = event.key === " " && (target instanceof HTMLButtonElement || (target instanceof HTMLElement && target.tagName === "SUMMARY"));
  const reading = event.composedPath().some((each) => each instanceof HTMLDialogElement);
  if (typing || choosing || pressing || reading || event.ctrlKey || event.metaKey || event.altKey) {
    return;
  }
  const shortcut = shortcuts.find(({key}) => key === event.key);
  if (shortcut !== undefined) {
    event.preventDefault();
    shortcut.run();
  }
}

/** It gets the focus, and returns it when it is closed. It is in the page only after it was opened. */
function asModal(dialog: Element | undefined): void {
  queueMicrotask(() => dialog?.isConnected === true && (dialog as HTMLDialogElement).showModal());
}

export function keysDialog(shortcuts: readonly Shortcut[], close: () => void): TemplateResult {
  const named = (key: string): string => (key === " " ? "Space" : key);
  const everywhere = shortcuts.filter(({words}) => words !== "").map(({key, words}) => [named(key), words] as const);
  const row = ([key, words]: readonly [string, string]): TemplateResult => html`<dt><kbd>${key}</kbd></dt><dd>${words}</dd>`;
  const end = (event: Event): void => (event.currentTarget as Element).closest("dialog")?.close();
  return html`<dialog aria-label="Keys" class="keys" ${ref(asModal)} @click=${end} @close=${close}>
    <p>${howToRead()}</p>
    <h2>Keys</h2>
    <dl>${everywhere.map(row)}</dl>
    <h2>In the graph</h2>
    <dl>${GRAPH.map(row)}</dl>
    <button autofocus>Close</button>
  </dialog>`;
}
