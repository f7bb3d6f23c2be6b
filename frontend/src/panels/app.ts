/** The whole page: the selections go down to the panels, and their events come back up here. */

import {html, LitElement, nothing, type PropertyValues, type TemplateResult} from "lit";
import {cssVariables, DARK, LIGHT, type Palette} from "../draw/palette.ts";
import {readPlace, timeSeriesLink, watchPlace, type Place} from "../host/address.ts";
import {watchKeys} from "../host/keyboard.ts";
import {recall, remember} from "../host/memory.ts";
import {watchData} from "../host/reload.ts";
import {watchTheme} from "../host/theme.ts";
import {inOrder, keyOf, neighbour, sameIn} from "../model/findings.ts";
import {mainOf} from "../model/paths.ts";
import {filtersFor, type Scalars} from "../model/scalars.ts";
import {nextStop, type Stop} from "../model/stops.ts";
import {ancestorsOf} from "../model/tree.ts";
import type {Finding} from "../record.ts";
import {Beside, nearest} from "../state/beside.ts";
import {Derived} from "../state/derived.ts";
import {Diverged} from "../state/diverged.ts";
import {absentFrom} from "../state/link.ts";
import {sizeFrom, sizeOf, type Chosen, type Pane} from "../state/panes.ts";
import {Player} from "../state/player.ts";
import type {State} from "../state/state.ts";
import type {Store} from "../state/store.ts";
import {viewOf, type View} from "../state/view.ts";
import {Written} from "../state/written.ts";
import {Aim} from "./aim.ts";
import "./findings.ts";
import type {GraphView} from "./graph.ts";
import {drawer} from "./drawer.ts";
import {edgeOf} from "./edge.ts";
import {allRuns, header, timeline} from "./header.ts";
import {hint, HINT, hintStyles} from "./hint.ts";
import {keysDialog, keysStyles, press} from "./keys.ts";
import type {Asked, Scope} from "./scope.ts";
import {shortcuts} from "./shortcuts.ts";
import {besideGraph, frame, hasRoom} from "./room.ts";
import {stage, stageStyles} from "./stage.ts";
import {absentStrip, damageStrip, emptyState, problemsOf, problemsStrip, skeleton, summaryStrip, unknownRuns} from "./strips.ts";
import {termBar, termBarStyles} from "./term_bar.ts";
import {appStyles} from "./app_styles.ts";
import {drawerStyles} from "./drawer_styles.ts";
import {menuStyles} from "./export.ts";
import {headerStyles} from "./header_styles.ts";
import {stripsStyles} from "./strips_styles.ts";
import {shared} from "./styles.ts";

/** Milliseconds after which deferred work is done. */
const REST = 60;

export class App extends LitElement {
  static override properties = {
    palette: {state: true},
    view: {state: true},
    side: {state: true},
    onlyTroubled: {state: true},
    found: {state: true},
    keysShown: {state: true},
    drawn: {state: true},
    absent: {state: true},
    hinted: {state: true},
    scalars: {state: true},
  };
  store: Store | null = null;
  /** The initial run and step, if the address names none. */
  start: {readonly run: string; readonly step: number | null} | null = null;
  declare palette: Palette;
  declare view: View;
  /** Whether to show the findings; null until the reader chooses, and then the space decides. */
  declare side: boolean | null;
  /** Whether the table shows only variables with a problem. */
  declare onlyTroubled: boolean;
  /** Items that the search found; null while there is no search. */
  declare found: ReadonlySet<number> | null;
  declare keysShown: boolean;
  /** The sizes to which the reader has resized panes. */
  declare drawn: Chosen;
  /** What the link names and is not here, in sentences. */
  declare absent: readonly string[];
  /** Whether the reader has seen how to read the picture. */
  declare hinted: boolean;

  /** The scalars of other plugins in this log; null until they are requested. */
  declare scalars: Scalars | null;

  readonly #derived = new Derived();
  /** The view of a run if the address does not contain one. */
  readonly #start: View = {
    selected: "",
    finding: null,
    open: null,
    tab: null,
    loss: "",
    term: "",
    beside: null,
    measure: "norm",
    charted: [],
    all: false,
  };
  readonly #written = new Written(this.#start);
  /** Whether the camera should move to the selection, once that exists. */
  #mustReveal = false;
  /** The names in the link by which the page was opened, until it is known whether they exist. */
  #link: Place | null = null;
  /** A finding of an earlier step, until the report of that step is there. */
  #awaited: Finding | null = null;
  readonly #aim = new Aim();
  #finishing = 0;
  #askedScalarsOf: string | null = null;
  #player: Player | null = null;
  #beside: Beside | null = null;
  #diverged: Diverged | null = null;
  #endings: (() => void)[] = [];

  static override styles = [shared, appStyles, headerStyles, stripsStyles, stageStyles, menuStyles, keysStyles, drawerStyles, hintStyles, termBarStyles];

  constructor() {
    super();
    this.palette = LIGHT;
    this.#link = readPlace();
    this.view = viewOf(this.#link, this.#start);
    this.absent = [];
    this.side = null;
    this.onlyTroubled = false;
    this.found = null;
    this.keysShown = false;
    this.drawn = {side: sizeFrom(recall("side")), details: sizeFrom(recall("details")), drawer: sizeFrom(recall("drawer"))};
    this.hinted = recall(HINT) !== null;
    this.scalars = null;
    this.#mustReveal = this.view.selected !== "";
  }

  override connectedCallback(): void {
    super.connectedCallback();
    const change = (): void => this.requestUpdate();
    const key = (event: KeyboardEvent): void => press(event, this.store === null ? [] : shortcuts(this.#scope()));
    this.store?.addEventListener("change", change);
    window.addEventListener("resize", change); // A frame may start with no width, and get one later.
    const theme = watchTheme((dark) => {
      this.palette = dark ? DARK : LIGHT;
    });
    this.#endings = [
      theme,
      watchPlace((place) => this.#goBackTo(place)),
      this.store?.source.isLive === true ? watchData(() => void this.store?.refresh()) : () => {},
      watchKeys(key, this.store?.source.isLive === true),
      () => this.store?.removeEventListener("change", change),
      () => window.removeEventListener("resize", change),
    ];
    if (this.store !== null) {
      this.#player = new Player(this.store, change);
      this.#beside = new Beside(this.store.source, change);
      this.#diverged = new Diverged(this.store.source, change);
    }
    const {run = this.start?.run, step = run === this.start?.run ? this.start?.step : undefined} = readPlace();
    void this.store?.start(run, step === undefined || step === null ? undefined : Number(step));
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#player?.stop();
    clearTimeout(this.#finishing);
    this.#endings.forEach((end) => end());
  }

  override willUpdate(changed: PropertyValues<this>): void {
    Object.entries(this.#sizes(this.side ?? hasRoom())).forEach(([pane, size]) => this.style.setProperty(`--gf-${pane}`, `${size}px`));
    if (this.store !== null) {
      this.store.chooseTarget(this.#aim.target(this.store.state, this.view.loss));
      const {trace, target} = this.store.state;
      this.#beside?.show(trace === null ? null : this.view.beside, this.store.step, trace?.targets[target]?.name ?? "");
      this.#diverged?.show(this.view.beside, this.store.state.run);
      this.#derived.update(this.store.state, this.#beside?.other ?? null, this.view.measure, this.view.term);
      this.#resolveLink(this.store.state);
    }
    if (changed.has("palette")) {
      Object.entries(cssVariables(this.palette)).forEach(([name, value]) => this.style.setProperty(name, value));
      this.style.colorScheme = this.palette.dark ? "dark" : "light";
    }
  }

  #resolveLink(state: State): void {
    const known = this.#link === null ? null : absentFrom(this.#link, state, this.#derived, this.#start);
    if (known !== null) {
      this.#link = null;
      this.absent = known.words;
      this.view = known.words.length === 0 ? this.view : known.view;
    }
  }

  override render(): TemplateResult {
    const state = this.store?.state;
    if (state === undefined || (state.runs === null && state.problems.size === 0)) {
      return skeleton("Reading the runs …");
    }
    if (state.runs === null || state.runs.length === 0) {
      return html`${problemsStrip(state.problems)} ${state.runs === null ? unknownRuns() : emptyState()}`;
    }
    const scope = this.#scope();
    const {diagnosis} = this.#derived;
    const problems = problemsOf(state, this.#derived.problem);
    const {late} = scope.store;
    if (this.view.all && state.runs.length > 1) {
      return html`${header(scope)} ${this.#absentStrip()} ${allRuns(scope)}
      ${scope.store.source.note === "" ? nothing : html`<footer class="muted">${scope.store.source.note}</footer>`}
      ${this.keysShown ? keysDialog(shortcuts(scope), () => (this.keysShown = false)) : nothing}`;
    }
    return html`
      <div class="top">${header(scope)} ${timeline(scope)}</div>
      ${this.#absentStrip()} ${problemsStrip(problems)} ${damageStrip(state.course)} ${this.#derived.model === null || (diagnosis === null && problems.size > 0) ? nothing : summaryStrip(diagnosis, this.view.finding, (step) => this.#goToFinding(step))}
      ${this.hinted || this.#derived.model === null ? nothing : hint(this.#closeHint)}
      <div class="columns">
        ${scope.side
          ? html`<aside class="side" aria-label="Findings" aria-busy=${String(late.report)}>
              ${edgeOf("side", scope)}
              <gf-findings class="scroller" .hidden=${diagnosis === null && (problems.size > 0 || this.#derived.model === null)} .diagnosis=${diagnosis} .sources=${this.store?.state.trace?.sources ?? []} .passages=${this.store?.state.trace?.passages ?? []} .chosen=${this.view.finding} .pageOf=${this.#pageOf} .stops=${this.#stops} .selected=${scope.selected} .timeSeries=${this.#timeSeries} .step=${scope.store.step} @gf-stop=${({detail}: CustomEvent<number>) => this.#goAlong(detail)} @gf-finding=${this.#onFinding}></gf-findings>
            </aside>`
          : nothing}
        <main aria-busy=${String(late.numbers)}>${termBar(scope)} ${stage(scope)} ${drawer(scope)}</main>
      </div>
      ${scope.store.source.note === "" ? nothing : html`<footer class="muted">${scope.store.source.note}</footer>`}
      ${this.keysShown ? keysDialog(shortcuts(scope), () => (this.keysShown = false)) : nothing}
    `;
  }

  #absentStrip(): TemplateResult | typeof nothing {
    return absentStrip(this.absent, () => (this.absent = []));
  }

  override updated(): void {
    this.#showAwaited();
    if (this.#mustReveal && this.#selected >= 0) {
      this.#mustReveal = false;
      const item = this.#selected;
      void this.#view?.updateComplete.then(() => this.#view?.reveal(item));
    }
    if (this.store !== null) {
      this.#written.write(this.store.state, this.view);
    }
    clearTimeout(this.#finishing);
    // Not before the current frame is on the screen.
    requestAnimationFrame(() => {
      clearTimeout(this.#finishing);
      if (!this.isConnected) {
        return;
      }
      this.#finishing = window.setTimeout(() => {
        this.#learnScalars();
        this.#derived.finish() && this.requestUpdate();
      }, REST);
    });
  }

  /** Once for each run: TensorBoard may have loaded more of it by then. */
  #learnScalars(): void {
    const {run = null} = this.store?.state ?? {};
    if (this.#derived.diagnosis === null || run === this.#askedScalarsOf) {
      return;
    }
    this.#askedScalarsOf = run;
    void this.store?.source.scalars().then(
      (scalars) => (this.scalars = scalars),
      () => {}, // Without them there is no link, and no harm.
    );
  }

  /** The address of the run's scalars in TensorBoard; null if it has none. */
  get #timeSeries(): string | null {
    const {run = null} = this.store?.state ?? {};
    const filters = run === null || this.scalars === null ? null : filtersFor(run, this.scalars);
    return filters === null ? null : timeSeriesLink(filters);
  }

  get #view(): GraphView | null {
    return this.renderRoot.querySelector<GraphView>("gf-graph");
  }

  /** The selected item; -1 for none. */
  get #selected(): number {
    return this.#derived.itemNamed(this.view.selected);
  }

  #look(change: Partial<View>): void {
    this.view = {...this.view, ...change};
  }

  #scope(): Scope {
    const {view, palette, found, onlyTroubled} = this;
    const side = this.side ?? hasRoom();
    const [store, playing] = [this.store as Store, this.#player?.isPlaying ?? false];
    const {other = null, problem: otherProblem = ""} = this.#beside ?? {};
    const diverged = this.#diverged as Diverged;
    const [derived, selected, ask, sizes] = [this.#derived, this.#selected, this.#asked, this.#sizes(side)];
    return {store, derived, view, palette, selected, found, side, onlyTroubled, playing, other, otherProblem, diverged, sizes, ask};
  }

  /** For the table in the drawer; null if the drawer shows something else. */
  get #rows(): number | null {
    const variables = this.store?.state.trace?.variables;
    return this.view.tab === "variables" && variables !== undefined ? variables.length : null;
  }

  #sizes(side: boolean): Record<Pane, number> {
    const findings = sizeOf("side", this.drawn, frame(), 0);
    const beside = besideGraph({side, sizes: {side: findings}});
    return {side: findings, details: sizeOf("details", this.drawn, frame(), beside), drawer: sizeOf("drawer", this.drawn, frame(), beside, this.#rows)};
  }

  readonly #asked: Asked = {
    look: (change) => this.#look(change),
    chooseRun: (run) => this.#chooseRun(run),
    compareRuns: (before, now) => {
      this.#look({all: false, beside: before, tab: "changes"});
      this.#chooseRun(now);
    },
    findDivergence: () => {
      const [before, now] = [this.view.beside, this.store?.state.run ?? null];
      if (before !== null && now !== null) {
        void this.#diverged?.look(before, now);
      }
    },
    chooseStep: (at) => {
      this.#player?.stop();
      void this.store?.chooseStep(at);
    },
    select: (item) => this.#select(item),
    go: (item) => this.#go(item),
    goToVariable: (variable) => this.#goToVariable(variable),
    showFinding: (finding) => this.#showFinding(finding),
    goToFinding: (step) => this.#goToFinding(step),
    followPath: (step) => {
      const next = nextStop(this.#stops, this.#selected, step);
      if (next !== null) {
        this.#goAlong(next.node);
      }
    },
    togglePlay: () => this.#player?.toggle(),
    toggleSide: () => (this.side = !(this.side ?? hasRoom())),
    toggleTroubled: () => this.#toggleTroubled(),
    toggleKeys: () => (this.keysShown = !this.keysShown),
    resize: (pane, size) => {
      const whole = size === null ? null : Math.round(size);
      this.drawn = {...this.drawn, [pane]: whole};
      remember(pane, whole === null ? null : String(whole));
    },
    light: (items) => (this.found = items === null ? null : this.#withGroups(items)),
    picture: (kind) => this.#view?.picture(kind) ?? Promise.resolve(null),
    openAround: (items) => this.#view?.openAround(items),
    focusOn: (element) => this.renderRoot.querySelector<HTMLElement>(element)?.focus(),
  };

  /** The view in an address after the reader went back or forward. */
  #goBackTo(place: Place): void {
    const store = this.store as Store;
    const step = place.step === undefined ? undefined : Number(place.step);
    const {run, overview} = store.state;
    this.#written.forget();
    this.#link = place;
    this.absent = [];
    this.view = viewOf(place, this.#start);
    this.#mustReveal = this.view.selected !== "";
    if (place.run !== undefined && place.run !== run) {
      void store.open(place.run, step);
    } else if (overview !== null) {
      void store.chooseStep(step === undefined ? overview.steps.length - 1 : overview.steps.indexOf(nearest(overview.steps, step)));
    }
  }

  /** Items, and the groups that hide them. */
  #withGroups(items: readonly number[]): ReadonlySet<number> {
    const tree = this.#derived.model?.tree;
    return new Set(tree === undefined ? [] : items.flatMap((item) => [item, ...ancestorsOf(tree, item)]));
  }

  /** Whoever presses this wants to see them, so the table opens too. */
  #toggleTroubled(): void {
    this.onlyTroubled = !(this.view.tab === "variables" && this.onlyTroubled);
    this.#look({tab: "variables"});
  }

  /** The selection and the open groups are kept, by name, if the other run has them. */
  #chooseRun(run: string): void {
    this.#look({finding: null, all: false});
    [this.#link, this.absent] = [null, []];
    if (run === this.store?.state.run) {
      return;
    }
    this.#mustReveal = this.view.selected !== "";
    void this.store?.chooseRun(run);
  }

  #select(item: number): void {
    this.#closeHint();
    this.#look({selected: this.#derived.nameOf(item), finding: item < 0 ? null : this.view.finding});
  }

  #go(item: number): void {
    this.#select(item);
    this.#view?.reveal(item);
  }

  /** The items of the chosen finding's path. */
  get #stops(): readonly Stop[] {
    return this.#derived.stopsOf(this.view.finding);
  }

  /** The camera moves no further than necessary to show the path. */
  #goAlong(node: number): void {
    this.#view?.openAround([node]);
    this.#select(node);
  }

  #goToVariable(variable: number): void {
    const node = this.#derived.model?.tree.graph.nodeOfVariable[variable] ?? -1;
    if (node >= 0) {
      this.#go(node);
    }
  }

  /** Whoever selects something has seen how to read the picture. */
  readonly #closeHint = (): void => {
    if (!this.hinted) {
      this.hinted = true;
      remember(HINT, "read");
    }
  };

  readonly #pageOf = (cause: string): string | null => this.store?.source.pageOf(cause) ?? null;

  readonly #onFinding = ({detail}: CustomEvent<Finding>): void => {
    this.side = hasRoom() && this.side;
    this.#showFinding(detail);
  };

  /** One that began in an earlier step is shown there. */
  #showFinding(finding: Finding): void {
    const began = finding.began === null ? -1 : (this.store?.state.overview?.steps.indexOf(finding.began) ?? -1);
    if (began >= 0) {
      this.#awaited = finding;
      this.#asked.chooseStep(began);
    }
    this.#closeHint();
    const key = keyOf(finding);
    const path = this.#derived.pathOf(key);
    const loss = this.store?.state.trace?.targets[finding.target]?.name ?? "";
    this.#look({finding: key, loss, selected: path === null ? this.view.selected : this.#derived.nameOf(mainOf(path))});
    if (path !== null) {
      this.#view?.showPath(path);
    }
  }

  #showAwaited(): void {
    const [awaited, {diagnosis}] = [this.#awaited, this.#derived];
    if (awaited === null || diagnosis === null || diagnosis.step !== awaited.began) {
      return;
    }
    this.#awaited = null;
    const finding = sameIn(diagnosis, awaited);
    if (finding !== null && keyOf(finding) !== this.view.finding) {
      this.#showFinding(finding);
    }
  }

  #goToFinding(step: 1 | -1): void {
    const finding = neighbour(inOrder(this.#derived.diagnosis?.findings ?? []), this.view.finding, step);
    if (finding !== null) {
      this.#showFinding(finding);
    }
  }
}

customElements.define("gf-app", App);
