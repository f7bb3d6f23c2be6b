/** Variables by steps: the content of each cell of the heat map, and the order of the rows. */

import type {Diagnosis, Trace} from "../record.ts";
import type {FlowGraph} from "./graph.ts";
import {STATUS_ORDER} from "./words.ts";

export type Quantity = "gradient" | "ratio" | "update" | "weight" | "clip" | "scale" | "skipped";

const QUANTITIES: readonly {readonly quantity: Quantity; readonly title: string}[] = [
  {quantity: "gradient", title: "Gradient norm"},
  {quantity: "ratio", title: "Update / weight"},
  {quantity: "update", title: "Update norm"},
  {quantity: "weight", title: "Weight norm"},
  {quantity: "clip", title: "Left by clips, of the norm"},
  {quantity: "scale", title: "Loss scale"},
  {quantity: "skipped", title: "Steps skipped so far"},
];

/** Those that a trace has anything of. */
export function quantitiesOf(trace: Trace | undefined): typeof QUANTITIES {
  const clips = (trace?.clips ?? []).length > 0;
  const scales = (trace?.loss_scales ?? []).length > 0;
  return QUANTITIES.filter(({quantity}) => (quantity === "clip" ? clips : quantity === "scale" || quantity === "skipped" ? scales : true));
}

/** `none`: the tape returned None. `unrecorded`: not requested, or not measured in that step. */
export type Cell = "finite" | "zero" | "nan" | "inf" | "none" | "unrecorded";

/** The encoding of the route `heat`. */
export function cellOf(value: number): Cell {
  if (Number.isNaN(value)) {
    return "nan";
  }
  if (value === Infinity) {
    return "inf";
  }
  return value > 0 ? "finite" : value === 0 ? "zero" : value === -1 ? "none" : "unrecorded";
}

export class Heat {
  readonly values: Float32Array;
  readonly rows: number;
  readonly columns: number;
  readonly #steps: number;

  /** `rows`: number of variables; `steps`: number of steps that the columns represent. */
  constructor(values: Float32Array, rows: number, steps: number) {
    this.values = values;
    this.rows = rows;
    this.columns = rows === 0 ? 0 : values.length / rows;
    this.#steps = steps;
  }

  at(column: number, row: number): number {
    return this.values[column * this.rows + row];
  }

  /** Position of the last step of a column: the one that it shows. */
  stepAt(column: number): number {
    return Math.floor(((column + 1) * this.#steps) / this.columns) - 1;
  }

  /** The column that contains a step, by position. */
  columnOf(step: number): number {
    const guess = Math.floor((step * this.columns) / this.#steps);
    return Math.min(this.columns - 1, this.stepAt(guess) < step ? guess + 1 : guess);
  }

  /** The first column in which a row is not finite; one past the last if it is always finite. Gaps do not count. */
  firstTrouble(row: number): number {
    for (let column = 0; column < this.columns; column += 1) {
      const cell = cellOf(this.at(column, row));
      if (cell !== "finite" && cell !== "unrecorded") {
        return column;
      }
    }
    return this.columns;
  }

  /** Whether anything was recorded of a row. */
  isKnown(row: number): boolean {
    for (let column = 0; column < this.columns; column += 1) {
      if (cellOf(this.at(column, row)) !== "unrecorded") {
        return true;
      }
    }
    return false;
  }

  /** The least and the largest finite number above zero; Infinity and 0 if there is none. */
  extent(): [number, number] {
    let [smallest, largest] = [Infinity, 0];
    for (const value of this.values) {
      if (value > 0 && value < Infinity) {
        smallest = Math.min(smallest, value);
        largest = Math.max(largest, value);
      }
    }
    return [smallest, largest];
  }
}

export type Order = "depth" | "trouble" | "name";

export const ORDERS: readonly {readonly order: Order; readonly title: string}[] = [
  {order: "depth", title: "by depth, the loss last"},
  {order: "trouble", title: "by first problem"},
  {order: "name", title: "by name"},
];

/** The rows that have anything to show, in an order; all `words` must be in the name. */
export function orderedRows(
  heat: Heat,
  graph: FlowGraph,
  depths: readonly number[],
  diagnosis: Diagnosis | null,
  order: Order,
  words: string,
): readonly number[] {
  const {variables} = graph.trace;
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = variables.flatMap((variable, row) => {
    const name = variable.name.toLowerCase();
    const shown = variable.trainable || heat.isKnown(row);
    return shown && wanted.every((word) => name.includes(word)) ? [row] : [];
  });
  const badness = (row: number): number => STATUS_ORDER.indexOf(diagnosis?.variables[row]?.status ?? "connected");
  const trouble = order === "trouble" ? new Map(rows.map((row) => [row, heat.firstTrouble(row)])) : null;
  const compare: Record<Order, (a: number, b: number) => number> = {
    depth: (a, b) => depths[b] - depths[a] || a - b,
    trouble: (a, b) => (trouble?.get(a) as number) - (trouble?.get(b) as number) || badness(a) - badness(b) || a - b,
    name: (a, b) => (variables[a].name < variables[b].name ? -1 : 1),
  };
  return rows.sort(compare[order]);
}

/** For each variable, the largest number of ops between it and a loss; Infinity if there is no path. */
export function depthsOf(graph: FlowGraph): readonly number[] {
  const depth = graph.nodes.map(({kind}): number => (kind === "loss" ? 0 : -1));
  const waiting = graph.nodes.map(({id}) => graph.outgoing[id].filter((edge) => !graph.edges[edge].carried).length);
  const ready = waiting.flatMap((count, node) => (count === 0 ? [node] : []));
  for (let at = 0; at < ready.length; at += 1) {
    for (const id of graph.incoming[ready[at]]) {
      const edge = graph.edges[id];
      if (!edge.carried) {
        depth[edge.from] = depth[ready[at]] < 0 ? depth[edge.from] : Math.max(depth[edge.from], depth[ready[at]] + 1);
        waiting[edge.from] -= 1;
        if (waiting[edge.from] === 0) {
          ready.push(edge.from);
        }
      }
    }
  }
  return graph.nodeOfVariable.map((node) => (node < 0 || depth[node] < 0 ? Infinity : depth[node]));
}

/** Columns to be labelled: evenly spread, at most `most` of them, the first and the last among them. */
export function ticksOf(columns: number, most: number): readonly number[] {
  const count = Math.min(columns, most);
  return count < 2 ? [0] : Array.from({length: count}, (_, index) => Math.round((index * (columns - 1)) / (count - 1)));
}
