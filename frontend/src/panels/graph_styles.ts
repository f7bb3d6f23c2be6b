/** Styles of the parts of the graph's element. */

import {css} from "lit";

export const graphStyles = css`
  :host {
    position: relative;
    display: block;
    overflow: hidden;
    background: var(--gf-canvas);
    touch-action: none;
  }
  .stage {
    position: absolute;
    inset: 0;
    width: 100%;
    height: 100%;
    outline-offset: -3px;
    cursor: grab;
  }
  .stage.pointing {
    cursor: pointer;
  }
  .stage:active {
    cursor: grabbing;
  }
  .tools {
    position: absolute;
    left: 12px;
    top: 12px;
    display: flex;
    gap: 4px;
  }
  .tools button {
    width: 30px;
    height: 30px;
    padding: 0;
    font-size: 15px;
  }
  .tip {
    position: absolute;
    z-index: 2;
    max-width: 340px;
    pointer-events: none;
    border: 1px solid var(--gf-line);
    border-radius: 7px;
    background: var(--gf-page);
    box-shadow: 0 4px 14px rgb(0 0 0 / 14%);
    padding: 6px 10px;
    font-size: 12px;
    overflow-wrap: anywhere;
  }
  .tip div:first-child {
    font-weight: 600;
  }
`;
