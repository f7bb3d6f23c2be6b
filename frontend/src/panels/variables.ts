/** The table of variables. Only visible rows are in the page: models have tens of thousands. */

import {html, LitElement, nothing, type PropertyValues, type TemplateResult} from "lit";
import {copyText} from "../host/clipboard.ts";
import {download, text} from "../host/download.ts";
import {formatCount, formatNumber, plural, NONE} from "../model/format.ts";
import {csvOf, tsvOf} from "../model/csv.ts";
import {filtered, isTroubled, sorted, WORST_FIRST, type Column, type Row, type Sorting} from "../model/rows.ts";
import {STATUS} from "../model/words.ts";
import {shared} from "./styles.ts";
import {ROW_HEIGHT, variablesStyles} from "./variables_styles.ts";

/** Number of rows above and below the visible ones that are in the page. */
const SPARE = 6;

const COLUMNS: readonly {readonly column: Column; readonly title: string; readonly hint: string}[] = [
  {column: "name", title: "Variable", hint: "Name of the variable"},
  {column: "status", title: "Status", hint: "What it got in the training step"},
  {column: "norm", title: "Gradient norm", hint: "L2 norm of the gradient"},
  {column: "maxAbs", title: "Max |g|", hint: "Largest element of the gradient"},
  {column: "weight", title: "Weight norm", hint: "L2 norm of the value after the step"},
  {column: "update", title: "Update norm", hint: "L2 norm of the update"},
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
    copied: {state: true},
  };
  declare rows: readonly Row[];
  /** Whether to show only variables with a problem. */
  declare onlyTroubled: boolean;
  /** Index of the selected variable; -1 for none. */
  declare selected: number;
  declare filter: string;
  declare sorting: Sorting | null;
  /** Index of the first visible row. */
  declare top: number;
  declare copied: boolean;

  #shown: readonly Row[] = [];
  #height = 300;
  /** Index of the row that the Tab key reaches: from there, arrow keys move. */
  #reached = 0;
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
    this.copied = false;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.#resized.observe(this);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#resized.disconnect();
  }

  override willUpdate(changed: PropertyValues<this>): void {
    // Scrolling does not sort again: there may be fifty thousand rows.
    if (!["rows", "onlyTroubled", "filter", "sorting"].some((name) => changed.has(name as keyof VariablesPanel))) {
      return;
    }
    const wanted = filtered(this.onlyTroubled ? this.rows.filter(isTroubled) : this.rows, this.filter);
    this.#shown = sorted(wanted, this.sorting ?? WORST_FIRST);
  }

  override render(): TemplateResult {
    const first = Math.max(0, this.top - SPARE);
    const last = Math.min(this.#shown.length, this.top + Math.ceil(this.#height / ROW_HEIGHT) + SPARE);
    this.#reached = this.#reached >= this.top && this.#reached < last ? this.#reached : this.top;
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
        <span class="out">
          <button class="quiet" title="Copy these rows for a spreadsheet" @click=${this.#copy}>${this.copied ? "Copied" : "Copy"}</button>
          <button class="quiet" title="Download these rows as CSV" @click=${() => download("variables.csv", text(csvOf(this.#shown), "text/csv"))}>CSV</button>
        </span>
      </div>
      <div class="scroller" @scroll=${this.#scrolled}>
        <div role="table" aria-label="Variables" aria-rowcount=${this.#shown.length + 1}>
          <div role="row" class="header" aria-rowindex="1">${COLUMNS.map((each) => this.#heading(each))}</div>
          <div role="rowgroup" class="body" style="height:${this.#shown.length * ROW_HEIGHT}px;position:relative">
            ${this.#shown.slice(first, last).map((row, index) => this.#row(row, first + index))}
          </div>
        </div>
        ${this.#shown.length === 0 ? html`<div class="empty">${this.rows.length === 0 ? "No variables yet." : "No variable matches."}</div>` : nothing}
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
      tabindex=${index === this.#reached ? 0 : -1}
      aria-rowindex=${index + 2}
      aria-selected=${String(row.variable === this.selected)}
      style="top:${index * ROW_HEIGHT}px"
      @click=${() => this.#choose(row)}
      @keydown=${(event: KeyboardEvent) => this.#key(event, row, index)}
    >
      <div role="cell" class="name" title=${row.name}>${row.name}</div>
      <div role="cell" class=${row.explained ? "quiet" : (status?.tone ?? "quiet")} title=${row.explained ? "A finding explains it; it may be meant" : ""}>
        ${status === null ? "–" : html`<span class="icon" aria-hidden="true">${status.icon}</span>${status.word}${row.explained && row.status !== "frozen" ? ", explained" : ""}`}
      </div>
      ${[row.norm, row.maxAbs].map((value) => numberCell(value, row.without ? NONE : undefined))}
      ${[row.weight, row.update, row.ratio].map((value) => numberCell(value))}
    </div>`;
  }

  #key(event: KeyboardEvent, row: Row, index: number): void {
    const page = Math.max(1, Math.floor(this.#height / ROW_HEIGHT) - 2);
    const steps: Record<string, number> = {ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity};
    if (event.key === "Enter") {
      this.#choose(row);
    } else if (steps[event.key] !== undefined) {
      event.preventDefault();
      void this.#focusOn(Math.min(this.#shown.length - 1, Math.max(0, index + steps[event.key])));
    }
  }

  async #focusOn(index: number): Promise<void> {
    this.#scrollTo(index);
    this.#reached = index;
    this.requestUpdate();
    this.top = Math.max(0, Math.min(index, Math.floor((this.renderRoot.querySelector(".scroller")?.scrollTop ?? 0) / ROW_HEIGHT)));
    await this.updateComplete;
    this.renderRoot.querySelector<HTMLElement>(`[aria-rowindex="${index + 2}"]`)?.focus({preventScroll: true});
  }

  readonly #copy = async (): Promise<void> => {
    this.copied = await copyText(tsvOf(this.#shown));
    setTimeout(() => (this.copied = false), 1500);
  };

  #choose(row: Row): void {
    this.dispatchEvent(new CustomEvent<number>("gf-variable", {detail: row.variable}));
  }

  /** Numbers are sorted from the largest, words from the first; a third click sorts by status again. */
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

function numberCell(value: number | null, absent = formatNumber(null)): TemplateResult {
  return html`<div role="cell" class="right ${value === null ? "quiet" : ""}">${value === null ? absent : Number.isNaN(value) ? "NaN" : formatNumber(value)}</div>`;
}

function count(shown: number, all: number): string {
  return shown === all ? plural(all, "variable") : `${formatCount(shown)} of ${plural(all, "variable")}`;
}

customElements.define("gf-variables", VariablesPanel);
