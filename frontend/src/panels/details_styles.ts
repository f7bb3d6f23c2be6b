/** Styles of the details panel. */

import {css} from "lit";

export const detailsStyles = css`
  :host {
    display: block;
    padding: 14px 16px 24px;
  }
  header {
    display: flex;
    align-items: start;
    gap: 8px;
  }
  header div {
    flex: 1;
    min-width: 0;
  }
  .kind {
    color: var(--gf-muted);
    font-size: 12px;
  }
  .title {
    font-size: 16px;
    font-weight: 600;
    overflow-wrap: anywhere;
  }
  .name {
    color: var(--gf-muted);
    font-size: 12px;
    overflow-wrap: anywhere;
  }
  h2 {
    margin: 20px 0 6px;
    font-size: 12px;
    color: var(--gf-muted);
  }
  dl {
    display: grid;
    grid-template-columns: auto 1fr;
    gap: 3px 14px;
    margin: 0;
  }
  dt {
    color: var(--gf-muted);
  }
  dd {
    margin: 0;
    text-align: right;
    overflow-wrap: anywhere;
    font-variant-numeric: tabular-nums;
  }
  .status {
    display: inline-block;
    margin-top: 8px;
    border-radius: 10px;
    background: var(--gf-raised);
    padding: 1px 10px;
    font-weight: 600;
    font-size: 12px;
  }
  .bad {
    color: var(--gf-bad);
    background: var(--gf-badSoft);
  }
  .warn {
    color: var(--gf-warn);
    background: var(--gf-warnSoft);
  }
  .good {
    color: var(--gf-good);
  }
  .code {
    border-radius: 6px;
    background: var(--gf-raised);
    padding: 7px 10px;
  }
  .where {
    color: var(--gf-muted);
    font-size: 12px;
    margin-bottom: 3px;
    overflow-wrap: anywhere;
  }
  ul {
    margin: 0;
    padding: 0;
    list-style: none;
  }
  li {
    padding: 3px 0;
  }
  li .words {
    color: var(--gf-muted);
    font-size: 12px;
  }
  li.blocked .words {
    color: var(--gf-bad);
  }
  .link {
    border: 0;
    padding: 0;
    background: none;
    color: var(--gf-accent);
    text-align: left;
    overflow-wrap: anywhere;
  }
  .link:hover {
    text-decoration: underline;
    background: none !important;
  }
  gf-chart {
    margin: 0 -6px;
  }
  .problem {
    color: var(--gf-bad);
  }
`;
