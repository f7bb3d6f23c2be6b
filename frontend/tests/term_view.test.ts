/** One term of a loss at a time: what of its gradient is known where, and its share over the steps. */

import {expect, test} from "vitest";
import {keysOfTerms, termNumbers} from "../src/api/terms.ts";
import {answersFor, StepNumbers} from "../src/model/gradients.ts";
import {modelOf} from "../src/model/model.ts";
import {stepsOf, termSeries} from "../src/model/term_series.ts";
import {answersForTerm, partsOf, termNamed, termsOf} from "../src/model/term_view.ts";
import type {Trace} from "../src/record.ts";
import {answered, read, trace} from "./build.ts";

const OPS = [
  read("enc/read", "enc/w"),
  {name: "enc/out", from: ["enc/read"]},
  {name: "enc/more", from: ["enc/out"]},
  read("dec/read", "dec/w"),
  {name: "dec/mul", from: ["enc/more", "dec/read"]},
  {name: "dec/out", from: ["dec/mul"]},
  {name: "recon", from: ["dec/out"]},
  {name: "kl", from: ["enc/more"]},
  {name: "sum", from: ["recon", "kl"]},
];

const MEASURED = ["enc/w", "dec/w", "enc/out", "enc/more", "dec/mul", "dec/out", "recon", "kl"];

/** Rows behind those of the loss: 8 and 9 are the terms, 10 to 12 their gradients, 13 to 15 those of outputs. */
function withTerms(): Trace {
  const base = answered(trace(OPS), Object.fromEntries(MEASURED.map((name) => [name, "value" as const])));
  const op = (name: string): number => OPS.findIndex((each) => each.name === name);
  const [encoder, decoder] = ["enc/w", "dec/w"].map((name) => base.variables.findIndex((each) => each.name === name));
  return {
    ...base,
    terms: [
      {target: 0, name: "recon", kind: "term", op: op("recon"), source: null, row: 8, trains: true},
      {target: 0, name: "kl", kind: "term", op: op("kl"), source: null, row: 9, trains: true},
    ],
    term_gradients: [
      {term: 0, variable: encoder, row: 10},
      {term: 0, variable: decoder, row: 11},
      {term: 1, variable: encoder, row: 12},
    ],
    term_cosines: [],
    term_tensors: [
      {term: 0, op: op("enc/more"), output: 0, row: 13},
      {term: 0, op: op("dec/out"), output: 0, row: 14},
      {term: 1, op: op("enc/more"), output: 0, row: 15},
      {term: 1, op: op("dec/out"), output: 0, row: null},
    ],
  };
}

const TRACE = withTerms();
const {tree} = modelOf(TRACE, new Set());
const {graph} = tree;
const WHOLE = answersFor(graph, 0);

function told(name: string, at: string): string[] {
  const answers = answersForTerm(graph, termNamed(TRACE, 0, name), WHOLE);
  return graph.edges.flatMap((edge, id) => {
    const producer = edge.op < 0 ? graph.nodes[edge.from].name : TRACE.ops[edge.op].name;
    return producer === at ? [`${answers.edges[id].outcome} ${answers.edges[id].row}`] : [];
  });
}

test("a term is known by its name in its loss, and there are none in an older log", () => {
  expect(termsOf(TRACE, 0)).toEqual([0, 1]);
  expect([termNamed(TRACE, 0, "kl"), termNamed(TRACE, 0, "nothing"), termNamed(TRACE, 1, "kl")]).toEqual([1, -1, -1]);
  expect(termsOf({...TRACE, terms: undefined} as unknown as Trace, 0)).toEqual([]);
});

test("the variables and the outputs of layers have the gradient of the term, and what is between them is not known", () => {
  const answers = answersForTerm(graph, 0, WHOLE);

  expect(answers.variables.map(({row}) => row)).toEqual([10, 11]);
  expect(told("recon", "dec/out")).toEqual(["value 14"]);
  expect(told("recon", "dec/mul")).toEqual(["not_recorded -1"]);
});

test("an edge that does not lead to the term has none of its gradient, though its tensor has", () => {
  // The output of the encoder goes into the decoder, then into the divergence.
  expect(told("recon", "enc/more")).toEqual(["value 13", "none -1"]);
  expect(told("kl", "enc/more")).toEqual(["none -1", "value 15"]);
  expect([told("kl", "recon"), told("kl", "kl")]).toEqual([["none -1"], ["not_recorded -1"]]);
});

test("a variable that only another term reaches has no gradient from this one", () => {
  expect(answersForTerm(graph, 1, WHOLE).variables.map(({outcome, row}) => `${outcome} ${row}`)).toEqual(["value 12", "none -1"]);
});

function chunk(...steps: readonly Readonly<Record<number, readonly number[]>>[]): Float32Array {
  return Float32Array.from(steps.flatMap((rows) => Array.from({length: 16}, (_, row) => [...(rows[row] ?? [0]), 0, 0, 0, 0, 0].slice(0, 6)).flat()));
}

test("the share of a group is that of the norms of its variables", () => {
  const numbers = new StepNumbers(chunk({10: [3], 11: [4], 12: [1]}), new Float32Array(), 0, 1);
  const parts = partsOf(tree, 0, 0, numbers);

  const share = (label: string): number => parts.shares[tree.items.find((item) => item.name === label)?.id as number];

  expect(parts.norms[tree.root]).toBe(5);
  expect(parts.shares[tree.root]).toBeCloseTo(5 / 6);
  expect(share("enc")).toBe(0.75);
  expect(share("dec")).toBe(1);
});

test("the series have what a chunk has: values with their sign, and shares of each layer or of all", () => {
  const numbers = termNumbers(TRACE, keysOfTerms(TRACE), chunk({8: [2], 9: [-1], 10: [3], 11: [4], 12: [5]}, {8: [1], 9: [0], 10: [0, 0, 0, 0, 1], 11: [4], 12: [5]}), 2);

  expect(termSeries(TRACE, 0, numbers, "value", null).map(({values, signs}) => [values, signs])).toEqual([
    [[2, 1], [null, null]],
    [[-1, 0], ["−", "0"]],
  ]);
  // In the second step a gradient is NaN: nothing is known of a share of it.
  expect(termSeries(TRACE, 0, numbers, "share", null).map(({values}) => values)).toEqual([[0.5, null], [0.5, null]]);
  expect(termSeries(TRACE, 0, numbers, "norm", "dec").map(({values}) => values)).toEqual([[4, 4], [0, 0]]);
});

test("a trace that lacks a term has nothing of it, and a column stands for the last of its steps", () => {
  const other = {...TRACE, terms: [{...TRACE.terms[0], name: "another"}, TRACE.terms[1]]};
  const numbers = termNumbers(other, keysOfTerms(TRACE), chunk({8: [2], 9: [7], 10: [3], 11: [4], 12: [5]}), 1);

  expect([...numbers]).toEqual([NaN, 7, -2, -2, 5]);
  expect(stepsOf(2, [0, 10, 20, 30, 40])).toEqual([10, 40]);
});
