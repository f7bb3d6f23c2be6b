/**
 * Values derived from the state: the model, its flow, the lit items. Each is computed again only when its inputs
 * change.
 */

import type {Overview} from "../api/routes.ts";
import type {Condition} from "../draw/look.ts";
import {Addresses} from "../model/addresses.ts";
import {alikeOf, NOTHING_ALIKE, type Alike} from "../model/alike.ts";
import {changesIn, type Changes} from "../model/changes.ts";
import {compare, type Comparison} from "../model/compare.ts";
import {flowOf, troublesOf, type Flow, type Troubles} from "../model/flow.ts";
import {inOrder, keyOf} from "../model/findings.ts";
import {answersFor, mainTarget, type Answers, type StepNumbers} from "../model/gradients.ts";
import type {FlowGraph} from "../model/graph.ts";
import {measured, type Measure, type Measured} from "../model/measure.ts";
import {blamedOps, modelOf, type Model} from "../model/model.ts";
import {initiallyOpen} from "../model/opening.ts";
import {mainOf, pathOf, type Path} from "../model/paths.ts";
import {rowsOf, type Row} from "../model/rows.ts";
import type {Scale} from "../model/scale.ts";
import {indexOf, type Index} from "../model/search.ts";
import {stopsOf, type Stop} from "../model/stops.ts";
import {answersForTerm, partsOf, termNamed, type Parts} from "../model/term_view.ts";
import type {Tree} from "../model/tree.ts";
import type {Diagnosis, Finding, Status, Trace} from "../record.ts";
import type {Other} from "./beside.ts";
import {remembering, steady} from "./remembering.ts";
import type {State} from "./state.ts";
import type {View} from "./view.ts";

const NONE: ReadonlySet<number> = new Set();

/** A run whose gradients are drawn over its steps. */
export interface Drawn {
  readonly overview: Overview;
  readonly trace: Trace;
  readonly target: number;
}

export class Derived {
  model: Model | null = null;
  /** A message that says why the trace cannot be shown. */
  problem = "";
  condition: Condition | null = null;
  initiallyOpen: ReadonlySet<number> = new Set();
  /** Null while none is known for the shown trace. */
  diagnosis: Diagnosis | null = null;
  /** The path of the worst finding that has one and is more than information. */
  worst: Path | null = null;
  /** Whether these are based on a report: the graph may be shown before its report is there. */
  judged = false;
  addresses: Addresses | null = null;
  /** Index of the term whose gradient is shown; -1 for the whole loss. */
  term = -1;
  /** Compared with the other run; null if there is none. */
  comparison: Comparison | null = null;
  #alike: Alike = NOTHING_ALIKE;
  /** The tree that is shown, and the report by which its groups were opened. */
  #opener: {readonly tree: Tree | null; readonly diagnosis: Diagnosis | null} = {tree: null, diagnosis: null};
  #trace: Trace | null = null;
  /** A trace that is invalid; it is not tried again. */
  #unusable: Trace | null = null;
  /** Ops that were ever named by a finding, and therefore are nodes in the graph of this trace. */
  #kept: ReadonlySet<number> = NONE;

  readonly #modelOf = remembering(modelOf);
  readonly #addressesOf = remembering((tree: Tree) => new Addresses(tree));
  readonly #initiallyOpen = remembering(initiallyOpen);
  readonly #worstOf = remembering((tree: Tree, diagnosis: Diagnosis | null) => shownPath(tree, worstIn(diagnosis), pathOf));
  readonly #answersFor = remembering((tree: Tree, target: number) => answersFor(tree.graph, target));
  readonly #answersForTerm = remembering((tree: Tree, term: number, whole: Answers) => answersForTerm(tree.graph, term, whole));
  readonly #partsOf = remembering(partsOf);
  /** The reports of most steps say the same: then nothing flows elsewhere. */
  readonly #steadyReport = steady(saidBy);
  readonly #flowOf = remembering((tree: Tree, answers: Answers, report: Diagnosis | null) => flowOf(tree.graph, answers, report));
  readonly #troublesOf = remembering((tree: Tree, flow: Flow) => troublesOf(flow, tree.items));
  readonly #compare = remembering((trace: Trace, diagnosis: Diagnosis | null, otherTrace: Trace, otherDiagnosis: Diagnosis | null) =>
    compare({trace: otherTrace, diagnosis: otherDiagnosis}, {trace, diagnosis}),
  );
  readonly #changesIn = remembering((tree: Tree, comparison: Comparison | null) => (comparison === null ? null : changesIn(tree, comparison)));
  readonly #measured = remembering((measure: Measure, tree: Tree, answers: Answers, numbers: StepNumbers | null, scale: Scale | null) =>
    measured(measure, tree.graph, answers, numbers, scale),
  );
  readonly #condition = remembering(
    (
      tree: Tree,
      flow: Flow,
      troubles: Troubles,
      answers: Answers,
      numbers: StepNumbers | null,
      diagnosis: Diagnosis | null,
      measured: Measured,
      changes: Changes | null,
      alike: Alike,
      parts: Parts | null,
    ): Condition => ({tree, flow, troubles, answers, numbers, diagnosis, measured, changes, alike, parts}),
  );
  readonly #alikeOf = remembering(alikeOf);
  readonly #pathOf = remembering(pathOf);
  readonly #stopsOf = remembering(({tree, answers, numbers}: Condition, path: Path) => stopsOf(path, tree, answers, numbers));
  readonly #groupsNamed = remembering((addresses: Addresses, open: readonly string[]) => addresses.groupsNamed(open));
  readonly #indexOf = remembering(indexOf);
  readonly #rowsOf = remembering(({tree, diagnosis, answers, numbers}: Condition) => rowsOf(tree.graph.trace, diagnosis, answers, numbers));
  /** The flows of the groups that are open at first, made before anybody asks. */
  readonly #firstFlows = remembering(({tree, flows}: Model) => [tree.root, ...initiallyOpen(tree, null)].map((group) => flows.get(group)));

  /** The loss that is shown, step by step; undefined where its value was not recorded. */
  readonly losses = remembering((overview: Overview | null, trace: Trace | null, target: number) =>
    overview?.losses.map((each) => (trace?.targets[target]?.measured === false ? undefined : each[target])) ?? [],
  );

  /** The names of the variables whose gradients are drawn over the steps: the chosen one last. */
  readonly charted = remembering((names: readonly string[], chosen: string | undefined) => [...new Set([...names, ...(chosen === undefined ? [] : [chosen])])]);

  /** The runs that they are drawn of. */
  readonly drawn = remembering((overview: Overview | null, trace: Trace | null, target: number, other: Other | null): readonly Drawn[] => {
    const shown = overview === null || trace === null || overview.steps.length === 0 ? [] : [{overview, trace, target}];
    return shown.length > 0 && other !== null && other.overview.steps.length > 0 ? [...shown, other] : shown;
  });

  /** `term`: name of the chosen term of the loss; empty for the whole loss. */
  update(state: State, other: Other | null, measure: Measure, term: string): void {
    if (state.trace !== null && state.trace === this.#unusable) {
      return;
    }
    try {
      this.#update(state, other, measure, term);
      this.problem = "";
    } catch (error) {
      this.#unusable = state.trace ?? state.coming;
      this.#update({...state, trace: null, coming: null}, null, measure, term);
      this.problem = `The recorded graph cannot be shown (${error instanceof Error ? error.message : String(error)}): the log may be damaged: copy it again, or record a new run. If it is intact, this is a bug in the page: please report it.`;
    }
  }

  #update(state: State, other: Other | null, measure: Measure, term: string): void {
    const {trace, target, numbers, scale} = state;
    this.diagnosis = state.diagnosis !== null && state.diagnosis.trace === trace?.index ? state.diagnosis : null;
    if (trace === null) {
      this.model = null;
      this.addresses = null;
      this.comparison = null;
      this.condition = null;
      this.#prepare(state.coming);
      return;
    }
    // Without a report it is not known what to open: wait for it, unless it takes too long.
    if (this.diagnosis === null && this.#trace !== trace && !state.impatient && !state.problems.has("report")) {
      this.#prepare(trace);
      return;
    }
    this.#keep(trace, blamedOps(trace, this.diagnosis));
    const known = this.model;
    this.model = this.#modelOf(trace, this.#kept);
    this.#alike = known === this.model ? this.#alike : NOTHING_ALIKE;
    const {tree} = this.model;
    const {diagnosis} = this;
    this.addresses = this.#addressesOf(tree);
    if (this.#opener.tree !== tree || (!this.judged && diagnosis !== null)) {
      this.#opener = {tree, diagnosis};
    }
    this.judged ||= diagnosis !== null;
    this.initiallyOpen = this.#initiallyOpen(tree, this.#opener.diagnosis);
    this.worst = this.#worstOf(tree, this.#opener.diagnosis);
    const whole = this.#answersFor(tree, target);
    this.term = term === "" ? -1 : termNamed(trace, target, term);
    const answers = this.term < 0 ? whole : this.#answersForTerm(tree, this.term, whole);
    const parts = this.term < 0 || numbers === null ? null : this.#partsOf(tree, target, this.term, numbers);
    const flow = this.#flowOf(tree, answers, this.#steadyReport(diagnosis));
    const troubles = this.#troublesOf(tree, flow);
    this.comparison = other === null ? null : this.#compare(trace, diagnosis, other.trace, other.diagnosis);
    const changes = this.#changesIn(tree, this.comparison);
    const shown = this.#measured(measure, tree, answers, numbers, scale);
    this.condition = this.#condition(tree, flow, troubles, answers, numbers, diagnosis, shown, changes, this.#alike, parts);
  }

  /** Work that may come after the first picture. Returns whether it changed anything. */
  finish(): boolean {
    const {model} = this;
    const before = this.#alike;
    this.#alike = model === null ? NOTHING_ALIKE : this.#alikeOf(model.tree);
    return this.#alike !== before;
  }

  /** Whether there is a trace without any ops. */
  get isEmpty(): boolean {
    const tree = this.model?.tree;
    return tree !== undefined && tree.items[tree.root].size === 0;
  }

  /**
   * The path of the finding with a key; null if there is none at this step, or if it is not about a part of the graph.
   */
  pathOf(key: string | null): Path | null {
    const finding = this.diagnosis?.findings.find((each) => keyOf(each) === key);
    if (key === null || finding === undefined || this.model === null) {
      return null;
    }
    return shownPath(this.model.tree, finding, this.#pathOf);
  }

  /** The path of the finding with a key, op by op; empty if it has none. */
  stopsOf(key: string | null): readonly Stop[] {
    const {condition} = this;
    const path = this.pathOf(key);
    return condition === null || path === null ? [] : this.#stopsOf(condition, path);
  }

  /** The name of an item in addresses; empty if there is none. */
  nameOf(item: number): string {
    return this.addresses?.nameOf(item) ?? "";
  }

  /** The item with a name in addresses; -1 if there is none. */
  itemNamed(name: string): number {
    return this.addresses?.itemNamed(name) ?? -1;
  }

  /** The open groups of a view; null for the default. */
  openIn(view: View): ReadonlySet<number> | null {
    const {addresses} = this;
    const {open} = view;
    return addresses === null || open === null ? null : this.#groupsNamed(addresses, open);
  }

  /** The search index; created on first use. */
  readonly searchable = (): Index => {
    const {model, diagnosis} = this;
    return model === null ? [] : this.#indexOf(model.tree, diagnosis);
  };

  /** The status of the variable that an item is; null for everything else. */
  readonly statusOf = (item: number): Status | null => {
    const node = this.model?.tree.graph.nodes[item];
    return node?.kind === "variable" ? (this.diagnosis?.variables[node.index]?.status ?? null) : null;
  };

  /** The rows of the table of variables. */
  rows(): readonly Row[] {
    return this.condition === null ? [] : this.#rowsOf(this.condition);
  }

  #keep(trace: Trace, blamed: ReadonlySet<number>): void {
    if (this.#trace !== trace) {
      this.#trace = trace;
      this.judged = false;
      this.#kept = blamed.size === 0 ? NONE : blamed;
    } else if ([...blamed].some((op) => !this.#kept.has(op))) {
      this.#kept = new Set([...this.#kept, ...blamed]);
    }
  }

  /** Computes in advance, while other responses are on their way, what will probably be needed. */
  #prepare(trace: Trace | null): void {
    if (trace !== null && this.#trace !== trace) {
      const model = this.#modelOf(trace, NONE);
      this.#answersFor(model.tree, mainTarget(trace));
      this.#firstFlows(model);
    }
  }
}

/** Everything in a report on which the flow depends. */
function saidBy(diagnosis: Diagnosis | null): string {
  const variables = diagnosis?.variables.map(({name, status}) => [name, status]);
  const findings = diagnosis?.findings.map(({severity, variables, culprit, path}) => [severity, variables, culprit, path]);
  return JSON.stringify([variables, findings]);
}

/** The worst finding that has a path and is no mere information. */
function worstIn(diagnosis: Diagnosis | null): Finding | undefined {
  return inOrder(diagnosis?.findings ?? []).find((each) => each.severity !== "info" && each.path.length > 0);
}

/** The path of a finding, by `pathOf`; null where there is none, or where it is about no part of the graph. */
function shownPath({graph}: Tree, finding: Finding | undefined, pathOf: (graph: FlowGraph, finding: Finding) => Path): Path | null {
  const path = finding === undefined ? null : pathOf(graph, finding);
  return path === null || (mainOf(path) < 0 && path.variables.length === 0) ? null : path;
}
