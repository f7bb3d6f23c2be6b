import {expect, test} from "vitest";
import {flowGraph} from "../src/model/graph.ts";
import {answersFor, StepNumbers} from "../src/model/gradients.ts";
import {measured, type Measure} from "../src/model/measure.ts";
import {answered, read, trace} from "./build.ts";

const BASE = answered(trace([read("r", "w"), {name: "a", from: ["r"]}, {name: "b", from: ["a"]}, {name: "c", from: ["b"]}]), {
  r: "value",
  a: "value",
  b: "value",
  c: "value",
});
const GRAPH = flowGraph(BASE);

/** What is measured on the way from the variable to the loss, given the norms there. */
function along(measure: Measure, norms: readonly number[]): readonly number[] {
  const rows = norms.flatMap((norm) => [norm, norm, norm, Number(norm === 0), 0, 0]);
  const numbers = new StepNumbers(Float32Array.from(rows), new Float32Array(), 0, 1);
  const {edges} = measured(measure, GRAPH, answersFor(GRAPH, 0), numbers, {low: -4, high: 1});
  return [...edges].map((value) => Number(value.toPrecision(4)));
}

test("the norm is what was recorded", () => {
  expect(along("norm", [0.5, 1, 2, 4])).toEqual([0.5, 1, 2, 4]);
});

test("relative to the loss is a share of what begins there", () => {
  expect(along("loss", [0.5, 1, 2, 4])).toEqual([0.125, 0.25, 0.5, 1]);
});

test("per op is what each op makes of what arrives; the loss itself begins with one", () => {
  expect(along("op", [0.5, 1, 2, 4])).toEqual([0.5, 0.5, 0.5, 4]);
});

test("what was not measured, or is zero, has no shade", () => {
  expect(along("op", [0, 1, 0, 1])).toEqual([NaN, NaN, NaN, 1]);
});

test("the scale of shares is that of the norms, moved to where the loss is one", () => {
  const numbers = new StepNumbers(Float32Array.from(Array.from({length: 4}, () => [100, 1, 1, 0, 0, 0]).flat()), new Float32Array(), 0, 1);

  expect(measured("loss", GRAPH, answersFor(GRAPH, 0), numbers, {low: -4, high: 2}).scale).toEqual({low: -6, high: 0});
});

test("the update of a layer is that of its variable, on all that meets it", () => {
  const base = answered(
    trace([read("r", "w"), read("s", "v"), {name: "cast", type: "Cast", from: ["s"]}, {name: "a", from: ["r"]}, {name: "b", from: ["a", "cast"]}, {name: "c", from: ["b"]}]),
    {a: "value", b: "value", c: "value"},
  );
  const graph = flowGraph(base);
  const [weights, none] = [[2, 0.02, 0, 0], [4, 0.4, 0, 0]];
  const numbers = new StepNumbers(new Float32Array(), Float32Array.from([...weights, ...none]), 0, 1);

  const {edges, scale} = measured("update", graph, answersFor(graph, 0), numbers, null);

  const shown = graph.edges.map(({from, to}, edge) => [graph.nodes[from].label, graph.nodes[to].label, Number(edges[edge].toPrecision(3))]);
  expect(shown).toEqual([
    ["v", "cast", 0.1],
    ["w", "a", 0.01],
    ["a", "b", 0.1],
    ["cast", "b", 0.1],
    ["b", "c", NaN],
    ["c", expect.anything(), NaN],
  ]);
  expect(scale).toEqual({low: -6, high: 0});
});
