/**
 * The trace as the graph that is drawn: a variable is a node that replaces the ops that read it; a loss is a node; an
 * Identity is not. Ops that blocked a gradient, or that a finding names, are always kept.
 */

import type {Edge, Op, Passes, Trace} from "../record.ts";
import {lastPart} from "./names.ts";

export type NodeKind = "op" | "variable" | "loss";

export interface FlowNode {
  readonly id: number;
  readonly kind: NodeKind;
  /** Its index in the trace's ops, variables or targets. */
  readonly index: number;
  /** Its full name; unique among nodes of its kind. */
  readonly name: string;
  /** Its name without the scope. */
  readonly label: string;
}

export interface FlowEdge {
  readonly from: number;
  readonly to: number;
  /** The op whose output this is; -1 if it is the value of a variable itself. */
  readonly op: number;
  readonly output: number;
  /** The variable whose gradient equals this tensor's gradient; -1 for all others. */
  readonly variable: number;
  /** Which input of the consumer; -1 into a loss. */
  readonly input: number;
  readonly passes: Passes;
  readonly carried: boolean;
}

export interface FlowGraph {
  readonly trace: Trace;
  readonly nodes: readonly FlowNode[];
  readonly edges: readonly FlowEdge[];
  /** Edges by their `from`, and by their `to`. */
  readonly outgoing: readonly (readonly number[])[];
  readonly incoming: readonly (readonly number[])[];
  /** The node that represents each op. */
  readonly nodeOfOp: readonly number[];
  /** The node of each variable; -1 for those that are not drawn. */
  readonly nodeOfVariable: readonly number[];
  readonly nodeOfTarget: readonly number[];
}

/** Whether a gradient that arrives at the consumer is propagated to this input, as far as known. */
export function isOpen(passes: Passes): boolean {
  return passes === "yes" || passes === "unknown";
}

/** Whether another node represents an op, unless it is kept. */
export function isFolded(op: Op): boolean {
  return isPlainRead(op) || isPlainIdentity(op);
}

/** The graph of a trace in which the ops of `kept` are not folded away. */
export function flowGraph(trace: Trace, kept: ReadonlySet<number> = new Set()): FlowGraph {
  const builder = new Builder(trace, kept);
  builder.addVariables();
  builder.addOps();
  builder.addLosses();
  return builder.finish();
}

/** Whether an op only reads a variable, and nothing was written to that before. */
function isPlainRead(op: Op): boolean {
  return op.type === "ReadVariableOp" && op.reads !== null && op.inputs.length === 0;
}

function isPlainIdentity(op: Op): boolean {
  const [input] = op.inputs;
  return (
    op.type === "Identity" && op.inputs.length === 1 && input.op >= 0 && input.passes === "yes" && !input.carried
  );
}

const NO_EDGES: readonly number[] = [];

/** The edges at each node, in order. The lists have exact sizes: for many nodes, spare capacity would cost memory. */
function edgesBy(count: number, edges: readonly FlowEdge[], endOf: (edge: FlowEdge) => number): (readonly number[])[] {
  const counts = new Int32Array(count);
  for (const edge of edges) {
    counts[endOf(edge)] += 1;
  }
  const lists: number[][] = new Array(count);
  for (let node = 0; node < count; node += 1) {
    lists[node] = counts[node] === 0 ? (NO_EDGES as number[]) : new Array(counts[node]);
  }
  for (let id = edges.length - 1; id >= 0; id -= 1) {
    const node = endOf(edges[id]);
    counts[node] -= 1;
    lists[node][counts[node]] = id;
  }
  return lists;
}

class Builder {
  readonly #trace: Trace;
  readonly #kept: ReadonlySet<number>;
  readonly #nodes: FlowNode[] = [];
  readonly #edges: FlowEdge[] = [];
  readonly #nodeOfOp: number[];
  readonly #nodeOfVariable: number[];
  readonly #nodeOfTarget: number[] = [];

  constructor(trace: Trace, kept: ReadonlySet<number>) {
    this.#trace = trace;
    this.#kept = kept;
    this.#nodeOfOp = trace.ops.map(() => -1);
    this.#nodeOfVariable = trace.variables.map(() => -1);
  }

  addVariables(): void {
    const read = new Set(this.#trace.ops.map((op) => op.reads));
    this.#trace.variables.forEach((variable, index) => {
      if (variable.trainable || read.has(index)) {
        this.#nodeOfVariable[index] = this.#addNode("variable", index, variable.name);
      }
    });
  }

  addOps(): void {
    this.#trace.ops.forEach((op, index) => {
      this.#nodeOfOp[index] = this.#standIn(op, index) ?? this.#addNode("op", index, op.name);
    });
    const readers = this.#readersOfVariables();
    this.#trace.ops.forEach((op, index) => {
      const node = this.#nodes[this.#nodeOfOp[index]];
      if (node.kind !== "op" || node.index !== index) {
        return;
      }
      if (op.reads !== null && this.#nodeOfVariable[op.reads] >= 0) {
        this.#addEdge(this.#nodeOfVariable[op.reads], node.id, -1, 0, op.reads, undefined);
      }
      for (const input of op.inputs) {
        this.#addInput(node.id, input, readers);
      }
    });
  }

  addLosses(): void {
    this.#trace.targets.forEach((target, index) => {
      const node = this.#addNode("loss", index, target.name);
      this.#nodeOfTarget.push(node);
      if (target.op >= 0) {
        this.#addEdge(this.#nodeOfOp[target.op], node, target.op, target.output, -1, undefined);
      }
    });
  }

  finish(): FlowGraph {
    const edges = this.#edges;
    return {
      trace: this.#trace,
      nodes: this.#nodes,
      edges,
      outgoing: edgesBy(this.#nodes.length, edges, (edge) => edge.from),
      incoming: edgesBy(this.#nodes.length, edges, (edge) => edge.to),
      nodeOfOp: this.#nodeOfOp,
      nodeOfVariable: this.#nodeOfVariable,
      nodeOfTarget: this.#nodeOfTarget,
    };
  }

  /** The node that represents an op without its own node. Its input's node is known: ops come in order. */
  #standIn(op: Op, index: number): number | undefined {
    if (this.#kept.has(index)) {
      return undefined;
    }
    if (isPlainRead(op)) {
      return this.#nodeOfVariable[op.reads as number];
    }
    return isPlainIdentity(op) ? this.#nodeOfOp[op.inputs[0].op] : undefined;
  }

  /** Number of inputs that read each variable: the gradient of a single reader is the variable's. */
  #readersOfVariables(): number[] {
    const readers = this.#trace.variables.map(() => 0);
    for (const op of this.#trace.ops) {
      for (const input of op.inputs) {
        const producer = this.#trace.ops[input.op];
        if (producer !== undefined && producer.reads !== null) {
          readers[producer.reads] += 1;
        }
      }
    }
    return readers;
  }

  #addInput(to: number, input: Edge, readers: readonly number[]): void {
    if (input.op < 0) {
      return;
    }
    const producer = this.#trace.ops[input.op];
    const reads = isPlainRead(producer) ? (producer.reads as number) : -1;
    const alone = reads >= 0 && readers[reads] === 1 ? reads : -1;
    this.#addEdge(this.#nodeOfOp[input.op], to, input.op, input.output, alone, input);
  }

  #addNode(kind: NodeKind, index: number, name: string): number {
    const id = this.#nodes.length;
    this.#nodes.push({id, kind, index, name, label: lastPart(name) || name});
    return id;
  }

  #addEdge(from: number, to: number, op: number, output: number, variable: number, input: Edge | undefined): void {
    this.#edges.push({
      from,
      to,
      op,
      output,
      variable,
      input: input?.input ?? -1,
      passes: input?.passes ?? "yes",
      carried: input?.carried ?? false,
    });
  }
}
