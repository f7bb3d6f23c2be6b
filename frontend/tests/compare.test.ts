import {describe, expect, test} from "vitest";
import {compare, verdict} from "../src/model/compare.ts";
import {nearest} from "../src/state/beside.ts";
import {diagnosis, finding, read, trace} from "./build.ts";

const BROKEN = trace([
  read("net_1/filter_1/Read", "filter/threshold"),
  {name: "net_1/filter_1/Less", type: "Less", from: ["net_1/filter_1/Read none"]},
  read("net_1/dense_1/Read", "dense/kernel"),
  {name: "loss", from: ["net_1/filter_1/Less", "net_1/dense_1/Read"]},
]);
const FIXED = trace([
  read("net_3/filter_7/Read", "filter_2/threshold"),
  {name: "net_3/filter_7/Sigmoid", type: "Sigmoid", from: ["net_3/filter_7/Read"]},
  read("net_3/dense_1/Read", "dense/kernel"),
  {name: "loss", from: ["net_3/filter_7/Sigmoid", "net_3/dense_1/Read"]},
]);
const WRONG = finding(BROKEN, "error", ["filter/threshold"], "net_1/filter_1/Less");

describe("a repaired run beside the broken one", () => {
  const comparison = compare(
    {trace: BROKEN, diagnosis: diagnosis(BROKEN, {"filter/threshold": "disconnected"}, [WRONG])},
    {trace: FIXED, diagnosis: diagnosis(FIXED, {})},
  );

  test("has the same variables, whatever number their layers were given", () => {
    expect(comparison.variables.map(({name, change}) => [name, change])).toEqual([
      ["filter_2/threshold", "better"],
      ["dense/kernel", "same"],
    ]);
  });

  test("has other ops where it was repaired, and nowhere else", () => {
    expect(comparison.ops.map(({name, change}) => [name, change])).toEqual([
      ["net_3/filter_7/Sigmoid", "new"],
      ["net_1/filter_1/Less", "gone"],
    ]);
  });

  test("has lost the finding, and says so in one sentence", () => {
    expect(comparison.findings).toEqual([{finding: WRONG, change: "gone"}]);
    expect(verdict(comparison)).toBe("1 variable is better, 1 finding is gone.");
  });
});

test("what came is told before what stayed, and a finding of the same cause and variable stays", () => {
  const before = diagnosis(BROKEN, {}, [WRONG]);
  const other = finding(BROKEN, "error", ["dense/kernel"], "loss");
  const moved = {...WRONG, op: null};

  const {findings} = compare({trace: BROKEN, diagnosis: before}, {trace: BROKEN, diagnosis: diagnosis(BROKEN, {}, [moved, other])});

  expect(findings.map(({change}) => change)).toEqual(["came", "stayed"]);
});

test("what is explained on both sides is neither better nor worse", () => {
  const info = finding(BROKEN, "info", ["filter/threshold"], "");
  const before = {trace: BROKEN, diagnosis: diagnosis(BROKEN, {"filter/threshold": "vanishing"}, [info])};

  const {variables} = compare(before, {trace: BROKEN, diagnosis: diagnosis(BROKEN, {}, [info])});

  expect(variables.map(({change}) => change)).toEqual(["changed", "same"]);
});

test("models that Keras has numbered on, and whose call TensorFlow has numbered too, are the same", () => {
  const first = trace([read("sequential_1/first_1/Read", "sequential/first/kernel"), {name: "loss", from: ["sequential_1/first_1/Read"]}]);
  const later = trace([read("sequential_3_1/first_1/Read", "sequential_3/first/kernel"), {name: "loss", from: ["sequential_3_1/first_1/Read"]}]);

  const {ops, variables} = compare({trace: first, diagnosis: null}, {trace: later, diagnosis: null});

  expect([ops, variables.map(({change}) => change)]).toEqual([[], ["same"]]);
});

test("a run beside itself is all the same", () => {
  const side = {trace: BROKEN, diagnosis: diagnosis(BROKEN, {"filter/threshold": "disconnected"}, [WRONG])};

  const comparison = compare(side, side);

  expect(comparison.ops).toEqual([]);
  expect(comparison.variables.every(({change}) => change === "same")).toBe(true);
  expect(verdict(comparison)).toContain("No variable");
});

test("an op that stopped to pass its gradient on is changed", () => {
  const cut = {...BROKEN, ops: BROKEN.ops.map((op) => ({...op, inputs: op.inputs.map((input) => ({...input, passes: "yes" as const}))}))};

  const {ops} = compare({trace: cut, diagnosis: null}, {trace: BROKEN, diagnosis: null});

  expect(ops).toEqual([expect.objectContaining({name: "net_1/filter_1/Less", change: "changed", words: "no longer propagates the gradient"})]);
});

test.each([
  [[0, 10, 20], 12, 10],
  [[0, 10, 20], 99, 20],
  [[], 5, -1],
])("the nearest of %j to %i is %i", (steps, step, expected) => {
  expect(nearest(steps, step)).toBe(expected);
});

test.each([
  ["nothing_found", "changed"],
  ["learned", "better"],
] as const)("a gradient that has come to nothing is no repair, unless there is nothing left to learn: %s", (kind, change) => {
  const faded = {...finding(FIXED, "info", ["filter_2/threshold"], ""), cause: "vanishing_depth"};
  const report = diagnosis(FIXED, {"filter_2/threshold": "vanishing"}, [faded]);

  const {variables} = compare(
    {trace: BROKEN, diagnosis: diagnosis(BROKEN, {"filter/threshold": "disconnected"}, [WRONG])},
    {trace: FIXED, diagnosis: {...report, verdict: {...report.verdict, kind}}},
  );

  expect(variables[0].change).toBe(change);
});
