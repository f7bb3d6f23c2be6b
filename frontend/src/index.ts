/**
 * The entry point: TensorBoard's frame imports this module and calls `render()`; a saved page with its own data starts
 * itself.
 */

import {EmbeddedSource, type Embedded} from "./api/embedded.ts";
import {HttpSource, type Source} from "./api/source.ts";
import {App} from "./panels/app.ts";
import {Store} from "./state/store.ts";

/** Fills the frame's empty body. Every error is shown there, never swallowed. */
export function render(): void {
  show(() => new HttpSource(document.baseURI));
}

/** `start`: the initial run and step if the address names none. */
function show(source: () => Source, start: Embedded["start"] | null = null): void {
  document.body.style.margin = "0";
  window.addEventListener("error", (event) => paintError(event.error ?? event.message));
  window.addEventListener("unhandledrejection", (event) => paintError(event.reason));
  try {
    const app = new App();
    app.store = new Store(source());
    app.start = start;
    document.body.replaceChildren(app);
  } catch (error) {
    paintError(error);
  }
}

/** Shows a bug of ours as text over the page: it hides nothing and can be reported. */
function paintError(error: unknown): void {
  const harmless = "ResizeObserver loop";
  const words = error instanceof Error ? `${error.message}\n${error.stack ?? ""}` : String(error);
  if (words.startsWith(harmless)) {
    return;
  }
  const box = document.querySelector("pre.gradflow-error") ?? document.createElement("pre");
  box.className = "gradflow-error";
  box.textContent = `Something went wrong in this page. Please report it with these lines:\n${words}`;
  box.setAttribute("role", "alert");
  box.setAttribute(
    "style",
    "position:fixed;inset:auto 12px 12px;margin:0;padding:12px;max-height:40vh;overflow:auto;z-index:9;" +
      "background:#fff4f4;color:#8c1325;border:1px solid #d01f3c;border-radius:8px;white-space:pre-wrap",
  );
  document.body.append(box);
}

const embedded = document.getElementById("gradflow-data")?.textContent ?? null;
if (embedded !== null) {
  const data = JSON.parse(embedded) as Embedded;
  show(() => new EmbeddedSource(data), data.start);
}
