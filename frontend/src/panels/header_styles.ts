/** How the top lines look. */

import {css} from "lit";

export const headerStyles = css`
  /* In a wide frame in one line: the graph needs the height. */
  .top {
    display: flex;
    flex-wrap: wrap;
    align-items: center;
    border-bottom: 1px solid var(--gf-line);
  }
  .top header {
    flex: 3 1 700px;
  }
  header {
    display: flex;
    align-items: center;
    gap: 14px;
    min-width: 0;
    max-width: 100%;
    box-sizing: border-box;
    padding: 5px 14px 3px;
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
  /* The next to shrink; the name of the run must stay readable. */
  .beside {
    flex-shrink: 4;
    min-width: 120px;
  }
  .loss {
    flex-shrink: 0;
  }
  gf-timeline {
    flex: 1 0 390px;
    padding: 6px 14px 0;
  }
  gf-search {
    /* It shrinks first: the selected names must stay readable. */
    flex: 0 20 240px;
    min-width: 90px;
    margin-left: auto;
  }
  .spacious {
    white-space: nowrap;
  }
  @media (max-width: 1199px) {
    .spacious {
      display: none;
    }
  }
  @media (max-width: 1399px) {
    .wide {
      display: none;
    }
  }
  @media (max-width: 899px) {
    .picker select {
      max-width: 150px;
    }
  }
`;
