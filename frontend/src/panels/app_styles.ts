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
  footer {
    border-top: 1px solid var(--gf-line);
    padding: 2px 14px;
    font-size: 12px;
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
  main {
    display: flex;
    flex-direction: column;
    flex: 1;
    min-width: 0;
  }
  main,
  gf-findings {
    transition: opacity 150ms;
  }
  main[aria-busy="true"],
  [aria-busy="true"] gf-findings {
    opacity: 0.5;
    transition: opacity 150ms 400ms;
  }
  @media (max-width: 899px) {
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
