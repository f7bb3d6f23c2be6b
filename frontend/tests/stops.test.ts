import {describe, expect, test} from "vitest";
import {answersFor, StepNumbers} from "../src/model/gradients.ts";
import {flowGraph} from "../src/model/graph.ts";
import {pathOf} from "../src/model/paths.ts";
import {nextStop, stopsOf} from "../src/model/stops.ts";
import {treeOf} from "../src/model/tree.ts";
import {answered, finding, read, trace} from "./build.ts";

const base = answered(
  trace([
    read("filter/read", "threshold"),
    {name: "filter/clip", from: ["filter/read"]},
    {name: "filter/less", from: ["filter/clip none"]},
    {name: "filter/mul", from: ["filter/less"]},
    {name: "out", from: ["filter/mul"]},
  ]),
  {threshold: "none", "filter/clip": "none", "filter/mul": "value", out: "value"},
);
const graph = flowGraph(base);
const tree = treeOf(graph);
const path = pathOf(graph, finding(base, "error", ["threshold"], "filter/less", base.ops.map(({name}) => name)));
/** One step of six statistics for each of four rows. */
const numbersOf = (mul: readonly number[]): StepNumbers => new StepNumbers(Float32Array.from([...new Array(12).fill(0), ...mul, 1, 1, 1, 0, 0, 0]), new Float32Array(4), 0, 1);
const stopsWith = (numbers: StepNumbers | null) => stopsOf(path, tree, answersFor(graph, 0), numbers);

describe("a path, op by op", () => {
  test("goes from the variable to the loss, each with what it got", () => {
    const stops = stopsWith(numbersOf([0.25, 0.2, 0.1, 0, 0, 0]));

    expect(stops.map(({name, kind, gradient}) => [name, kind, gradient])).toEqual([
      ["threshold", "variable", "none"],
      ["clip", "op", "none"],
      ["less", "op", "–"],
      ["mul", "op", "0.25"],
      ["out", "op", "1"],
      ["loss", "loss", "1"],
    ]);
    expect(stops.filter(({isCulprit}) => isCulprit).map(({name}) => name)).toEqual(["less"]);
    expect(stops.map(({tone}) => tone)).toEqual(["bad", "bad", "quiet", "good", "good", "good"]);
  });

  test.each([
    [[0.25, 0.2, 0.1, 0, 3, 0], "NaN", "bad"],
    [[0.25, 0.2, 0.1, 0, 0, 3], "∞", "bad"],
    [[0, 0, 0, 1, 0, 0], "0", "bad"],
  ])("says of statistics %j: %s", (statistics, gradient, tone) => {
    expect(stopsWith(numbersOf(statistics))[3]).toMatchObject({gradient, tone});
  });

  test("says of a gradient whose numbers are not here yet that it is not known", () => {
    expect(stopsWith(null)[3].gradient).toBe("–");
  });

  test("is followed to its ends and no further, and begun at the op to blame", () => {
    const stops = stopsWith(null);
    const [first, second] = stops;
    const last = stops[stops.length - 1];

    expect(nextStop(stops, -1, 1)?.name).toBe("less");
    expect(nextStop(stops, first.node, 1)).toBe(second);
    expect(nextStop(stops, second.node, -1)).toBe(first);
    expect(nextStop(stops, first.node, -1)).toBe(first);
    expect(nextStop(stops, last.node, 1)).toBe(last);
    expect(nextStop([], 3, 1)).toBeNull();
  });
});
