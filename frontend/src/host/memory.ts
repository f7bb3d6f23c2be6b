/** Settings that a reader keeps across pages. In a frame without storage the defaults apply. */

const PREFIX = "tb_gradflow.";

/** Null if nothing is stored under the name, or if there is no storage. */
export function recall(name: string): string | null {
  try {
    return window.localStorage.getItem(PREFIX + name);
  } catch {
    return null;
  }
}

/** Null removes it. */
export function remember(name: string, value: string | null): void {
  try {
    value === null ? window.localStorage.removeItem(PREFIX + name) : window.localStorage.setItem(PREFIX + name, value);
  } catch {
    // No storage, or it is full: the setting lasts as long as this page.
  }
}
