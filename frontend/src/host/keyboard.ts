/** Key presses in our frame, and those that TensorBoard receives before anyone has clicked into it. */

import {isShown} from "./shown.ts";

/**
 * `isServed`: whether the surrounding page is TensorBoard; any other page keeps its keys. Returns a function that ends
 * that.
 */
export function watchKeys(callback: (event: KeyboardEvent) => void, isServed: boolean): () => void {
  window.addEventListener("keydown", callback);
  const end = (): void => window.removeEventListener("keydown", callback);
  if (!isServed || window.parent === window) {
    return end;
  }
  try {
    const around = window.parent;
    const tell = (event: KeyboardEvent): void => {
      // Nothing there has the focus, so nothing there expects keys.
      if (event.target === around.document.body && isShown()) {
        callback(event);
      }
    };
    around.addEventListener("keydown", tell);
    const endAround = (): void => around.removeEventListener("keydown", tell);
    // The listener is on a page that outlives this frame.
    window.addEventListener("pagehide", endAround, {once: true});
    return () => {
      end();
      endAround();
    };
  } catch {
    return end;
  }
}
