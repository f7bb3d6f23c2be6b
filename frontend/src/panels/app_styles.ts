/** Styles of the page's frame. */

import {css} from "lit";

export const appStyles = css`
  :host {
    display: flex;
    flex-direction: column;
    height: 100vh;
    min-height: 360px;
    background: var(--gf-page);
    overflow: hidden;
  }
  header {
    display: flex;
    align-items: center;
    gap: 14px;
    padding: 7px 14px 3px;
  }
  footer {
    border-top: 1px solid var(--gf-line);
    padding: 2px 14px;
    font-size: 12px;
  }
  .last {
    margin-left: auto;
  }
  .all {
    flex: none;
    white-space: nowrap;
  }
  .all[aria-pressed="true"] {
    border-color: var(--gf-accent);
    background: var(--gf-accentSoft);
  }
  .all .bad,
  .all .warn {
    margin-left: 5px;
    font-weight: 600;
  }
  .all .bad {
    color: var(--gf-bad);
  }
  .all .warn {
    color: var(--gf-warn);
  }
  .picker {
    display: flex;
    align-items: center;
    gap: 7px;
    min-width: 0;
  }
  .picker > span {
    white-space: nowrap;
  }
  .picker select {
    min-width: 0;
    max-width: 240px;
    text-overflow: ellipsis;
  }
  /* What gives way next; what the numbers are of is to be read whole. */
  .beside {
    flex-shrink: 4;
  }
  .loss {
    flex-shrink: 0;
  }
  gf-timeline {
    border-bottom: 1px solid var(--gf-line);
    padding: 4px 14px 2px;
  }
  gf-search {
    /* It gives way first: what is chosen is to be read. */
    flex: 0 20 240px;
    min-width: 90px;
    margin-left: auto;
  }
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
  .keys {
    position: fixed;
    z-index: 10;
    inset: 0;
    margin: auto;
    width: fit-content;
    height: fit-content;
    max-height: 90vh;
    overflow: auto;
    border: 1px solid var(--gf-line);
    border-radius: 10px;
    background: var(--gf-page);
    color: var(--gf-text);
    box-shadow: 0 8px 40px rgb(0 0 0 / 30%);
    padding: 16px 22px;
  }
  .keys p {
    max-width: 52ch;
    margin: 0 0 14px;
  }
  .keys dl {
    display: grid;
    grid-template-columns: auto auto;
    gap: 3px 16px;
    margin: 6px 0 14px;
  }
  .keys dd {
    margin: 0;
  }
  kbd {
    border: 1px solid var(--gf-line);
    border-radius: 4px;
    background: var(--gf-raised);
    padding: 0 5px;
    font: inherit;
    font-size: 12px;
  }
  .summary {
    display: flex;
    align-items: center;
    gap: 10px;
    padding: 8px 16px;
    border-bottom: 1px solid var(--gf-line);
  }
  .summary .icon {
    font-size: 16px;
    font-weight: 700;
  }
  .summary .sentence {
    flex: 1;
    min-width: 0;
    font-weight: 600;
  }
  .summary.error {
    background: var(--gf-badSoft);
  }
  .summary.error .icon {
    color: var(--gf-bad);
  }
  .summary.warning {
    background: var(--gf-warnSoft);
  }
  .summary.warning .icon {
    color: var(--gf-warn);
  }
  .summary.healthy .icon {
    color: var(--gf-good);
  }
  .go {
    flex: none;
  }
  .problems {
    padding: 8px 16px;
    background: var(--gf-badSoft);
    color: var(--gf-bad);
    border-bottom: 1px solid var(--gf-line);
    overflow-wrap: anywhere;
  }
  .columns {
    position: relative;
    display: flex;
    flex: 1;
    min-height: 0;
  }
  aside {
    flex: none;
    background: var(--gf-page);
  }
  .scroller {
    height: 100%;
    overflow: auto;
  }
  .side {
    position: relative;
    width: var(--gf-side);
    border-right: 1px solid var(--gf-line);
    background: var(--gf-raised);
  }
  .details {
    position: absolute;
    z-index: 1;
    top: 0;
    right: 0;
    bottom: 0;
    width: var(--gf-details);
    max-width: 100%;
    border-left: 1px solid var(--gf-line);
  }
  main {
    display: flex;
    flex-direction: column;
    flex: 1;
    min-width: 0;
  }
  .stage {
    position: relative;
    flex: 1;
    min-height: 0;
  }
  gf-graph {
    position: absolute;
    inset: 0;
  }
  .skeleton {
    display: flex;
    flex-direction: column;
    gap: 10px;
    padding: 12px 14px;
  }
  .skeleton i {
    height: 20px;
    border-radius: 6px;
    background: var(--gf-raised);
    animation: breathe 1.2s ease-in-out infinite alternate;
  }
  .skeleton.boxes {
    align-items: center;
  }
  .skeleton.boxes i {
    width: 140px;
    height: 40px;
  }
  @keyframes breathe {
    to {
      opacity: 0.4;
    }
  }
  @media (prefers-reduced-motion: reduce) {
    .skeleton i {
      animation: none;
    }
  }
  .progress {
    position: absolute;
    inset: 0;
    display: flex;
    flex-direction: column;
    align-items: center;
    justify-content: center;
    gap: 8px;
    color: var(--gf-muted);
    pointer-events: none;
  }
  progress {
    width: 180px;
    height: 5px;
    accent-color: var(--gf-accent);
  }
  .nothing {
    position: absolute;
    top: 40%;
    left: 60px;
    right: 60px;
    text-align: center;
    color: var(--gf-muted);
    pointer-events: none;
  }
  .waiting,
  .empty {
    align-items: center;
    justify-content: center;
    padding: 24px;
    color: var(--gf-muted);
  }
  .empty {
    text-align: center;
    color: var(--gf-text);
  }
  .empty h1 {
    margin: 0 0 6px;
    font-size: 19px;
    font-weight: 600;
  }
  .empty p {
    margin: 8px 0;
  }
  .empty pre {
    margin: 8px 0;
    max-width: 100%;
    overflow: auto;
    border: 1px solid var(--gf-line);
    border-radius: 8px;
    background: var(--gf-raised);
    padding: 14px 18px;
    text-align: left;
  }
  .spacious {
    white-space: nowrap;
  }
  @media (max-width: 1199px) {
    .spacious {
      display: none;
    }
  }
  @media (max-width: 899px) {
    .wide {
      display: none;
    }
    .picker select {
      max-width: 150px;
    }
    .side {
      position: absolute;
      left: 0;
      top: 0;
      bottom: 0;
      z-index: 3;
      box-shadow: 6px 0 18px rgb(0 0 0 / 12%);
    }
  }
`;
