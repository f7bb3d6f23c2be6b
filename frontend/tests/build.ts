/** Makes traces and diagnoses for tests; says only what matters to them. */

import type {
  Diagnosis,
  Finding,
  Layer,
  Op,
  Outcome,
  Passes,
  Severity,
  Status,
  TensorGradient,
  Trace,
  Variable,
  VariableGradient,
} from "../src/record.ts";

interface OpSpec {
  readonly name: string;
  readonly type?: string;
  /** Names of ops, with how they pass after a space: `a`, or `a none`, `a yes carried`. */
  readonly from?: readonly string[];
  readonly reads?: string;
}

/** Ops in order; every variable that is read exists, and more if asked for. The last op is the loss. */
export function trace(specs: readonly OpSpec[], more: {variables?: readonly string[]; layers?: readonly Layer[]} = {}): Trace {
  const names = specs.map((spec) => spec.name);
  const read = specs.flatMap((spec) => (spec.reads === undefined ? [] : [spec.reads]));
  const variables = [...new Set([...read, ...(more.variables ?? [])])];
  const ops = specs.map((spec) => {
    const inputs = (spec.from ?? []).map((text, input) => {
      const [name, passes = "yes", carried = ""] = text.split(" ");
      return {op: names.indexOf(name), output: 0, input, passes: passes as Passes, carried: carried === "carried"};
    });
    return {
      name: spec.name,
      type: spec.type ?? "Sin",
      inputs,
      outputs: [{shape: [2], dtype: "float32"}],
      source: null,
      api: null,
      reads: spec.reads === undefined ? null : variables.indexOf(spec.reads),
      writes: null,
      custom_gradient: null,
      backward: false,
    } as unknown as Op;
  });
  return {
    index: 0,
    ops,
    variables: variables.map(
      (name) => ({name, shape: [2], dtype: "float32", trainable: true, tracked: true, computed: false, rebound: "", made: false, written: "", elsewhere: ""}) as unknown as Variable,
    ),
    targets: [{name: "loss", op: ops.length - 1, output: 0, source: null, unconnected: "none"}],
    variable_gradients: [],
    tensor_gradients: [],
    layers: more.layers ?? [],
    sources: [],
    notes: [],
    inputs: [],
    gradient_checks: [],
  } as unknown as Trace;
}

/** `ReadVariableOp` of a variable of that name. */
export function read(name: string, variable: string): OpSpec {
  return {name, type: "ReadVariableOp", reads: variable};
}

/** The trace with answers of the tape: for ops by name, for variables by name; rows in the order given. */
export function answered(base: Trace, answers: Readonly<Record<string, Outcome>>): Trace {
  const tensors: TensorGradient[] = [];
  const variables: VariableGradient[] = [];
  Object.entries(answers).forEach(([name, outcome], row) => {
    const value = outcome === "value" ? row : null;
    const op = base.ops.findIndex((each) => each.name === name);
    const variable = base.variables.findIndex((each) => each.name === name);
    if (op >= 0) {
      tensors.push({target: 0, op, output: 0, outcome, row: value});
    } else {
      variables.push({target: 0, variable, outcome, row: value, watched: true});
    }
  });
  return {...base, tensor_gradients: tensors, variable_gradients: variables};
}

export function diagnosis(base: Trace, statuses: Readonly<Record<string, Status>>, findings: readonly Finding[] = []): Diagnosis {
  const variables = base.variables.map(({name}) => ({
    name,
    status: statuses[name] ?? ("connected" as const),
    shape: [2],
    dtype: "float32",
    gradient: null,
    listed: true,
    written: "",
  }));
  return {format: 1, step: 0, trace: 0, summary: "", variables, findings, unverified: [], terms: [], verdict: {kind: "nothing_found", text: "", ruled_out: []}, fit: null};
}

/** A finding that blames the op called `culprit`, on a way given by the names of ops. */
export function finding(base: Trace, severity: Severity, variables: readonly string[], culprit: string, way: readonly string[] = []): Finding {
  const at = (name: string): number => base.ops.findIndex((op) => op.name === name);
  return {
    cause: "nondiff_comparison",
    severity,
    variables,
    op: culprit === "" ? null : {name: culprit, type: "Less"},
    source: null,
    message: "",
    fix: "",
    target: 0,
    culprit: culprit === "" ? -1 : at(culprit),
    path: way.map(at),
    edit: null,
    cost: "",
    tried: null,
    not_tried: "",
    alternatives: [],
    evidence: [],
    began: null,
    examples: null,
  };
}

/** A seeded generator of numbers from 0 to 1. */
export function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return state / 2147483648;
  };
}
