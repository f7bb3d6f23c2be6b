/** The differences between two runs of essentially the same model: `before`, and `now`. */

import {SEVERITIES, type Diagnosis, type Finding, type Op, type Status, type Trace} from "../record.ts";
import {STATUS} from "./words.ts";

/**
 * better     a gradient of normal size, or one that is closer to it, where there was none
 * worse      the other way round
 * changed    another status, neither better nor worse
 * new, gone  there is no such variable in the other run
 */
export type Change = "better" | "worse" | "changed" | "new" | "gone" | "same";

export interface VariableChange {
  /** Index in the trace of now; -1 if it is gone. */
  readonly variable: number;
  /** Index in the trace of before; -1 if it is new. */
  readonly other: number;
  readonly name: string;
  readonly change: Change;
  readonly before: Status | null;
  readonly now: Status | null;
}

export interface OpChange {
  /** Index in the trace of now; -1 if it is gone. */
  readonly op: number;
  readonly name: string;
  readonly change: "new" | "changed" | "gone";
  readonly words: string;
}

export interface FindingChange {
  readonly finding: Finding;
  readonly change: "gone" | "came" | "stayed";
}

export interface Comparison {
  readonly variables: readonly VariableChange[];
  readonly ops: readonly OpChange[];
  /** Worst first: gone, new, unchanged. */
  readonly findings: readonly FindingChange[];
}

/** One run at one step. */
export interface Side {
  readonly trace: Trace;
  readonly diagnosis: Diagnosis | null;
}

export function compare(before: Side, now: Side): Comparison {
  return {
    variables: variableChanges(before, now),
    ops: opChanges(before.trace, now.trace),
    findings: findingChanges(before.diagnosis?.findings ?? [], now.diagnosis?.findings ?? []),
  };
}

function variableChanges(before: Side, now: Side): VariableChange[] {
  const [explainedBefore, explainedNow] = [explained(before.diagnosis), explained(now.diagnosis)];
  const left = keyed(before.trace.variables.map(({name}) => unnumbered(name)));
  const right = keyed(now.trace.variables.map(({name}) => unnumbered(name)));
  const others = new Map(left.map((key, index) => [key, index]));
  const known = new Set(right);
  const changes = right.map((key, variable): VariableChange => {
    const other = others.get(key) ?? -1;
    const [was, is] = [statusOf(before, other), statusOf(now, variable)];
    const {name} = now.trace.variables[variable];
    const [fine, isFine] = [explainedBefore.has(before.trace.variables[other]?.name), explainedNow.has(name)];
    const hasFaded = faded(before, other) || faded(now, variable);
    const change = other < 0 ? "new" : hasFaded && was !== is ? "changed" : changeOf(was, is, fine, isFine);
    return {variable, other, name, change, before: was, now: is};
  });
  const gone = left.flatMap((key, other): VariableChange[] => {
    const {name} = before.trace.variables[other];
    return known.has(key) ? [] : [{variable: -1, other, name, change: "gone", before: statusOf(before, other), now: null}];
  });
  return [...changes, ...gone];
}

function statusOf({diagnosis}: Side, variable: number): Status | null {
  return diagnosis?.variables[variable]?.status ?? null;
}

/**
 * Whether its gradient vanishes on its path although the loss is not close to zero: even if that is explained, it is no
 * better than before.
 */
function faded({trace, diagnosis}: Side, variable: number): boolean {
  const status = diagnosis?.variables[variable]?.status;
  const name = trace.variables[variable]?.name;
  const isExplained = (diagnosis?.findings ?? []).some(({cause, severity, variables}) => cause === "vanishing_depth" && severity === "info" && variables.includes(name));
  return isExplained && (status === "vanishing" || status === "zero") && diagnosis?.verdict.kind !== "learned";
}

const RANK = {bad: 0, warn: 1, quiet: 2, good: 2};

/** Variables that findings mention only to explain them. Changes of these are neither better nor worse. */
function explained(diagnosis: Diagnosis | null): Set<string> {
  const of = (info: boolean): string[] =>
    (diagnosis?.findings ?? []).filter(({severity}) => (severity === "info") === info).flatMap(({variables}) => variables);
  const names = new Set(of(true));
  of(false).forEach((name) => names.delete(name));
  return names;
}

function changeOf(before: Status | null, now: Status | null, fine: boolean, isFine: boolean): Change {
  if (before === now || before === null || now === null) {
    return "same";
  }
  const [was, is] = [fine ? RANK.quiet : RANK[STATUS[before].tone], isFine ? RANK.quiet : RANK[STATUS[now].tone]];
  return is > was ? "better" : is < was ? "worse" : "changed";
}

/** Ops are the same if their names are the same, except for the numbers that Keras and TensorFlow append. */
function opChanges(before: Trace, now: Trace): OpChange[] {
  const left = new Map(keyed(before.ops.map(({name}) => unnumbered(name))).map((key, index) => [key, index]));
  const right = keyed(now.ops.map(({name}) => unnumbered(name)));
  const known = new Set(right);
  const changes = right.flatMap((key, op): OpChange[] => {
    const other = left.get(key);
    const {name, type} = now.ops[op];
    if (other === undefined) {
      return [{op, name, change: "new", words: `new: ${type}`}];
    }
    const words = difference(before.ops[other], now.ops[op]);
    return words === "" ? [] : [{op, name, change: "changed", words}];
  });
  const gone = [...left].filter(([key]) => !known.has(key)).map(([, index]): OpChange => {
    const {name, type} = before.ops[index];
    return {op: -1, name, change: "gone", words: `gone: ${type}`};
  });
  return [...changes, ...gone];
}

/** The difference between two ops of one name; empty if it does not matter to a gradient. */
function difference(before: Op, now: Op): string {
  if (before.type !== now.type) {
    return `was ${before.type}, is ${now.type}`;
  }
  if (before.custom_gradient !== now.custom_gradient) {
    return "a different custom gradient";
  }
  const [was, is] = [before, now].map((op) => op.inputs.filter(({passes}) => passes === "yes").length);
  if (was !== is && before.inputs.length === now.inputs.length) {
    return is > was ? "now propagates the gradient" : "no longer propagates the gradient";
  }
  return "";
}

/** Findings are the same if they have the same cause, and name ops of one name or share a variable. */
function findingChanges(before: readonly Finding[], now: readonly Finding[]): FindingChange[] {
  const left = [...before];
  const changes = now.map((finding): FindingChange => {
    const at = left.findIndex((other) => isSame(other, finding));
    if (at >= 0) {
      left.splice(at, 1);
    }
    return {finding, change: at >= 0 ? "stayed" : "came"};
  });
  const all = [...left.map((finding): FindingChange => ({finding, change: "gone"})), ...changes];
  const rank = ({finding, change}: FindingChange): number =>
    3 * SEVERITIES.indexOf(finding.severity) + ["gone", "came", "stayed"].indexOf(change);
  return all.sort((a, b) => rank(a) - rank(b));
}

function isSame(a: Finding, b: Finding): boolean {
  const names = new Set(a.variables.map(unnumbered));
  const sameOp = a.op !== null && b.op !== null && unnumbered(a.op.name) === unnumbered(b.op.name);
  return a.cause === b.cause && (sameOp || b.variables.some((name) => names.has(unnumbered(name))));
}

/** A name without the numbers that distinguish copies of a layer, or of a model. */
export function unnumbered(name: string): string {
  return name.replace(/(_\d+)+(?=\/|$)/g, "");
}

/** Makes names unique by counting their occurrences. */
function keyed(names: readonly string[]): string[] {
  const counts = new Map<string, number>();
  return names.map((name) => {
    const count = counts.get(name) ?? 0;
    counts.set(name, count + 1);
    return `${name}#${count}`;
  });
}

/** The result of the comparison in one sentence. */
export function verdict({variables, findings}: Comparison): string {
  const count = (change: Change): number => variables.filter((each) => each.change === change).length;
  const told = (change: "gone" | "came"): number =>
    findings.filter((each) => each.change === change && each.finding.severity !== "info").length;
  const parts = [
    some(count("better"), "variable is better", "variables are better"),
    some(count("worse"), "variable is worse", "variables are worse"),
    some(told("gone"), "finding is gone", "findings are gone"),
    some(told("came"), "finding is new", "findings are new"),
    some(count("new"), "variable is new", "variables are new"),
    some(count("gone"), "variable is gone", "variables are gone"),
  ].filter((part) => part !== "");
  return parts.length === 0 ? "No variable is better or worse, and no error or warning is new or gone." : `${parts.join(", ")}.`;
}

function some(count: number, one: string, many: string): string {
  return count === 0 ? "" : `${count} ${count === 1 ? one : many}`;
}
