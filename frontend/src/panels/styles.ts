/** Common styles of all panels: fonts, buttons, scrollbars. Colours come from the palette as CSS variables. */

import {css} from "lit";

export const shared = css`
  :host {
    font: 13px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
    color: var(--gf-text);
    box-sizing: border-box;
  }
  *,
  *::before,
  *::after {
    box-sizing: inherit;
  }
  h2 {
    margin: 0;
    font-size: 13px;
    font-weight: 600;
  }
  button,
  select,
  input {
    font: inherit;
    color: inherit;
  }
  button {
    cursor: pointer;
    border: 1px solid var(--gf-line);
    border-radius: 6px;
    background: var(--gf-page);
    padding: 3px 9px;
  }
  button:hover:not(:disabled) {
    background: var(--gf-raised);
    border-color: var(--gf-nodeLine);
  }
  button:disabled {
    opacity: 0.45;
    cursor: default;
  }
  button.quiet {
    border-color: transparent;
    background: transparent;
  }
  button.quiet:hover:not(:disabled) {
    background: var(--gf-raised);
  }
  :is(button, select, input, [tabindex]):focus-visible {
    outline: 2px solid var(--gf-accent);
    outline-offset: 1px;
  }
  select,
  input[type="search"] {
    border: 1px solid var(--gf-line);
    border-radius: 6px;
    background: var(--gf-page);
    padding: 3px 8px;
  }
  code,
  .code {
    font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
    font-size: 12px;
  }
  .muted {
    color: var(--gf-muted);
  }
  .number {
    font-variant-numeric: tabular-nums;
  }
  .hidden {
    position: absolute;
    width: 1px;
    height: 1px;
    margin: -1px;
    overflow: hidden;
    clip-path: inset(50%);
    white-space: nowrap;
  }
`;
