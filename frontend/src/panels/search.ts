/** The search field, and the list of its results. Results are lit in the graph while the field is in use. */

import {html, LitElement, nothing, type PropertyValues, type TemplateResult} from "lit";
import {formatCount} from "../model/format.ts";
import {search, type Hit, type Index} from "../model/search.ts";
import type {Tree} from "../model/tree.ts";
import {STATUS} from "../model/words.ts";
import type {Status} from "../record.ts";
import {searchStyles} from "./search_styles.ts";
import {shared} from "./styles.ts";

/** Nobody reads a longer list; the number of all results is shown. */
const SHOWN = 60;

export class SearchField extends LitElement {
  static override properties = {
    tree: {attribute: false},
    index: {attribute: false},
    statusOf: {attribute: false},
    query: {state: true},
    at: {state: true},
    unfolded: {state: true},
  };
  declare tree: Tree | null;
  declare index: () => Index;
  /** The status of an item's variable; null for everything else. */
  declare statusOf: (item: number) => Status | null;
  declare query: string;
  /** Index of the result that Enter opens. */
  declare at: number;
  declare unfolded: boolean;

  #hits: readonly Hit[] = [];

  static override styles = [shared, searchStyles];

  constructor() {
    super();
    this.tree = null;
    this.index = () => [];
    this.statusOf = () => null;
    this.query = "";
    this.at = 0;
    this.unfolded = false;
  }

  override focus(): void {
    this.renderRoot.querySelector("input")?.select();
  }

  override willUpdate(changed: PropertyValues<this>): void {
    if (changed.has("query") || (this.unfolded && (changed.has("tree") || changed.has("index")))) {
      this.#hits = this.query.trim() === "" ? [] : search(this.index(), this.query, this.#isTroubled);
      this.#tellFound();
    }
  }

  override render(): TemplateResult {
    const open = this.unfolded && this.query.trim() !== "";
    return html`
      <input
        type="search"
        role="combobox"
        placeholder="Find: name, op, cause, code (/)"
        aria-label="Find by name, op type, cause or line of code"
        title="Words of a name, an op type, a cause or a line of code. Use type:, cause:, code: or name: to search only there."
        aria-expanded=${String(open)}
        aria-controls="hits"
        aria-activedescendant=${open && this.#hits.length > 0 ? `hit-${this.at}` : ""}
        autocomplete="off"
        .value=${this.query}
        @input=${this.#typed}
        @focus=${() => (this.unfolded = true)}
        @blur=${() => (this.unfolded = false)}
        @keydown=${this.#key}
      />
      ${open ? this.#list() : nothing}
    `;
  }

  override updated(changed: PropertyValues<this>): void {
    if (changed.has("at")) {
      this.renderRoot.querySelector('[aria-selected="true"]')?.scrollIntoView({block: "nearest"});
    }
    if (changed.has("unfolded")) {
      this.#tellFound();
    }
  }

  readonly #isTroubled = (item: number): boolean => {
    const status = this.statusOf(item);
    return status !== null && ["bad", "warn"].includes(STATUS[status].tone);
  };

  #list(): TemplateResult {
    const count = this.#hits.length;
    const more = count > SHOWN ? `, the first ${SHOWN} of them here` : "";
    return html`<div class="list">
      <div class="count" role="status">${count === 0 ? "Nothing found" : `${formatCount(count)} found${more}`}</div>
      <ul id="hits" role="listbox" aria-label="Search results">
        ${this.#hits.slice(0, SHOWN).map((hit, index) => this.#hit(hit, index))}
      </ul>
    </div>`;
  }

  #hit({item, where, text}: Hit, index: number): TemplateResult {
    const {name, label} = (this.tree as Tree).items[item];
    const status = this.statusOf(item);
    // Before the field loses the focus, and with it the list.
    return html`<li id="hit-${index}" role="option" aria-selected=${String(index === this.at)} @pointerdown=${(event: Event) => this.#choose(event, index)}>
      <span class="label">${where === "name" ? label : name}${status === null ? nothing : html` <span class=${STATUS[status].tone}>${STATUS[status].icon} ${STATUS[status].word}</span>`}</span>
      <span class="name">${where === "name" ? name : `${where}: ${text}`}</span>
    </li>`;
  }

  #typed(event: Event): void {
    this.query = (event.target as HTMLInputElement).value;
    this.at = 0;
    this.unfolded = true;
  }

  #choose(event: Event, index: number): void {
    event.preventDefault();
    this.at = index;
    this.#go();
  }

  #go(): void {
    const hit = this.#hits[this.at];
    if (hit !== undefined) {
      this.dispatchEvent(new CustomEvent<number>("gf-go", {detail: hit.item}));
    }
  }

  #key(event: KeyboardEvent): void {
    const last = Math.min(this.#hits.length, SHOWN) - 1;
    const actions: Record<string, () => void> = {
      ArrowDown: () => (this.at = Math.min(last, this.at + 1)),
      ArrowUp: () => (this.at = Math.max(0, this.at - 1)),
      Enter: () => {
        this.#go();
        this.renderRoot.querySelector("input")?.blur();
      },
      Escape: () => {
        this.query = "";
        this.renderRoot.querySelector("input")?.blur();
      },
    };
    if (actions[event.key] !== undefined) {
      actions[event.key]();
      event.preventDefault();
      event.stopPropagation();
    }
  }

  /** The items to light; null while there is no search. */
  #tellFound(): void {
    const found = this.unfolded && this.#hits.length > 0 ? this.#hits.map(({item}) => item) : null;
    this.dispatchEvent(new CustomEvent<readonly number[] | null>("gf-found", {detail: found}));
  }
}

customElements.define("gf-search", SearchField);
