/** The export menu: the picture, and the data behind it. */

import {css, html, type TemplateResult} from "lit";
import {linkToShare} from "../host/address.ts";
import {copyText} from "../host/clipboard.ts";
import {download, downloadFrom, fileStem, text} from "../host/download.ts";
import {csvOf} from "../model/csv.ts";
import {rowsOf} from "../model/rows.ts";
import type {Scope} from "./scope.ts";

export const menuStyles = css`
  .menu {
    position: relative;
  }
  .menu summary {
    border-radius: 6px;
    padding: 2px 8px;
    font-size: 16px;
    list-style: none;
    cursor: pointer;
  }
  .menu summary:hover {
    background: var(--gf-raised);
  }
  .menu .entries {
    position: absolute;
    z-index: 9;
    right: 0;
    display: flex;
    flex-direction: column;
    border: 1px solid var(--gf-line);
    border-radius: 8px;
    background: var(--gf-page);
    box-shadow: 0 6px 20px rgb(0 0 0 / 18%);
    padding: 4px;
  }
  .menu .entries button {
    border-color: transparent;
    text-align: left;
    white-space: nowrap;
  }
`;

export function exportMenu(scope: Scope): TemplateResult {
  const entries: readonly (readonly [string, () => void])[] = [
    ["Picture as SVG", () => save(scope, "svg", scope.ask.picture("svg"))],
    ["Picture as PNG", () => save(scope, "png", scope.ask.picture("png"))],
    ["Findings and graph as JSON", () => save(scope, "json", Promise.resolve(json(scope)))],
    ["Variables as CSV", () => save(scope, "csv", Promise.resolve(csv(scope)))],
    ...wholeRun(scope),
    ...link(scope),
  ];
  // A menu that closes when one of its entries was chosen.
  const choose = (event: Event, run: () => void): void => {
    (event.currentTarget as Element).closest("details")?.removeAttribute("open");
    run();
  };
  const leave = (event: FocusEvent): void => {
    const menu = event.currentTarget as Element;
    if (!(event.relatedTarget instanceof Node && menu.contains(event.relatedTarget))) {
      menu.removeAttribute("open");
    }
  };
  const key = (event: KeyboardEvent): void => {
    const menu = event.currentTarget as HTMLDetailsElement;
    if (event.key === "Escape" && menu.open) {
      menu.open = false;
      menu.querySelector("summary")?.focus();
      event.stopPropagation();
    }
  };
  // Browsers that do not focus a clicked button focus its container, which is still inside.
  return html`<details class="menu" @focusout=${leave} @keydown=${key}>
    <summary aria-label="Export" title="Export the picture or the data">⤓</summary>
    <div class="entries" tabindex="-1">${entries.map(([words, run]) => html`<button @click=${(event: Event) => choose(event, run)}>${words}</button>`)}</div>
  </details>`;
}

/** The run with this viewer in one file; not in such a file itself. */
function wholeRun({store}: Scope): readonly (readonly [string, () => void])[] {
  const {overview} = store.state;
  const address = overview === null ? null : store.source.fileOf(overview.run, store.step);
  return address === null ? [] : [["This run as an HTML page", () => downloadFrom(`${fileStem(overview?.name ?? "run", -1)}.html`, address)]];
}

/** Only if the link works for another person. */
function link({store}: Scope): readonly (readonly [string, () => void])[] {
  const address = (): string | null => linkToShare(store.source.isLive, store.step);
  return address() === null ? [] : [["Copy the link", () => void copyText(address() ?? "")]];
}

function save({store}: Scope, ending: string, content: Promise<Blob | null>): void {
  const {overview} = store.state;
  void content.then((blob) => blob !== null && download(`${fileStem(overview?.name ?? "run", store.step)}.${ending}`, blob));
}

function json({store, derived}: Scope): Blob {
  const {overview, trace} = store.state;
  const content = {run: overview?.name, step: store.step, losses: overview?.losses[store.state.at], report: derived.diagnosis, trace};
  return text(JSON.stringify(content, null, 1), "application/json");
}

function csv({derived: {condition, diagnosis}}: Scope): Blob {
  const rows = condition === null ? [] : rowsOf(condition.tree.graph.trace, diagnosis, condition.answers, condition.numbers);
  return text(csvOf(rows), "text/csv");
}
