/** The details of one item: a list of facts, its inputs, and its rows of statistics. */

import type {Source, Tensor} from "../record.ts";
import {formatShape, plural} from "./format.ts";
import type {Answer, Answers} from "./gradients.ts";
import type {FlowGraph} from "./graph.ts";
import {liesInFunction} from "./nested.ts";
import {isGroup, type Tree} from "./tree.ts";
import {OUTCOME, PASSES} from "./words.ts";

export interface InputDetail {
  /** The item to open; -1 if it was left out. */
  readonly node: number;
  readonly name: string;
  readonly blocked: boolean;
  readonly words: string;
}

export interface TensorDetail {
  readonly name: string;
  readonly answer: Answer;
  /** Why there are no statistics, if there are none. */
  readonly words: string;
}

export interface Details {
  readonly title: string;
  readonly kind: string;
  readonly name: string;
  readonly facts: readonly (readonly [string, string])[];
  readonly source: Source | null;
  readonly inputs: readonly InputDetail[];
  /** Items that use its output. */
  readonly users: readonly number[];
  /** For a group, the variables inside. */
  readonly members: readonly number[];
  /** Rows with the range of an input at which the op may not be finite: of its values, or of their magnitudes. */
  readonly ranges: readonly number[];
  /** Its gradients: one for a variable, one for each output of an op. */
  readonly tensors: readonly TensorDetail[];
  /** Index of its variable; -1 for everything else. */
  readonly variable: number;
}

export function detailsOf(tree: Tree, item: number, answers: Answers): Details {
  if (isGroup(tree, item)) {
    return groupDetails(tree, item);
  }
  const node = tree.graph.nodes[item];
  const details = {op: opDetails, variable: variableDetails, loss: lossDetails}[node.kind];
  return {...details(tree.graph, node.index, answers), users: usersOf(tree.graph, item)};
}

function usersOf(graph: FlowGraph, node: number): number[] {
  return [...new Set(graph.outgoing[node].map((edge) => graph.edges[edge].to))];
}

const NOTHING = {facts: [], source: null, inputs: [], users: [], members: [], ranges: [], tensors: [], variable: -1} as const;

function groupDetails(tree: Tree, item: number): Details {
  const {label, name, layer, size} = tree.items[item];
  const members = nodesIn(tree, item).filter((node) => tree.graph.nodes[node].kind === "variable");
  return {
    ...NOTHING,
    title: layer?.name ?? label,
    kind: layer === null ? "Group" : `Layer ${layer.type}`,
    name: name.includes("[") ? label : name,
    facts: [["Inside", `${plural(size, "node")}, ${plural(members.length, "variable")}`]],
    members,
  };
}

function nodesIn(tree: Tree, group: number): number[] {
  const inside = [group];
  for (let at = 0; at < inside.length; at += 1) {
    inside.push(...tree.items[inside[at]].children);
  }
  return inside.filter((item) => !isGroup(tree, item));
}

function opDetails(graph: FlowGraph, index: number, answers: Answers): Details {
  const {trace} = graph;
  const op = trace.ops[index];
  const outputs = op.outputs.map(({shape, dtype}) => `${dtype} ${formatShape(shape)}`).join("; ");
  const facts: [string, string][] = [["Output", outputs || "none"]];
  if (op.api !== null) {
    facts.unshift(["Created by", op.api]);
  }
  if (op.custom_gradient !== null) {
    facts.push(["Custom gradient", op.custom_gradient]);
  }
  for (const [word, variable] of [["Reads", op.reads], ["Writes", op.writes]] as const) {
    if (variable !== null) {
      facts.push([word, trace.variables[variable].name]);
    }
  }
  const many = op.outputs.length > 1;
  return {
    ...NOTHING,
    title: op.type,
    kind: "Op",
    name: op.name,
    facts,
    source: op.source === null ? null : trace.sources[op.source],
    inputs: op.inputs.map((input) => ({
      node: input.op < 0 ? -1 : graph.nodeOfOp[input.op],
      name: inputName(graph, input.op),
      blocked: input.passes !== "yes" && input.passes !== "unknown",
      words: PASSES[input.passes] + (input.carried ? ", from the previous iteration" : ""),
    })),
    // Older logs have none.
    ranges: (trace.ranges ?? []).filter((each) => each.op === index).map(({row}) => row),
    tensors: op.outputs.map((_, output) => ({
      name: many ? `Output ${output}` : "",
      ...gradientOf(graph, index, output, answers),
    })),
  };
}

function gradientOf(graph: FlowGraph, op: number, output: number, answers: Answers): Omit<TensorDetail, "name"> {
  const answer = answers.tensor(op, output);
  const {trace} = graph;
  const nested = answer.outcome === "not_recorded" && liesInFunction(trace.ops, op);
  const hidden = nested ? "not recorded: inside a function, where the tape sees only the call" : null;
  return {answer, words: carriesNone(trace.ops[op].outputs[output]) ?? hidden ?? wordsOf(answer)};
}

function wordsOf({outcome}: Answer): string {
  return outcome === "value" ? "not measured" : OUTCOME[outcome];
}

/** Types whose tensors the tape tracks. */
const DIFFERENTIABLE = /^(b?float|complex|resource|variant)/;

/** Why a tensor cannot have a gradient; null if it can. */
function carriesNone({dtype}: Pick<Tensor, "dtype">): string | null {
  const article = dtype.startsWith("int") ? "an" : "a";
  return DIFFERENTIABLE.test(dtype) ? null : `none: ${article} ${dtype} tensor carries no gradient`;
}

function inputName(graph: FlowGraph, op: number): string {
  const node = graph.nodes[graph.nodeOfOp[op] ?? -1];
  return node === undefined ? "data, no variable" : node.name;
}

function variableDetails(graph: FlowGraph, index: number, answers: Answers): Details {
  const variable = graph.trace.variables[index];
  const answer = answers.variables[index];
  const facts: [string, string][] = [
    ["Value", `${variable.dtype} ${formatShape(variable.shape)}`],
    ["Trainable", variable.trainable ? "yes" : "no"],
  ];
  if (!variable.tracked) {
    facts.push(["In the model", "no: the model does not track it"]);
  }
  return {
    ...NOTHING,
    title: graph.nodes[graph.nodeOfVariable[index]]?.label ?? variable.name,
    kind: "Variable",
    name: variable.name,
    facts,
    tensors: [{name: "", answer, words: carriesNone(variable) ?? wordsOf(answer)}],
    variable: index,
  };
}

function lossDetails(graph: FlowGraph, index: number, answers: Answers): Details {
  const target = graph.trace.targets[index];
  const op = graph.trace.ops[target.op];
  return {
    ...NOTHING,
    title: target.name,
    kind: "Loss",
    name: op?.name ?? target.name,
    facts: [["Missing gradients become", target.unconnected === "zero" ? "zeros" : "None"]],
    source: target.source === null ? null : graph.trace.sources[target.source],
    tensors: op === undefined ? [] : [{name: "", ...gradientOf(graph, target.op, target.output, answers)}],
  };
}
