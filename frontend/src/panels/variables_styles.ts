/** Styles of the table of variables. */

import {css} from "lit";

/** In pixels. */
export const ROW_HEIGHT = 26;

export const variablesStyles = css`
  :host {
    display: flex;
    flex-direction: column;
    min-height: 0;
  }
  .bar {
    display: flex;
    align-items: center;
    gap: 12px;
    padding: 0 14px 7px;
  }
  .out {
    margin-left: auto;
  }
  .bar input {
    width: 260px;
    max-width: 50%;
  }
  .scroller {
    flex: 1;
    min-height: 0;
    overflow: auto;
    border-top: 1px solid var(--gf-line);
  }
  [role="table"] {
    position: relative;
    min-width: 1010px;
  }
  [role="row"] {
    display: grid;
    grid-template-columns: minmax(220px, 3fr) 172px repeat(5, minmax(106px, 1fr));
    align-items: center;
    height: ${ROW_HEIGHT}px;
    padding: 0 14px;
    column-gap: 10px;
  }
  .header {
    position: sticky;
    top: 0;
    z-index: 1;
    background: var(--gf-page);
    border-bottom: 1px solid var(--gf-line);
  }
  .header button {
    width: 100%;
    border: 0;
    padding: 0;
    background: none !important;
    color: var(--gf-muted);
    font-size: 12px;
    font-weight: 600;
    text-align: inherit;
    white-space: nowrap;
  }
  .body [role="row"] {
    position: absolute;
    left: 0;
    right: 0;
    cursor: pointer;
  }
  .body [role="row"]:hover {
    background: var(--gf-raised);
  }
  .body [role="row"][aria-selected="true"] {
    background: var(--gf-accentSoft);
  }
  .body [role="cell"] {
    white-space: nowrap;
  }
  .right {
    text-align: right;
    font-variant-numeric: tabular-nums;
  }
  .name {
    overflow: hidden;
    text-overflow: ellipsis;
    white-space: nowrap;
  }
  .icon {
    display: inline-block;
    width: 17px;
    font-weight: 700;
  }
  .bad {
    color: var(--gf-bad);
  }
  .warn {
    color: var(--gf-warn);
  }
  .good .icon {
    color: var(--gf-good);
  }
  .quiet {
    color: var(--gf-muted);
  }
  .empty {
    padding: 18px 14px;
    color: var(--gf-muted);
  }
`;
