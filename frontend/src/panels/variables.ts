/** The table of variables. Only rows in view are in the page: models have tens of thousands. */

import {css, html, LitElement, nothing, type PropertyValues, type TemplateResult} from "lit";
import {formatCount, formatNumber, plural} from "../model/format.ts";
import {filtered, sorted, type Column, type Row, type Sorting} from "../model/rows.ts";
import {STATUS} from "../model/words.ts";
import {shared} from "./styles.ts";

const ROW_HEIGHT = 26;
/** Rows above and below the view that are there too. */
const SPARE = 6;

const COLUMNS: readonly {readonly column: Column; readonly title: string; readonly hint: string}[] = [
  {column: "name", title: "Variable", hint: "Name of the variable"},
  {column: "status", title: "Status", hint: "What the training step gave it"},
  {column: "norm", title: "Gradient norm", hint: "L2 norm of the gradient"},
  {column: "maxAbs", title: "Max |g|", hint: "Largest element of the gradient"},
  {column: "weight", title: "Weight norm", hint: "L2 norm of the value after the step"},
  {column: "update", title: "Update norm", hint: "L2 norm of what the step changed"},
  {column: "ratio", title: "Update / weight", hint: "Update norm over weight norm; about 0.001 is usual"},
];

export class VariablesPanel extends LitElement {
  static override properties = {
    rows: {attribute: false},
    selected: {attribute: false},
    filter: {state: true},
    sorting: {state: true},
    top: {state: true},
  };
  declare rows: readonly Row[];
  /** Index of the selected variable; -1 for none. */
  declare selected: number;
  declare filter: string;
  declare sorting: Sorting | null;
  /** Position of the first row in view. */
  declare top: number;

  #shown: readonly Row[] = [];
  #height = 300;
  readonly #resized = new ResizeObserver(() => this.#measure());

  static override styles = [
    shared,
    css`
      :host {
        display: flex;
        flex-direction: column;
        min-height: 0;
      }
      .bar {
        display: flex;
        align-items: center;
        gap: 12px;
        padding: 0 14px 7px;
      }
      .bar input {
        width: 260px;
        max-width: 50%;
      }
      .scroller {
        flex: 1;
        min-height: 0;
        overflow: auto;
        border-top: 1px solid var(--gf-line);
      }
      [role="table"] {
        position: relative;
        min-width: 920px;
      }
      [role="row"] {
        display: grid;
        grid-template-columns: minmax(220px, 3fr) 120px repeat(5, minmax(98px, 1fr));
        align-items: center;
        height: ${ROW_HEIGHT}px;
        padding: 0 14px;
        column-gap: 10px;
      }
      .header {
        position: sticky;
        top: 0;
        z-index: 1;
        background: var(--gf-page);
        border-bottom: 1px solid var(--gf-line);
      }
      .header button {
        width: 100%;
        border: 0;
        padding: 0;
        background: none !important;
        color: var(--gf-muted);
        font-size: 12px;
        font-weight: 600;
        text-align: inherit;
        white-space: nowrap;
      }
      .body [role="row"] {
        position: absolute;
        left: 0;
        right: 0;
        cursor: pointer;
      }
      .body [role="row"]:hover {
        background: var(--gf-raised);
      }
      .body [role="row"][aria-selected="true"] {
        background: var(--gf-accentSoft);
      }
      .right {
        text-align: right;
        font-variant-numeric: tabular-nums;
      }
      .name {
        overflow: hidden;
        text-overflow: ellipsis;
        white-space: nowrap;
      }
      .icon {
        display: inline-block;
        width: 17px;
        font-weight: 700;
      }
      .bad {
        color: var(--gf-bad);
      }
      .warn {
        color: var(--gf-warn);
      }
      .good .icon {
        color: var(--gf-good);
      }
      .quiet {
        color: var(--gf-muted);
      }
      .empty {
        padding: 18px 14px;
        color: var(--gf-muted);
      }
    `,
  ];

  constructor() {
    super();
    this.rows = [];
    this.selected = -1;
    this.filter = "";
    this.sorting = null;
    this.top = 0;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.#resized.observe(this);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#resized.disconnect();
  }

  override willUpdate(): void {
    const wanted = filtered(this.rows, this.filter);
    this.#shown = this.sorting === null ? wanted : sorted(wanted, this.sorting);
  }

  override render(): TemplateResult {
    const first = Math.max(0, this.top - SPARE);
    const last = Math.min(this.#shown.length, this.top + Math.ceil(this.#height / ROW_HEIGHT) + SPARE);
    return html`
      <div class="bar">
        <input
          type="search"
          placeholder="Filter by name or status"
          aria-label="Filter variables by name or status"
          .value=${this.filter}
          @input=${(event: Event) => (this.filter = (event.target as HTMLInputElement).value)}
        />
        <span class="muted">${count(this.#shown.length, this.rows.length)}</span>
      </div>
      <div class="scroller" @scroll=${this.#scrolled}>
        <div role="table" aria-label="Variables" aria-rowcount=${this.#shown.length + 1}>
          <div role="row" class="header" aria-rowindex="1">${COLUMNS.map((each) => this.#heading(each))}</div>
          <div role="rowgroup" class="body" style="height:${this.#shown.length * ROW_HEIGHT}px;position:relative">
            ${this.#shown.slice(first, last).map((row, index) => this.#row(row, first + index))}
          </div>
        </div>
        ${this.#shown.length === 0 ? html`<div class="empty">No variable matches.</div>` : nothing}
      </div>
    `;
  }

  override updated(changed: PropertyValues<this>): void {
    if (changed.has("selected") && this.selected >= 0) {
      this.#scrollTo(this.#shown.findIndex((row) => row.variable === this.selected));
    }
  }

  #heading({column, title, hint}: (typeof COLUMNS)[number]): TemplateResult {
    const active = this.sorting?.column === column;
    const order = active ? (this.sorting?.descending ? "descending" : "ascending") : "none";
    const arrow = active ? (this.sorting?.descending ? " ↓" : " ↑") : "";
    const text = column === "name" || column === "status";
    return html`<div role="columnheader" aria-sort=${order} class=${text ? "" : "right"}>
      <button title=${hint} @click=${() => this.#sort(column)}>${title}${arrow}</button>
    </div>`;
  }

  #row(row: Row, index: number): TemplateResult {
    const status = row.status === null ? null : STATUS[row.status];
    return html`<div
      role="row"
      tabindex="0"
      aria-rowindex=${index + 2}
      aria-selected=${String(row.variable === this.selected)}
      style="top:${index * ROW_HEIGHT}px"
      @click=${() => this.#choose(row)}
      @keydown=${(event: KeyboardEvent) => event.key === "Enter" && this.#choose(row)}
    >
      <div role="cell" class="name" title=${row.name}>${row.name}</div>
      <div role="cell" class=${status?.tone ?? "quiet"}>
        ${status === null ? "–" : html`<span class="icon" aria-hidden="true">${status.icon}</span>${status.word}`}
      </div>
      ${[row.norm, row.maxAbs, row.weight, row.update, row.ratio].map(
        (value) => html`<div role="cell" class="right ${value === null ? "quiet" : ""}">${formatNumber(value)}</div>`,
      )}
    </div>`;
  }

  #choose(row: Row): void {
    this.dispatchEvent(new CustomEvent<number>("gf-variable", {detail: row.variable}));
  }

  /** Numbers begin with the largest, words with the first; a third click gives the model's order back. */
  #sort(column: Column): void {
    const first = column !== "name" && column !== "status";
    if (this.sorting?.column !== column) {
      this.sorting = {column, descending: first};
    } else {
      this.sorting = this.sorting.descending === first ? {column, descending: !first} : null;
    }
  }

  #scrolled(event: Event): void {
    this.top = Math.floor((event.target as HTMLElement).scrollTop / ROW_HEIGHT);
  }

  #scrollTo(index: number): void {
    const scroller = this.renderRoot.querySelector(".scroller");
    if (scroller === null || index < 0) {
      return;
    }
    const top = index * ROW_HEIGHT;
    if (top < scroller.scrollTop || top > scroller.scrollTop + scroller.clientHeight - 3 * ROW_HEIGHT) {
      scroller.scrollTop = Math.max(0, top - scroller.clientHeight / 3);
    }
  }

  #measure(): void {
    this.#height = this.clientHeight;
    this.requestUpdate();
  }
}

function count(shown: number, all: number): string {
  return shown === all ? plural(all, "variable") : `${formatCount(shown)} of ${plural(all, "variable")}`;
}

customElements.define("gf-variables", VariablesPanel);
