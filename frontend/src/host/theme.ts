/** Whether TensorBoard is dark. It tells nobody, but its body's class says so, and the frame may look there. */

/** Calls back at once and at every change. Returns what ends that. */
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
    // A page of another origin around us, a notebook for example: ask the system instead.
  }
  const query = window.matchMedia("(prefers-color-scheme: dark)");
  const tell = (): void => callback(query.matches);
  query.addEventListener("change", tell);
  tell();
  return () => query.removeEventListener("change", tell);
}
