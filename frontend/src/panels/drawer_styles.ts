/** Styles of the drawer at the bottom, and its list of changes. */

import {css} from "lit";

export const drawerStyles = css`
  .handles {
    display: flex;
    flex: none;
    align-items: center;
  }
  .handles [role="tablist"] {
    display: flex;
    flex: 0 1 auto;
    min-width: 0;
    overflow-x: auto;
    scrollbar-width: none;
  }
  .handles .count {
    flex: 1 1 0;
    min-width: 3em;
    max-width: max-content;
    overflow: hidden;
    text-overflow: ellipsis;
    white-space: nowrap;
    border-color: transparent;
    padding: 2px 8px;
    background: none;
    color: var(--gf-bad);
    font-size: 12px;
    font-weight: 600;
  }
  .handles .count:hover {
    background: var(--gf-badSoft);
  }
  .handles .count[aria-pressed="true"] {
    border-color: var(--gf-bad);
    background: var(--gf-badSoft);
  }
  .drawer {
    position: relative;
    display: flex;
    flex-direction: column;
    flex: none;
    border-top: 1px solid var(--gf-line);
  }
  .drawer.unfolded {
    height: var(--gf-drawer);
  }
  .drawer .handle,
  .drawer .fold {
    flex: none;
    border: 0;
    border-radius: 0;
    padding: 7px 10px;
  }
  .drawer .handle {
    white-space: nowrap;
    border-bottom: 2px solid transparent;
    font-weight: 600;
    color: var(--gf-muted);
  }
  .drawer .handle[aria-selected="true"] {
    border-color: var(--gf-accent);
    color: var(--gf-text);
  }
  .panel {
    display: contents;
  }
  gf-variables {
    flex: 1;
  }
  .unlisted {
    margin: 8px 14px;
    color: var(--gf-muted);
  }
  .changes {
    flex: 1;
    min-height: 0;
    overflow: auto;
    padding: 2px 14px 12px;
  }
  .changes p {
    margin: 4px 0 10px;
  }
  .changes ul {
    margin: 2px 0 12px;
    padding: 0;
    list-style: none;
  }
  .changes .link {
    border: 0;
    padding: 1px 0;
    background: none;
    text-align: left;
  }
  .changes .link:hover {
    text-decoration: underline;
  }
  .divergence {
    margin-bottom: 14px;
  }
  .divergence h2 {
    margin-bottom: 4px;
  }
  .divergence button {
    margin-right: 6px;
  }
  .divergence table {
    width: 100%;
    max-width: 1100px;
    margin: 2px 0 12px;
    border-collapse: collapse;
    table-layout: fixed;
  }
  .divergence th,
  .divergence td {
    padding: 3px 12px 3px 0;
    border-top: 1px solid var(--gf-line);
    text-align: left;
    vertical-align: top;
    overflow-wrap: anywhere;
  }
  .divergence [scope="row"] {
    font-weight: 400;
    color: var(--gf-muted);
  }
  .divergence thead td {
    width: 28%;
  }
  .divergence h3,
  .divergence [scope="rowgroup"] {
    font-size: 12px;
    font-weight: 600;
    color: var(--gf-muted);
  }
  .divergence h3 {
    margin: 0;
  }
  .divergence pre {
    margin: 2px 0 12px;
    white-space: pre-wrap;
    overflow-wrap: anywhere;
  }
  .tag {
    display: inline-block;
    min-width: 62px;
    margin-right: 6px;
    font-size: 12px;
    font-weight: 600;
  }
  .tag.worse,
  .tag.came,
  .changes .error,
  .problem {
    color: var(--gf-bad);
  }
  .tag.better,
  .tag.gone {
    color: var(--gf-good);
  }
  .tag.new,
  .tag.changed {
    color: var(--gf-accent);
  }
  .changes .warning {
    color: var(--gf-warn);
  }
  .went {
    text-decoration: line-through;
    text-decoration-color: var(--gf-muted);
  }
`;
