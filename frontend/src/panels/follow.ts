/** The path of the chosen finding as a list, to follow op by op from the variable to the loss. */

import {css, html, nothing, type TemplateResult} from "lit";
import {fileName} from "../model/format.ts";
import {nextStop, type Stop} from "../model/stops.ts";
import {block, line} from "./code.ts";

/** `selected`: the item that is shown in the graph. */
export function follow(stops: readonly Stop[], selected: number, go: (node: number) => void): TemplateResult | typeof nothing {
  if (stops.length < 2) {
    return nothing;
  }
  const at = stops.findIndex(({node}) => node === selected);
  const step = (by: 1 | -1): void => {
    const next = nextStop(stops, selected, by);
    if (next !== null) {
      go(next.node);
    }
  };
  const key = (event: KeyboardEvent): void => {
    const by = ({ArrowUp: -1, ArrowLeft: -1, ArrowDown: 1, ArrowRight: 1} as const)[event.key];
    if (by !== undefined) {
      event.preventDefault();
      step(by);
    }
  };
  return html`<section class="follow" aria-label="The path, op by op" @keydown=${key} @click=${(event: Event) => event.stopPropagation()}>
    <div class="bar">
      <span class="title">The path, variable to loss</span>
      <button class="quiet" title="Towards the variable (,)" aria-label="Previous op on the path" ?disabled=${at === 0} @click=${() => step(-1)}>▴</button>
      <span class="muted number">${at < 0 ? `${stops.length} steps` : `${at + 1} of ${stops.length}`}</span>
      <button class="quiet" title="Towards the loss (.)" aria-label="Next op on the path" ?disabled=${at === stops.length - 1} @click=${() => step(1)}>▾</button>
    </div>
    <ol>
      ${stops.map(
        (stop, index) => html`<li>
          <button aria-current=${index === at ? "step" : "false"} tabindex=${index === Math.max(0, at) ? 0 : -1} title=${stop.words} @click=${() => go(stop.node)}>
            <span class="name ${stop.kind}">${stop.name}${stop.isCulprit ? html` <span class="cut" title="The cause">⊘</span>` : nothing}</span>
            <span class="gradient ${stop.tone}">${stop.gradient}</span>
          </button>
        </li>`,
      )}
    </ol>
    ${at < 0 ? nothing : lineOf(stops[at])}
  </section>`;
}

function lineOf({source, words}: Stop): TemplateResult {
  return html`<div class="line" role="note" aria-live="polite">
    <span class="where" title=${source?.file ?? ""}>${words === "" ? nothing : `${words} · `}${source === null ? "not from a line of your code" : `${fileName(source.file)}:${source.line}`}</span>
    ${source === null || source.code === "" ? nothing : block([line(source.code)])}
  </div>`;
}

export const followStyles = css`
  .follow {
    margin-top: 10px;
    cursor: default;
  }
  .follow .bar {
    display: flex;
    align-items: center;
    gap: 2px;
  }
  .follow .title {
    flex: 1;
    color: var(--gf-muted);
    font-size: 12px;
    font-weight: 600;
  }
  .follow .bar .number {
    font-size: 12px;
  }
  .follow .bar button {
    padding: 1px 6px;
  }
  .follow ol {
    margin: 4px 0 0;
    padding: 0;
    max-height: 168px;
    overflow-y: auto;
    scrollbar-width: thin;
    border: 1px solid var(--gf-line);
    border-radius: 6px;
    list-style: none;
  }
  .follow li button {
    display: flex;
    gap: 8px;
    width: 100%;
    border: 0;
    border-radius: 0;
    background: none;
    padding: 2px 9px;
    font-size: 12px;
    text-align: left;
  }
  .follow li button:focus-visible {
    outline-offset: -2px;
  }
  .follow li button[aria-current="step"] {
    background: var(--gf-accentSoft);
  }
  .follow .name {
    flex: 1;
    min-width: 0;
    overflow: hidden;
    text-overflow: ellipsis;
    white-space: nowrap;
  }
  .follow .name:is(.variable, .loss) {
    font-weight: 600;
  }
  .follow .cut,
  .follow .bad {
    color: var(--gf-bad);
  }
  .follow .quiet {
    color: var(--gf-muted);
  }
  .follow .gradient {
    font-variant-numeric: tabular-nums;
  }
  .follow .line {
    margin-top: 5px;
  }
`;
