/** Styles of the search field and its list. */

import {css} from "lit";

export const searchStyles = css`
  :host {
    position: relative;
    display: block;
    min-width: 0;
  }
  input {
    width: 100%;
  }
  .list {
    position: absolute;
    z-index: 9;
    top: calc(100% + 5px);
    right: 0;
    width: min(420px, 90vw);
    max-height: 60vh;
    overflow: auto;
    border: 1px solid var(--gf-line);
    border-radius: 8px;
    background: var(--gf-page);
    box-shadow: 0 6px 20px rgb(0 0 0 / 18%);
  }
  .count {
    padding: 6px 12px;
    color: var(--gf-muted);
    font-size: 12px;
  }
  ul {
    margin: 0;
    padding: 0 0 4px;
    list-style: none;
  }
  li {
    display: flex;
    flex-direction: column;
    padding: 4px 12px;
    cursor: pointer;
  }
  li[aria-selected="true"],
  li:hover {
    background: var(--gf-accentSoft);
  }
  .label {
    font-weight: 600;
  }
  .label .bad {
    color: var(--gf-bad);
  }
  .label .warn {
    color: var(--gf-warn);
  }
  .label :is(.good, .quiet) {
    color: var(--gf-muted);
  }
  .name {
    color: var(--gf-muted);
    font-size: 12px;
    overflow-wrap: anywhere;
  }
`;
