/** The whole page: what is chosen goes down to the panels, what they report comes back up here. */

import {html, LitElement, nothing, type PropertyValues, type TemplateResult} from "lit";
import {cssVariables, DARK, LIGHT, type Palette} from "../draw/palette.ts";
import {readPlace, writePlace} from "../host/address.ts";
import {isShown} from "../host/shown.ts";
import {watchTheme} from "../host/theme.ts";
import {inOrder, keyOf, neighbour} from "../model/findings.ts";
import {mainOf} from "../model/paths.ts";
import {rowsOf} from "../model/rows.ts";
import type {Finding} from "../record.ts";
import {Derived} from "../state/derived.ts";
import type {Store} from "../state/store.ts";
import "./details.ts";
import "./findings.ts";
import type {GraphView} from "./graph.ts";
import "./graph.ts";
import "./legend.ts";
import {drawer} from "./drawer.ts";
import {header} from "./header.ts";
import {emptyState, nothingToDraw, problemsStrip, summaryStrip} from "./strips.ts";
import {appStyles} from "./app_styles.ts";
import {shared} from "./styles.ts";

/** Milliseconds between two looks for new steps. */
const POLL = 5000;
/** Width of the panel of details, in pixels. */
const DETAILS = 310;
/** A frame lower or narrower than this shows the graph alone at first. */
const ROOM_FOR_TABLE = 820;
const ROOM_FOR_FINDINGS = 900;

export class App extends LitElement {
  static override properties = {
    palette: {state: true},
    selected: {state: true},
    finding: {state: true},
    side: {state: true},
    table: {state: true},
    onlyTroubled: {state: true},
  };
  store: Store | null = null;
  declare palette: Palette;
  /** An item of the tree; -1 for none. */
  declare selected: number;
  /** Key of the finding whose path is lit. */
  declare finding: string | null;
  /** Whether the findings are shown, and the table. */
  declare side: boolean;
  declare table: boolean;
  /** Whether the table shows only variables without a usable gradient. */
  declare onlyTroubled: boolean;

  readonly #derived = new Derived();
  #wanted = readPlace().select ?? "";
  /** Whether the address said what to show, and that is yet to be done. */
  #arrived = false;
  #endings: (() => void)[] = [];

  static override styles = [shared, appStyles];

  constructor() {
    super();
    this.palette = LIGHT;
    this.selected = -1;
    this.finding = null;
    this.side = window.innerWidth >= ROOM_FOR_FINDINGS;
    this.onlyTroubled = false;
    this.table = window.innerHeight >= ROOM_FOR_TABLE;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    const change = (): void => this.requestUpdate();
    const key = (event: KeyboardEvent): void => this.#key(event);
    this.store?.addEventListener("change", change);
    window.addEventListener("keydown", key);
    const poll = setInterval(() => isShown() && void this.store?.refresh(), POLL);
    const theme = watchTheme((dark) => {
      this.palette = dark ? DARK : LIGHT;
    });
    this.#endings = [
      theme,
      () => clearInterval(poll),
      () => window.removeEventListener("keydown", key),
      () => this.store?.removeEventListener("change", change),
    ];
    const {run, step} = readPlace();
    void this.store?.start(run, step === undefined ? undefined : Number(step));
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#endings.forEach((end) => end());
  }

  override willUpdate(changed: PropertyValues<this>): void {
    if (this.store === null) {
      return;
    }
    const before = this.#derived.model;
    this.#derived.update(this.store.state);
    if (this.#derived.model !== before) {
      this.selected = this.#derived.itemNamed(this.#wanted);
      this.#arrived = before === null && this.selected >= 0;
    }
    if (changed.has("palette")) {
      Object.entries(cssVariables(this.palette)).forEach(([name, value]) => this.style.setProperty(name, value));
      this.style.colorScheme = this.palette.dark ? "dark" : "light";
    }
  }

  override render(): TemplateResult {
    const state = this.store?.state;
    if (state === undefined || (state.runs === null && state.problems.size === 0)) {
      return html`<main class="waiting">Reading the runs …</main>`;
    }
    if (state.runs === null || state.runs.length === 0) {
      return html`${problemsStrip(state.problems)} ${emptyState()}`;
    }
    return html`
      ${this.#header()} ${problemsStrip(this.#problems())} ${summaryStrip(this.#derived.diagnosis, (step) => this.#goToFinding(step))}
      <div class="columns">
        ${this.side
          ? html`<aside class="side" aria-label="Findings">
              <gf-findings .hidden=${this.#derived.diagnosis === null && this.#problems().size > 0} .diagnosis=${this.#derived.diagnosis} .chosen=${this.finding} @gf-finding=${this.#onFinding}></gf-findings>
            </aside>`
          : nothing}
        <main>${this.#graph()} ${this.#table()}</main>
      </div>
    `;
  }

  override updated(): void {
    if (this.#arrived) {
      this.#arrived = false;
      void this.#view?.updateComplete.then(() => this.#view?.reveal(this.selected));
    }
    const state = this.store?.state;
    if (state?.overview) {
      const run = state.run ?? "";
      const last = state.at === state.overview.steps.length - 1;
      const step = last || state.at < 0 ? "" : String(state.overview.steps[state.at]);
      const select = this.#derived.model === null ? this.#wanted : this.#derived.nameOf(this.selected);
      writePlace({run, step, select});
    }
  }

  get #view(): GraphView | null {
    return this.renderRoot.querySelector<GraphView>("gf-graph");
  }

  /** Problems of loading, and of the chosen run. */
  #problems(): ReadonlyMap<string, string> {
    const {runs, run, problems} = (this.store as Store).state;
    const error = runs?.find((entry) => entry.run === run)?.error ?? null;
    return error === null ? problems : new Map([["run", error]]);
  }

  #header(): TemplateResult {
    const store = this.store as Store;
    return header(store.state, {
      toggleSide: () => (this.side = !this.side),
      chooseRun: (run) => this.#chooseRun(run),
      chooseTarget: (target) => store.chooseTarget(target),
      chooseStep: (at) => void store.chooseStep(at),
    });
  }

  #graph(): TemplateResult {
    return html`<div class="stage">
      <gf-graph
        .model=${this.#derived.model}
        .condition=${this.#derived.condition}
        .initiallyOpen=${this.#derived.initiallyOpen}
        .worst=${this.#derived.worst}
        .path=${this.#derived.pathOf(this.finding)}
        .covered=${this.selected >= 0 && window.innerWidth >= 700 ? DETAILS : 0}
        .selected=${this.selected}
        .palette=${this.palette}
        @gf-select=${(event: CustomEvent<number>) => this.#select(event.detail)}
      ></gf-graph>
      ${this.#derived.isEmpty ? nothingToDraw() : nothing}
      <gf-legend .hidden=${this.#derived.looks.size === 0} .scale=${this.store?.state.scale ?? null} .looks=${this.#derived.looks} .palette=${this.palette}></gf-legend>
      ${this.#details()}
    </div>`;
  }

  #table(): TemplateResult {
    const {condition, diagnosis, model} = this.#derived;
    const rows = condition === null ? [] : this.#derived.once("rows", [condition], () => rowsOf(condition.tree.graph.trace, diagnosis, condition.answers, condition.numbers));
    const node = model?.tree.graph.nodes[this.selected];
    const selected = node?.kind === "variable" ? node.index : -1;
    return drawer(
      {rows, unfolded: this.table, onlyTroubled: this.onlyTroubled, selected},
      {
        fold: () => (this.table = !this.table),
        toggleTroubled: () => this.#toggleTroubled(),
        choose: (variable) => this.#goToVariable(variable),
      },
    );
  }

  /** Who presses this wants to see them, so the table unfolds too. */
  #toggleTroubled(): void {
    this.onlyTroubled = !(this.table && this.onlyTroubled);
    this.table = true;
  }

  #details(): TemplateResult | typeof nothing {
    const {condition, diagnosis} = this.#derived;
    const store = this.store as Store;
    if (this.selected < 0 || condition === null) {
      return nothing;
    }
    const node = condition.tree.graph.nodes[this.selected];
    const status = node?.kind === "variable" ? (diagnosis?.variables[node.index]?.status ?? null) : null;
    return html`<aside class="details" aria-label="Details">
      <gf-details
        .source=${store.source}
        .overview=${store.state.overview}
        .tree=${condition.tree}
        .item=${this.selected}
        .answers=${condition.answers}
        .numbers=${condition.numbers}
        .status=${status}
        .step=${store.step}
        .palette=${this.palette}
        @gf-go=${(event: CustomEvent<number>) => this.#go(event.detail)}
      ></gf-details>
    </aside>`;
  }

  #chooseRun(run: string): void {
    this.finding = null;
    this.#select(-1);
    void this.store?.chooseRun(run);
  }

  #select(item: number): void {
    this.selected = item;
    this.#wanted = this.#derived.nameOf(item);
    if (item < 0) {
      this.finding = null;
    }
  }

  #go(item: number): void {
    this.#select(item);
    this.#view?.reveal(item);
  }

  #goToVariable(variable: number): void {
    const node = this.#derived.model?.tree.graph.nodeOfVariable[variable] ?? -1;
    if (node >= 0) {
      this.#go(node);
    }
  }

  readonly #onFinding = ({detail}: CustomEvent<Finding>): void => {
    this.side &&= window.innerWidth >= ROOM_FOR_FINDINGS;
    this.#showFinding(detail);
  };

  #showFinding(finding: Finding): void {
    const key = keyOf(finding);
    const path = this.#derived.pathOf(key);
    if (path !== null) {
      this.#select(mainOf(path));
      this.#view?.showPath(path);
    }
    this.finding = key;
    this.store?.chooseTarget(finding.target);
  }

  #goToFinding(step: 1 | -1): void {
    const finding = neighbour(inOrder(this.#derived.diagnosis?.findings ?? []), this.finding, step);
    if (finding !== null) {
      this.#showFinding(finding);
    }
  }

  #key(event: KeyboardEvent): void {
    const typing = event.composedPath().some((each) => each instanceof HTMLInputElement && each.type === "search");
    if (typing || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const at = this.store?.state.at ?? -1;
    const actions: Record<string, () => void> = {
      Escape: () => this.#select(-1),
      n: () => this.#goToFinding(1),
      p: () => this.#goToFinding(-1),
      "[": () => void this.store?.chooseStep(at - 1),
      "]": () => void this.store?.chooseStep(at + 1),
    };
    actions[event.key]?.();
  }
}

customElements.define("gf-app", App);
