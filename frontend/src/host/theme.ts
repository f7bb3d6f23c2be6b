/**
 * Whether TensorBoard uses its dark theme. There is no API for it, but the class of its body shows it, and the frame
 * may read that.
 */

/** Calls back at once and at every change. Returns a function that ends that. */
export function watchTheme(callback: (dark: boolean) => void): () => void {
  try {
    const {body} = window.parent.document;
    if (window.parent !== window) {
      const tell = (): void => callback(body.classList.contains("dark-mode"));
      const observer = new MutationObserver(tell);
      observer.observe(body, {attributes: true, attributeFilter: ["class"]});
      tell();
      return () => observer.disconnect();
    }
  } catch {
    // The surrounding page has a different origin, as in a notebook: ask the system instead.
  }
  const query = window.matchMedia("(prefers-color-scheme: dark)");
  const tell = (): void => callback(query.matches);
  query.addEventListener("change", tell);
  tell();
  return () => query.removeEventListener("change", tell);
}
