import {describe, expect, test} from "vitest";
import type {Course} from "../src/api/routes.ts";
import {flowGraph} from "../src/model/graph.ts";
import {baseOf, ofUpdates} from "../src/api/heat.ts";
import {cellOf, depthsOf, Heat, orderedRows, quantitiesOf, ticksOf, type Order} from "../src/model/heat.ts";
import {chartOf, spread, trackOf} from "../src/model/series.ts";
import {beginningsIn, lossCurve} from "../src/model/timeline.ts";
import {diagnosis, read, trace} from "./build.ts";

test.each([
  [0.5, "finite"],
  [0, "zero"],
  [NaN, "nan"],
  [Infinity, "inf"],
  [-1, "none"],
  [-2, "unrecorded"],
] as const)("%d is %s", (value, cell) => {
  expect(cellOf(value)).toBe(cell);
});

test.each([
  [5, 5],
  [100, 7],
  [1000, 512],
  [3, 1],
])("of %i steps in %i columns each is in the column that shows it or what comes after it", (steps, columns) => {
  const heat = new Heat(new Float32Array(columns), 1, steps);

  for (let step = 0; step < steps; step += 1) {
    const column = heat.columnOf(step);
    expect(heat.stepAt(column)).toBeGreaterThanOrEqual(step);
    expect(column === 0 ? -1 : heat.stepAt(column - 1)).toBeLessThan(step);
  }
  expect(heat.stepAt(columns - 1)).toBe(steps - 1);
});

test.each([
  [16, 5, [0, 4, 8, 11, 15]],
  [3, 5, [0, 1, 2]],
  [512, 2, [0, 511]],
  [1, 5, [0]],
])("of %i columns, %i labels are spread from the first to the last", (columns, most, labelled) => {
  expect(ticksOf(columns, most)).toEqual(labelled);
});

describe("rows", () => {
  const base = trace(
    [read("a", "deep"), {name: "b", from: ["a"]}, read("c", "near"), {name: "d", from: ["b", "c"]}],
    {variables: ["idle"]},
  );
  const graph = flowGraph(base);
  const depths = depthsOf(graph);
  // Two columns; variables are deep, near, idle.
  const heat = new Heat(Float32Array.from([1, 1, -1, 1, NaN, -1]), 3, 2);
  const rows = (order: Order, words = "") => orderedRows(heat, graph, depths, diagnosis(base, {}), order, words);

  test("lie as deep as the longest way to the loss", () => {
    expect(depths).toEqual([3, 2, Infinity]);
  });

  test("stand by depth, the loss last; by first problem; by name", () => {
    expect(rows("depth")).toEqual([2, 0, 1]);
    expect(rows("trouble")).toEqual([2, 1, 0]);
    expect(rows("name")).toEqual([0, 2, 1]);
  });

  test("are those whose names have every word", () => {
    expect(rows("name", "E n")).toEqual([1]);
  });

  test("that are not trained and have nothing recorded are left out", () => {
    const variables = base.variables.map((variable) => ({...variable, trainable: false}));
    const frozen = flowGraph({...base, variables});
    const empty = new Heat(Float32Array.from([1, -2, -2]), 3, 1);

    expect(orderedRows(empty, frozen, depths, null, "name", "")).toEqual([0]);
  });
});

test("ten thousand ops in a row are no deeper than the stack", () => {
  const specs = [read("r", "w"), ...Array.from({length: 10000}, (_, index) => ({name: `o${index}`, from: [index === 0 ? "r" : `o${index - 1}`]}))];

  expect(depthsOf(flowGraph(trace(specs)))).toEqual([10001]);
});

describe("the loss along the slider", () => {
  test("runs from the bottom to the top and leaves gaps where it is not finite", () => {
    expect(lossCurve([1, null, 3, 2])).toEqual({lines: [[0, 0], [2 / 3, 1, 1, 0.5]], gaps: [1 / 3]});
  });

  test("that spans decades is drawn on a logarithm", () => {
    expect(lossCurve([1, 10, 100]).lines[0][3]).toBeCloseTo(0.5);
  });

  test("of very many steps has few points, and ends at the last", () => {
    const {lines} = lossCurve(Array.from({length: 100000}, (_, step) => 1 / (step + 1)));

    expect(lines[0].length).toBeLessThan(1300);
    expect(lines[0].at(-2)).toBe(1);
  });

  test("of a step that has none is no gap", () => {
    expect(lossCurve([undefined, undefined])).toEqual({lines: [], gaps: []});
  });
});

test("a mark stands where a finding is first seen; mere information has none", () => {
  const finding = (cause: string, severity: "error" | "warning" | "info") => ({cause, op: "", target: 0, severity});
  const course: Course = {
    format: 1,
    steps: [0, 20, 30],
    findings: [finding("first_nan", "error"), finding("vanishing_depth", "warning"), finding("frozen", "info")],
    present: [[2], [1], [0, 1]],
    complete: true,
    damage: "",
  };

  expect(beginningsIn(course, [0, 10, 20, 30])).toEqual([
    {at: 2, step: 20, severity: "warning", causes: ["vanishing depth"]},
    {at: 3, step: 30, severity: "error", causes: ["first nan"]},
  ]);
});

describe("series of two runs", () => {
  const heat = new Heat(Float32Array.from([1, 2, NaN, 4, 0, 6]), 2, 3);
  const track = (steps: readonly number[], row: number, dashed = false) => trackOf(heat, row, steps, "w", 0, dashed);

  test("stand over all steps of both; a step that one does not have is no gap in it", () => {
    const {steps, series} = chartOf([track([0, 10, 20], 1), track([0, 5, 10], 1, true)]);

    expect(steps).toEqual([0, 5, 10, 20]);
    expect(series[0].values).toEqual([2, undefined, 4, 6]);
    expect(series[1].values).toEqual([2, 4, 6, undefined]);
  });

  test("have a sign where they have no number", () => {
    const {series} = chartOf([track([0, 1, 2], 0)]);

    expect(series[0].values).toEqual([1, null, null]);
    expect(series[0].signs).toEqual([null, "?", "0"]);
  });

  test("of all variables are the largest, the median and the smallest", () => {
    const [largest, , smallest] = spread(heat, [0, 1], [0, 1, 2], "", false);

    expect(largest.values).toEqual([2, 4, 6]);
    expect(chartOf([largest]).series[0].signs).toEqual([null, "?", null]);
    expect(smallest.values).toEqual([1, 4, 6]);
  });
});

describe("what is measured of updates", () => {
  const base = {
    ...trace([read("a", "clipped"), read("b", "free")]),
    clips: [
      {by: "clipnorm", limit: 1, variables: [0], row: 0, optimizer: 0, at: null},
      {by: "tf.clip_by_value", limit: 1, variables: [0], row: 1, optimizer: 0, at: null},
    ],
    loss_scales: [{optimizer: 0, row: 2}],
    movements: [{variable: 1, optimizer: 0, row: 3, decay: 0, constraint: ""}],
  };
  // Two steps of three rows: two clips, and the loss scale with the number of updates.
  const chunk = Float32Array.from(
    [
      [8, 4], [4, 1], [32, 5],
      [0, 0], [NaN, NaN], [16, 5],
    ].flatMap(([one, other]) => [0, 0, one, other, 0, 0]),
  );
  const of = (quantity: "clip" | "scale" | "skipped", base_ = 0): readonly number[] => [...ofUpdates(base, chunk, [6, 7], quantity, base_)];

  test("clips of one variable multiply; nothing is cut from zero", () => {
    expect(of("clip")).toEqual([0.125, -2, -2, -2]);
  });

  test("a loss scale is that of the variables of its optimizer", () => {
    expect(of("scale")).toEqual([-2, 32, -2, 16]);
  });

  test("a step without an update was skipped", () => {
    expect(of("skipped")).toEqual([-2, 2, -2, 3]);
  });

  test("an optimizer that has been used before this training begins with nothing skipped", () => {
    expect(baseOf(base, chunk, 6)).toBe(0);
    expect(baseOf(base, chunk, 1)).toBe(-3);
    expect([...ofUpdates(base, chunk, [1, 2], "skipped", -3)]).toEqual([-2, 0, -2, 1]);
  });

  test("only what there is can be chosen", () => {
    expect(quantitiesOf(trace([])).map(({quantity}) => quantity)).toEqual(["gradient", "ratio", "update", "weight"]);
    expect(quantitiesOf(base).map(({quantity}) => quantity)).toEqual(["gradient", "ratio", "update", "weight", "clip", "scale", "skipped"]);
  });
});
