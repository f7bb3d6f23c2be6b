/** Styles of the heat map. */

import {css} from "lit";

export const heatStyles = css`
  :host {
    display: flex;
    flex: 1;
    flex-direction: column;
    min-height: 0;
  }
  .bar {
    display: flex;
    flex-wrap: wrap;
    align-items: center;
    gap: 6px 10px;
    padding: 0 14px 6px;
  }
  .bar input {
    width: 150px;
  }
  .legend {
    display: flex;
    flex-wrap: wrap;
    align-items: center;
    gap: 3px 9px;
    color: var(--gf-muted);
    font-size: 11.5px;
  }
  .ramp {
    width: 80px;
    height: 10px;
    border-radius: 2px;
  }
  .look {
    display: flex;
    align-items: center;
    gap: 4px;
  }
  .look i {
    width: 16px;
    height: 12px;
    border: 1px solid var(--gf-line);
  }
  .scroller {
    position: relative;
    flex: 1;
    min-height: 0;
    overflow: hidden auto;
    border-top: 1px solid var(--gf-line);
    outline-offset: -2px !important;
    cursor: crosshair;
  }
  canvas {
    position: sticky;
    top: 0;
    display: block;
  }
  .all {
    float: left;
    width: 0;
  }
  .axis {
    flex: none;
    display: grid;
    height: 15px;
    overflow: hidden;
    color: var(--gf-muted);
    font-size: 11px;
  }
  .axis span {
    position: relative;
    grid-area: 1 / 1;
    width: 0;
    white-space: nowrap;
    display: flex;
    justify-content: center;
  }
  .said {
    flex: none;
    overflow: hidden;
    border-top: 1px solid var(--gf-line);
    padding: 2px 14px;
    color: var(--gf-muted);
    font-size: 12px;
    white-space: nowrap;
    text-overflow: ellipsis;
  }
  .problem {
    color: var(--gf-bad);
  }
`;
