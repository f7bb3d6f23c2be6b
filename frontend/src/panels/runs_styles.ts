/** Styles of the table of all runs. */

import {css} from "lit";

/** In pixels. */
export const ROW_HEIGHT = 30;

export const runsStyles = css`
  :host {
    display: flex;
    flex-direction: column;
    flex: 1;
    min-height: 0;
    border-top: 1px solid var(--gf-line);
  }
  .bar {
    display: flex;
    align-items: center;
    flex-wrap: wrap;
    gap: 8px 12px;
    padding: 8px 14px;
  }
  .bar input[type="search"] {
    width: 270px;
    max-width: 100%;
  }
  .filters {
    display: flex;
    flex-wrap: wrap;
    gap: 5px;
  }
  .filter {
    border-radius: 12px;
    padding: 1px 9px;
    font-size: 12px;
  }
  .filter[aria-pressed="true"] {
    border-color: var(--gf-accent);
    background: var(--gf-accentSoft);
  }
  .out {
    display: flex;
    align-items: center;
    gap: 8px;
    margin-left: auto;
  }
  .compare {
    border-color: var(--gf-accent);
    font-weight: 600;
  }
  .scroller {
    flex: 1;
    min-height: 0;
    overflow: auto;
    border-top: 1px solid var(--gf-line);
  }
  .shared {
    margin: 0;
    border-top: 1px solid var(--gf-line);
    background: var(--gf-warnSoft);
    padding: 6px 14px;
    max-height: 25vh;
    overflow: auto;
    list-style: none;
  }
  [role="table"] {
    position: relative;
    width: min-content;
    min-width: 100%;
  }
  [role="row"] {
    display: grid;
    grid-template-columns: 18px 84px minmax(120px, 2fr) var(--settings,) minmax(230px, 3fr) 76px 76px minmax(140px, 190px);
    align-items: center;
    height: ${ROW_HEIGHT}px;
    padding: 0 14px;
    column-gap: 12px;
  }
  @media (max-width: 1000px) {
    [role="row"] {
      grid-template-columns: 18px 66px minmax(120px, 2fr) var(--settings,) minmax(160px, 3fr) 66px 62px minmax(90px, 150px);
      column-gap: 10px;
    }
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
    overflow: hidden;
    text-align: inherit;
    text-overflow: ellipsis;
    white-space: nowrap;
  }
  [role="columnheader"] {
    min-width: 0;
  }
  .body {
    position: relative;
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
  .body [role="row"][aria-current="true"] {
    background: var(--gf-accentSoft);
  }
  [role="cell"] {
    min-width: 0;
    overflow: hidden;
    text-overflow: ellipsis;
    white-space: nowrap;
  }
  .tick {
    overflow: visible;
    line-height: 0;
  }
  .tick input {
    margin: 0;
  }
  .name {
    font-weight: 600;
  }
  .finding a {
    color: inherit;
  }
  .right {
    text-align: right;
    font-variant-numeric: tabular-nums;
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
  .good {
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
