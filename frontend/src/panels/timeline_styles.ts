/** Styles of the slider and its overlays. */

import {css} from "lit";

export const timelineStyles = css`
  :host {
    display: flex;
    align-items: center;
    gap: 4px;
    min-width: 0;
  }
  .track {
    position: relative;
    flex: 1;
    min-width: 120px;
    height: 42px;
  }
  /* A thumb's middle stays half its width from the ends. */
  svg {
    position: absolute;
    left: 8px;
    top: 11px;
    width: calc(100% - 16px);
    height: 20px;
    overflow: visible;
  }
  polyline {
    fill: none;
    stroke: var(--gf-accent);
    stroke-width: 1.5;
    vector-effect: non-scaling-stroke;
  }
  svg line {
    stroke: var(--gf-nan);
    stroke-width: 2;
    stroke-dasharray: 3 2;
    vector-effect: non-scaling-stroke;
  }
  input {
    position: absolute;
    inset: auto 0 -2px;
    width: 100%;
    height: 16px;
    margin: 0;
    appearance: none;
    background: none;
  }
  input::-webkit-slider-runnable-track {
    height: 4px;
    border-radius: 2px;
    background: var(--gf-line);
  }
  input::-moz-range-track {
    height: 4px;
    border-radius: 2px;
    background: var(--gf-line);
  }
  input::-webkit-slider-thumb {
    appearance: none;
    width: 16px;
    height: 16px;
    margin-top: -6px;
    border: 2px solid var(--gf-page);
    border-radius: 8px;
    background: var(--gf-accent);
  }
  input::-moz-range-thumb {
    width: 12px;
    height: 12px;
    border: 2px solid var(--gf-page);
    border-radius: 8px;
    background: var(--gf-accent);
  }
  input:disabled {
    opacity: 0.5;
  }
  .mark {
    position: absolute;
    z-index: 1;
    top: -3px;
    width: 16px;
    height: 14px;
    margin-left: -8px;
    border: 0;
    background: none !important;
    padding: 0;
    font-size: 12px;
    font-weight: 700;
    line-height: 14px;
  }
  .mark.error {
    color: var(--gf-bad);
  }
  .mark.warning {
    color: var(--gf-warn);
  }
  button.quiet {
    padding: 1px 6px;
  }
  .running {
    padding: 0 6px;
    color: var(--gf-good);
    white-space: nowrap;
  }
  output {
    min-width: 66px;
    padding-left: 6px;
    white-space: nowrap;
  }
  .loss {
    min-width: 88px;
  }
  b {
    font-weight: 600;
  }
`;
