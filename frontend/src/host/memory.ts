/** What a reader has chosen once for all of their pages. Where nothing can be kept, in a frame without rights, all is as at the start. */

const PREFIX = "tb_gradflow.";

/** Null where nothing is kept under the name, or nothing can be. */
export function recall(name: string): string | null {
  try {
    return window.localStorage.getItem(PREFIX + name);
  } catch {
    return null;
  }
}

/** Null forgets it. */
export function remember(name: string, value: string | null): void {
  try {
    value === null ? window.localStorage.removeItem(PREFIX + name) : window.localStorage.setItem(PREFIX + name, value);
  } catch {
    // No storage, or it is full: the choice holds for as long as this page does.
  }
}
