/** All runs of the log directory, worst first. Only visible rows are in the page: sweeps have thousands. */

import {html, LitElement, nothing, type PropertyValues, type TemplateResult} from "lit";
import type {Health, RunEntry, Standing, Standings} from "../api/routes.ts";
import {fileName, formatCount, formatNumber, plural} from "../model/format.ts";
import {agoInWords, countsOf, filteredRuns, HEALTH, HEALTHS, linesOf, settingInWords, sortedRuns, type RunColumn, type RunSorting} from "../model/runs.ts";
import {given} from "./given.ts";
import {prose} from "./prose.ts";
import {ROW_HEIGHT, runsStyles} from "./runs_styles.ts";
import {shared} from "./styles.ts";

/** Number of rows above and below the visible ones that are in the page. */
const SPARE = 6;

interface Column {
  readonly column: RunColumn;
  readonly title: string;
  readonly hint: string;
}

/** Columns of hyperparameters. */
const MOST_SETTINGS = 5;

const COLUMNS: readonly Column[] = [
  {column: "health", title: "Health", hint: "The worst finding at the last recorded step"},
  {column: "name", title: "Run", hint: "Name of the run"},
  {column: "cause", title: "Worst finding", hint: "Its cause, and its line of code"},
  {column: "first", title: "Since step", hint: "The first recorded step of the current error or warning"},
  {column: "loss", title: "Loss", hint: "At the last recorded step"},
  {column: "recorded", title: "Last step", hint: "When the last step was recorded"},
];

export class RunsPanel extends LitElement {
  static override properties = {
    ...given("runs", "standings", "run", "pageOf"),
    words: {state: true},
    health: {state: true},
    sorting: {state: true},
    chosen: {state: true},
    top: {state: true},
  };
  declare runs: readonly RunEntry[];
  /** Null until a run is analysed. */
  declare standings: Standings | null;
  /** The open run. */
  declare run: string | null;
  /** The address of the page about a cause; null if there is none. */
  declare pageOf: (cause: string) => string | null;
  declare words: string;
  declare health: Health | null;
  declare sorting: RunSorting | null;
  /** One or two runs to compare. */
  declare chosen: readonly string[];
  /** Index of the first visible row. */
  declare top: number;

  #all: readonly Standing[] = [];
  #shown: readonly Standing[] = [];
  #height = 600;
  /** Index of the row that the Tab key reaches. */
  #reached = 0;
  readonly #resized = new ResizeObserver(() => this.#measure());

  static override styles = [shared, runsStyles];

  constructor() {
    super();
    this.runs = [];
    this.standings = null;
    this.run = null;
    this.pageOf = () => null;
    this.words = "";
    this.health = null;
    this.sorting = null;
    this.chosen = [];
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

  override willUpdate(changed: PropertyValues<this>): void {
    if (changed.has("runs") || changed.has("standings")) {
      this.#all = linesOf(this.runs, this.standings?.runs ?? []);
    }
    if (["runs", "standings", "words", "health", "sorting"].some((name) => changed.has(name as keyof RunsPanel))) {
      this.#shown = sortedRuns(filteredRuns(this.#all, {words: this.words, health: this.health}), this.sorting);
    }
  }

  override render(): TemplateResult {
    const first = Math.max(0, this.top - SPARE);
    const last = Math.min(this.#shown.length, this.top + Math.ceil(this.#height / ROW_HEIGHT) + SPARE);
    this.#reached = this.#reached >= first && this.#reached < last ? this.#reached : this.top;
    return html`
      <div class="bar">
        <input
          type="search"
          placeholder="Find a run, a cause, a line of code"
          aria-label="Find runs by name, cause or line of code"
          .value=${this.words}
          @input=${(event: Event) => this.#look({words: (event.target as HTMLInputElement).value})}
        />
        <div class="filters" role="group" aria-label="Show only">${[null, ...HEALTHS].map((health) => this.#filter(health))}</div>
        <span class="muted" role="status">${this.#count()}</span>
        <span class="out">${this.#compare()}<button class="quiet" title="Back to the run (a)" @click=${() => this.#tell("gf-close", null)}>Close</button></span>
      </div>
      ${this.standings === null || this.standings.shared.length === 0 ? nothing : html`<ul class="shared" aria-label="What the broken runs have in common">${this.standings.shared.map((sentence) => html`<li>${prose(sentence)}</li>`)}</ul>`}
      <div class="scroller" @scroll=${this.#scrolled}>
        <div role="table" aria-label="All runs" style="--settings:${this.#settings.length === 0 ? "" : `repeat(${this.#settings.length}, minmax(60px, 0.6fr))`}" aria-rowcount=${this.#shown.length + 1}>
          <div role="row" class="header" aria-rowindex="1">
            <div role="columnheader"><span class="hidden">Compare</span></div>
            ${this.#columns.map((each) => this.#heading(each))}
          </div>
          <div role="rowgroup" class="body" style="height:${this.#shown.length * ROW_HEIGHT}px">
            ${this.#shown.slice(first, last).map((standing, index) => this.#row(standing, first + index))}
          </div>
        </div>
        ${this.#shown.length === 0 ? html`<div class="empty">No run matches.</div>` : nothing}
      </div>
    `;
  }

  #count(): string {
    const judged = this.standings?.runs.length ?? 0;
    const waiting = this.standings?.complete === true ? "" : ` · ${formatCount(judged)} analysed so far …`;
    const all = plural(this.#all.length, "run");
    return (this.#shown.length === this.#all.length ? all : `${formatCount(this.#shown.length)} of ${all}`) + waiting;
  }

  #filter(health: Health | null): TemplateResult | typeof nothing {
    const count = countsOf(this.#all).get(health) ?? 0;
    if (count === 0 && health !== this.health) {
      return nothing;
    }
    const {icon, word, tone} = health === null ? {icon: "", word: "all", tone: "quiet"} : HEALTH[health];
    return html`<button class="filter" aria-pressed=${String(health === this.health)} @click=${() => this.#look({health})}>
      <span class=${tone} aria-hidden="true">${icon}</span> ${word} <span class="muted number">${formatCount(count)}</span>
    </button>`;
  }

  #compare(): TemplateResult | typeof nothing {
    if (this.chosen.length === 0) {
      return nothing;
    }
    return this.chosen.length < 2
      ? html`<span class="muted">Tick another run to compare the two</span>`
      : html`<button class="compare" @click=${() => this.#tell("gf-compare", this.#inTime())}>Compare these two</button>`;
  }

  /** The older of the two first: the other run is compared with it. */
  #inTime(): readonly string[] {
    const began = (run: string): number => this.runs.find((entry) => entry.run === run)?.began ?? 0;
    return [...this.chosen].sort((a, b) => began(a) - began(b));
  }

  get #settings(): readonly string[] {
    return this.standings?.hyperparameters.slice(0, MOST_SETTINGS) ?? [];
  }

  /** Hyperparameters come before what they may have caused. */
  get #columns(): readonly Column[] {
    const settings = this.#settings.map((name): Column => ({column: `=${name}`, title: name, hint: `Hyperparameter ${name}`}));
    return [...COLUMNS.slice(0, 2), ...settings, ...COLUMNS.slice(2)];
  }

  #heading({column, title, hint}: Column): TemplateResult {
    const active = this.sorting?.column === column;
    const order = active ? (this.sorting?.descending ? "descending" : "ascending") : "none";
    const arrow = active ? (this.sorting?.descending ? " ↓" : " ↑") : "";
    return html`<div role="columnheader" aria-sort=${order} class=${isNumber(column) ? "right" : ""}>
      <button title=${hint} @click=${() => this.#sort(column)}>${title}${arrow}</button>
    </div>`;
  }

  #row(standing: Standing, index: number): TemplateResult {
    const {run, name, health, first, step, steps, loss, has_loss, recorded} = standing;
    const {icon, word, tone} = HEALTH[health];
    const isJudged = steps > 0 || step >= 0 || health !== "unknown";
    return html`<div
      role="row"
      tabindex=${index === this.#reached ? 0 : -1}
      aria-rowindex=${index + 2}
      aria-current=${String(run === this.run)}
      style="top:${index * ROW_HEIGHT}px"
      @click=${() => this.#tell("gf-run", run)}
      @keydown=${(event: KeyboardEvent) => this.#key(event, run, index)}
    >
      <div role="cell" class="tick" @click=${(event: Event) => event.stopPropagation()}>
        <input type="checkbox" aria-label="Compare ${name}" .checked=${this.chosen.includes(run)} @change=${() => this.#choose(run)} />
      </div>
      <div role="cell" class=${tone}><span class="icon" aria-hidden="true">${icon}</span>${word}</div>
      <div role="cell" class="name" title=${name}>${name}</div>
      ${this.#settings.map((setting) => html`<div role="cell" class="right" title=${settingInWords(standing.hyperparameters[setting])}>${settingInWords(standing.hyperparameters[setting])}</div>`)}
      <div role="cell" class="finding" title=${standing.summary}>${this.#finding(standing)}</div>
      <div role="cell" class="right">${first === null ? (health === "healthy" ? "" : "–") : formatCount(first)}</div>
      <div role="cell" class="right ${loss === null ? "quiet" : ""}">${!isJudged || !has_loss ? "–" : loss === null ? "not finite" : formatNumber(loss)}</div>
      <div role="cell" class="right quiet" title=${recorded === 0 ? "" : new Date(recorded * 1000).toLocaleString()}>
        ${recorded === 0 ? "–" : html`<span class="number">${step < 0 ? "none" : formatCount(step)}</span>, ${agoInWords(Date.now() / 1000 - recorded)}`}
      </div>
    </div>`;
  }

  #finding({cause, place, summary, health}: Standing): TemplateResult {
    if (cause === "") {
      return html`<span class="quiet">${health === "healthy" ? "" : prose(summary)}</span>`;
    }
    const [words, page] = [cause.replaceAll("_", " "), this.pageOf(cause)];
    const link =
      page === null
        ? words
        : html`<a href=${page} target="_blank" rel="noopener" title="What it is, an example program, and the fix" @click=${(event: Event) => event.stopPropagation()}>${words}</a>`;
    return html`${link} <code class="quiet">${fileName(place)}</code>`;
  }

  #look(change: {readonly words?: string; readonly health?: Health | null}): void {
    this.words = change.words ?? this.words;
    this.health = change.health === undefined ? this.health : change.health;
    this.top = 0;
    this.renderRoot.querySelector(".scroller")?.scrollTo({top: 0});
  }

  /** At most two: a third replaces the first. */
  #choose(run: string): void {
    this.chosen = this.chosen.includes(run) ? this.chosen.filter((each) => each !== run) : [...this.chosen, run].slice(-2);
  }

  #key(event: KeyboardEvent, run: string, index: number): void {
    const page = Math.max(1, Math.floor(this.#height / ROW_HEIGHT) - 2);
    const steps: Record<string, number> = {ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity};
    if (event.target !== event.currentTarget) {
      return;
    }
    if (event.key === "Enter") {
      this.#tell("gf-run", run);
    } else if (steps[event.key] !== undefined) {
      event.preventDefault();
      void this.#focusOn(Math.min(this.#shown.length - 1, Math.max(0, index + steps[event.key])));
    }
  }

  async #focusOn(index: number): Promise<void> {
    const scroller = this.renderRoot.querySelector(".scroller");
    const top = index * ROW_HEIGHT;
    if (scroller !== null && (top < scroller.scrollTop || top > scroller.scrollTop + scroller.clientHeight - 3 * ROW_HEIGHT)) {
      scroller.scrollTop = Math.max(0, top - scroller.clientHeight / 3);
    }
    this.#reached = index;
    this.top = Math.floor((scroller?.scrollTop ?? 0) / ROW_HEIGHT);
    this.requestUpdate();
    await this.updateComplete;
    this.renderRoot.querySelector<HTMLElement>(`[aria-rowindex="${index + 2}"]`)?.focus({preventScroll: true});
  }

  /** Numbers are sorted from the largest, words from the first; a third click sorts by health again. */
  #sort(column: RunColumn): void {
    const first = isNumber(column);
    if (this.sorting?.column !== column) {
      this.sorting = {column, descending: first};
    } else {
      this.sorting = this.sorting.descending === first ? {column, descending: !first} : null;
    }
  }

  #scrolled(event: Event): void {
    this.top = Math.floor((event.target as HTMLElement).scrollTop / ROW_HEIGHT);
  }

  #measure(): void {
    this.#height = this.clientHeight;
    this.requestUpdate();
  }

  #tell(name: "gf-run" | "gf-compare" | "gf-close", detail: string | readonly string[] | null): void {
    this.dispatchEvent(new CustomEvent(name, {detail}));
  }
}

function isNumber(column: RunColumn): boolean {
  return column === "first" || column === "loss" || column === "recorded" || column.startsWith("=");
}

customElements.define("gf-runs", RunsPanel);
