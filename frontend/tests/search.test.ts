import {expect, test} from "vitest";
import {flowGraph} from "../src/model/graph.ts";
import {indexOf, search} from "../src/model/search.ts";
import {treeOf} from "../src/model/tree.ts";
import type {Trace} from "../src/record.ts";
import {diagnosis, finding, read, trace} from "./build.ts";

function sample(): Trace {
  const base = trace([
    read("a/Read", "filter/threshold"),
    {name: "a/Less", type: "Less", from: ["a/Read none"]},
    {name: "b/MatMul", type: "MatMul", from: ["a/Less"]},
    {name: "b/Less_1", type: "Sin", from: ["b/MatMul"]},
  ]);
  const sources = [{file: "/home/me/model.py", line: 17, function: "call", code: "tf.sequence_mask(threshold)"}];
  const ops = base.ops.map((op, index) => (index === 1 ? {...op, source: 0, api: "tf.sequence_mask"} : op));
  return {...base, ops, sources};
}

function names(query: string): string[] {
  const base = sample();
  const tree = treeOf(flowGraph(base));
  const told = diagnosis(base, {}, [finding(base, "error", ["filter/threshold"], "a/Less")]);
  return search(indexOf(tree, told), query).map(({item}) => tree.items[item].name);
}

test("a name is found by any part of it, whatever the letters' size", () => {
  expect(names("THRESH")).toEqual(["filter/threshold", "a/Less"]);
});

test("an exact label comes before names that hold it", () => {
  expect(names("less")[0]).toBe("a/Less");
});

test("an op is found by its type, its cause and its line of code", () => {
  expect(names("type:matmul")).toEqual(["b/MatMul"]);
  expect(names("cause:nondiff_comparison")).toHaveLength(2);
  expect(names("nondiff comparison")).toEqual(expect.arrayContaining(["a/Less", "filter/threshold"]));
  expect(names("sequence_mask")).toEqual(["a/Less"]);
  expect(names("model.py:17")).toEqual(["a/Less"]);
});

test("among equals, what has a problem comes first, but an exact label before it", () => {
  const tree = treeOf(flowGraph(sample()));
  const found = (query: string, troubled: string) =>
    search(indexOf(tree, null), query, (item) => tree.items[item].name === troubled).map(({item}) => tree.items[item].name);

  expect(found("b/", "b/Less_1")[0]).toBe("b/Less_1");
  expect(found("less", "b/Less_1")[0]).toBe("a/Less");
});

test("every word has to be found", () => {
  expect(names("less model.py")).toEqual(["a/Less"]);
  expect(names("less nowhere")).toEqual([]);
});

test("no words find nothing", () => {
  expect(names("  ")).toEqual([]);
});
