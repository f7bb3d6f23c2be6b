/**
 * Values derived from the state: the model, its flow, the lit items. Each is computed again only when its inputs
 * change.
 */

import type {Condition} from "../draw/look.ts";
import {Addresses} from "../model/addresses.ts";
import {alikeOf, NOTHING_ALIKE, type Alike} from "../model/alike.ts";
import {looksIn, type Look} from "../model/bundle.ts";
import {changesIn} from "../model/changes.ts";
import {compare, type Comparison} from "../model/compare.ts";
import {flowOf, troublesOf} from "../model/flow.ts";
import {inOrder, keyOf} from "../model/findings.ts";
import {answersFor, mainTarget} from "../model/gradients.ts";
import {measured, type Measure} from "../model/measure.ts";
import {blamedOps, modelOf, type Model} from "../model/model.ts";
import {initiallyOpen} from "../model/opening.ts";
import {mainOf, pathOf, type Path} from "../model/paths.ts";
import {indexOf, type Index} from "../model/search.ts";
import {stopsOf, type Stop} from "../model/stops.ts";
import type {Diagnosis, Trace} from "../record.ts";
import type {Other} from "./beside.ts";
import type {State} from "./state.ts";
import type {View} from "./view.ts";

const NONE: ReadonlySet<number> = new Set();

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
  /** Looks of edges that occur. */
  looks: ReadonlySet<Look> = new Set();
  addresses: Addresses | null = null;
  /** Compared with the other run; null if there is none. */
  comparison: Comparison | null = null;
  #alike: Alike = NOTHING_ALIKE;
  readonly #memory = new Map<string, {causes: readonly unknown[]; value: unknown}>();
  #trace: Trace | null = null;
  /** A trace that is invalid; it is not tried again. */
  #unusable: Trace | null = null;
  /** Ops that were ever named by a finding, and therefore are nodes in the graph of this trace. */
  #kept: ReadonlySet<number> = NONE;

  update(state: State, other: Other | null, measure: Measure): void {
    if (state.trace !== null && state.trace === this.#unusable) {
      return;
    }
    try {
      this.#update(state, other, measure);
      this.problem = "";
    } catch (error) {
      this.#unusable = state.trace ?? state.coming;
      this.#update({...state, trace: null, coming: null}, null, measure);
      this.problem = `The recorded graph cannot be shown (${error instanceof Error ? error.message : String(error)}): the log is damaged, copy it again or record a new run. If the log is intact, this is a bug in the page: please report it.`;
    }
  }

  #update(state: State, other: Other | null, measure: Measure): void {
    const {trace, target, numbers, scale} = state;
    this.diagnosis = state.diagnosis !== null && state.diagnosis.trace === trace?.index ? state.diagnosis : null;
    if (trace === null) {
      this.model = null;
      this.addresses = null;
      this.comparison = null;
      this.condition = null;
      this.looks = new Set();
      this.#prepare(state.coming);
      return;
    }
    // // Without a report it is not known what to open: wait for it, unless it takes too long.
    if (this.diagnosis === null && this.#trace !== trace && !state.impatient && !state.problems.has("report")) {
      this.#prepare(trace);
      return;
    }
    this.#keep(trace, blamedOps(trace, this.diagnosis));
    const known = this.model;
    this.model = this.once("model", [trace, this.#kept], () => modelOf(trace, this.#kept));
    this.#alike = known === this.model ? this.#alike : NOTHING_ALIKE;
    const {tree} = this.model;
    this.addresses = this.once("addresses", [tree], () => new Addresses(tree));
    this.judged ||= this.diagnosis !== null;
    this.initiallyOpen = this.once("open", [tree, this.judged], () => initiallyOpen(tree, this.diagnosis));
    this.worst = this.once("worst", [tree, this.judged], () => this.pathOf(keyOfWorst(this.diagnosis)));
    const answers = this.once("answers", [tree, target], () => answersFor(tree.graph, target));
    const {diagnosis} = this;
    // // The reports of most steps agree: then the flow is the same.
    const said = this.once("said", [diagnosis], () => saidBy(diagnosis));
    const flow = this.once("flow", [tree, answers, said], () => flowOf(tree.graph, answers, diagnosis));
    const troubles = this.once("troubles", [tree, flow], () => troublesOf(flow, tree.items));
    this.looks = this.once("looks", [flow, answers, numbers], () => looksIn(flow, answers, numbers));
    this.comparison =
      other === null ? null : this.once("comparison", [trace, diagnosis, other.trace, other.diagnosis], () => compare(other, {trace, diagnosis}));
    const {comparison} = this;
    const changes = this.once("changes", [tree, comparison], () => (comparison === null ? null : changesIn(tree, comparison)));
    const shown = this.once("measured", [tree, answers, numbers, scale, measure], () => measured(measure, tree.graph, answers, numbers, scale));
    const causes = [tree, flow, troubles, answers, numbers, diagnosis, shown, changes, this.#alike];
    this.condition = this.once("condition", causes, () => ({
      tree,
      flow,
      troubles,
      answers,
      numbers,
      diagnosis,
      measured: shown,
      alike: this.#alike,
      changes,
    }));
  }

  /** Work that may come after the first picture. Returns whether it changed anything. */
  finish(): boolean {
    const {model} = this;
    const before = this.#alike;
    this.#alike = model === null ? NOTHING_ALIKE : this.once("alike", [model], () => alikeOf(model.tree));
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
    const {graph} = this.model.tree;
    const path = this.once("path", [graph, finding], () => pathOf(graph, finding));
    return mainOf(path) < 0 && path.variables.length === 0 ? null : path;
  }

  /** The path of the finding with a key, op by op; empty if it has none. */
  stopsOf(key: string | null): readonly Stop[] {
    const {condition} = this;
    const path = this.pathOf(key);
    return condition === null || path === null ? [] : this.once("stops", [condition, path], () => stopsOf(path, condition.tree, condition.answers, condition.numbers));
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
    return addresses === null || open === null ? null : this.once("opened", [addresses, open], () => addresses.groupsNamed(open));
  }

  /** The search index; created on first use. */
  readonly searchable = (): Index => {
    const {model, diagnosis} = this;
    return model === null ? [] : this.once("index", [model, diagnosis], () => indexOf(model.tree, diagnosis));
  };

  /** The value, computed again when an input has changed. */
  once<T>(name: string, causes: readonly unknown[], compute: () => T): T {
    const known = this.#memory.get(name);
    if (known !== undefined && causes.every((cause, index) => cause === known.causes[index])) {
      return known.value as T;
    }
    const value = compute();
    this.#memory.set(name, {causes, value});
    return value;
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
      const {tree, flows} = this.once("model", [trace, NONE], () => modelOf(trace, NONE));
      this.once("answers", [tree, mainTarget(trace)], () => answersFor(tree.graph, mainTarget(trace)));
      this.once("flows", [flows], () => [tree.root, ...initiallyOpen(tree, null)].map((group) => flows.get(group)));
    }
  }
}

/** Everything in a report on which the flow depends. */
function saidBy(diagnosis: Diagnosis | null): string {
  const variables = diagnosis?.variables.map(({name, status}) => [name, status]);
  const findings = diagnosis?.findings.map(({severity, variables, culprit, path}) => [severity, variables, culprit, path]);
  return JSON.stringify([variables, findings]);
}

function keyOfWorst(diagnosis: Diagnosis | null): string | null {
  const finding = inOrder(diagnosis?.findings ?? []).find((each) => each.severity !== "info" && each.path.length > 0);
  return finding === undefined ? null : keyOf(finding);
}
