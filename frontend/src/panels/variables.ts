/** The table of variables. Only rows in view are in the page: models have tens of thousands. */

import {html, LitElement, nothing, type PropertyValues, type TemplateResult} from "lit";
import {formatCount, formatNumber, plural} from "../model/format.ts";
import {filtered, isTroubled, sorted, WORST_FIRST, type Column, type Row, type Sorting} from "../model/rows.ts";
import {STATUS} from "../model/words.ts";
import {shared} from "./styles.ts";
import {ROW_HEIGHT, variablesStyles} from "./variables_styles.ts";

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
    onlyTroubled: {attribute: false},
    selected: {attribute: false},
    filter: {state: true},
    sorting: {state: true},
    top: {state: true},
  };
  declare rows: readonly Row[];
  /** Whether only those without a usable gradient are wanted. */
  declare onlyTroubled: boolean;
  /** Index of the selected variable; -1 for none. */
  declare selected: number;
  declare filter: string;
  declare sorting: Sorting | null;
  /** Position of the first row in view. */
  declare top: number;

  #shown: readonly Row[] = [];
  #height = 300;
  readonly #resized = new ResizeObserver(() => this.#measure());

  static override styles = [shared, variablesStyles];

  constructor() {
    super();
    this.rows = [];
    this.onlyTroubled = false;
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
    const wanted = filtered(this.onlyTroubled ? this.rows.filter(isTroubled) : this.rows, this.filter);
    this.#shown = sorted(wanted, this.sorting ?? WORST_FIRST);
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

  /** Numbers begin with the largest, words with the first; a third click puts the worst first again. */
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
