/** Styles of the cards of findings. */

import {css} from "lit";

export const findingsStyles = css`
  :host([hidden]) {
    display: none;
  }
  :host {
    display: block;
    padding: 4px 14px 20px;
  }
  h2 {
    margin: 14px 2px 8px;
    color: var(--gf-muted);
    font-size: 12px;
  }
  article {
    position: relative;
    border: 1px solid var(--gf-line);
    border-left: 3px solid var(--tone);
    border-radius: 8px;
    background: var(--gf-page);
    padding: 10px 12px 11px;
    margin-bottom: 10px;
    cursor: pointer;
  }
  article:hover {
    border-color: var(--gf-nodeLine);
    border-left-color: var(--tone);
  }
  article[aria-current="true"] {
    border-color: var(--gf-accent);
    border-left-color: var(--tone);
    box-shadow: 0 0 0 1px var(--gf-accent);
  }
  .error {
    --tone: var(--gf-bad);
  }
  .warning {
    --tone: var(--gf-warn);
  }
  .info {
    --tone: var(--gf-none);
  }
  .head {
    display: flex;
    align-items: baseline;
    gap: 7px;
    width: 100%;
    border: 0;
    padding: 0;
    background: none !important;
    text-align: left;
    font-weight: 600;
    line-height: 1.4;
  }
  .icon {
    color: var(--tone);
    font-weight: 700;
    flex: none;
  }
  .what {
    overflow-wrap: anywhere;
  }
  p {
    margin: 6px 0 0;
    overflow-wrap: anywhere;
  }
  .line {
    margin-top: 9px;
    border-radius: 6px;
    background: var(--gf-raised);
    padding: 6px 9px;
  }
  .line .where {
    display: block;
    color: var(--gf-muted);
    font-size: 11.5px;
  }
  .line :is(.main, .beside) {
    display: block;
  }
  .line .beside {
    color: var(--gf-muted);
  }
  .line span.gap {
    display: block;
    color: var(--gf-muted);
    line-height: 1;
  }
  .line i {
    margin-right: 8px;
    color: var(--gf-muted);
    font-style: normal;
    user-select: none;
  }
  .diff {
    grid-column: 1 / -1;
    min-width: 0;
    border: 1px solid var(--gf-line);
    border-radius: 6px;
    overflow: hidden;
  }
  .diff .where {
    display: block;
    border-bottom: 1px solid var(--gf-line);
    background: var(--gf-raised);
    padding: 3px 9px;
    color: var(--gf-muted);
    font-size: 11.5px;
  }
  .evidence {
    margin-top: 9px;
  }
  .evidence .title {
    color: var(--gf-muted);
    font-size: 12px;
    font-weight: 600;
  }
  .evidence p {
    border-left: 2px solid var(--gf-line);
    margin: 4px 0 0;
    padding-left: 9px;
    overflow-wrap: break-word;
  }
  .fix {
    display: grid;
    grid-template-columns: minmax(0, 1fr) auto;
    align-items: start;
    gap: 4px 6px;
    margin-top: 9px;
  }
  .fix .title {
    color: var(--gf-good);
    font-size: 12px;
    font-weight: 600;
    align-self: center;
  }
  .fix .text {
    grid-column: 1 / -1;
    border-left: 2px solid var(--gf-good);
    padding-left: 9px;
    min-width: 0;
    overflow-wrap: break-word;
  }
  .fix .text code:not(.block) {
    border-radius: 4px;
    background: var(--gf-raised);
    padding: 1px 4px;
  }
  .fix .text .block {
    border-radius: 6px;
    background: var(--gf-raised);
    margin: 4px 0;
    padding: 5px 8px;
  }
  .fix .tried {
    grid-column: 1 / -1;
    margin: 2px 0 0;
    min-width: 0;
    overflow-wrap: break-word;
  }
  .alternatives {
    margin-top: 9px;
  }
  .fix button {
    font-size: 11.5px;
    padding: 1px 7px;
  }
  .cause a {
    color: inherit;
  }
  .foot {
    display: flex;
    flex-wrap: wrap;
    justify-content: space-between;
    gap: 1px 10px;
    margin-top: 1px;
    font-size: 11.5px;
  }
  .series {
    color: var(--gf-accent);
    white-space: nowrap;
  }
  .about {
    margin-top: 9px;
    color: var(--gf-muted);
    font-size: 12px;
    overflow-wrap: anywhere;
  }
  details > summary {
    cursor: pointer;
    margin: 14px 2px 8px;
    color: var(--gf-muted);
    font-size: 12px;
    font-weight: 600;
  }
  ul {
    margin: 4px 0 0;
    padding-left: 18px;
    color: var(--gf-muted);
    font-size: 12px;
  }
  .healthy {
    margin-top: 14px;
    color: var(--gf-muted);
  }
`;
