import {describe, expect, test} from "vitest";
import {measured} from "../src/model/measure.ts";
import {bundleOf, describeBundle} from "../src/model/bundle.ts";
import {flowOf, troublesOf, type Flow} from "../src/model/flow.ts";
import {answersFor, mainTarget, StepNumbers} from "../src/model/gradients.ts";
import {flowGraph} from "../src/model/graph.ts";
import {treeOf} from "../src/model/tree.ts";
import type {Diagnosis, Trace} from "../src/record.ts";
import {answered, diagnosis, finding, read, trace} from "./build.ts";

/** threshold -> clip -> less (cut) -> cast -> mul <- conv; and on to the loss. */
const filter = answered(
  trace([
    read("f/read", "threshold"),
    {name: "f/clip", from: ["f/read"]},
    {name: "f/mask/less", from: ["f/clip not_differentiable"]},
    {name: "f/mask/cast", from: ["f/mask/less dtype"]},
    read("c/read", "kernel"),
    {name: "c/conv", from: ["c/read"]},
    {name: "f/mul", from: ["c/conv", "f/mask/cast"]},
    {name: "out", from: ["f/mul"]},
  ]),
  {"f/read": "none", "f/clip": "none", "f/mask/less": "none", "f/mask/cast": "value", "c/read": "value", "c/conv": "value", "f/mul": "value", out: "value", kernel: "value", threshold: "none"},
);
const blamed = finding(filter, "error", ["threshold"], "f/mask/less");

function flow(base: Trace, said: Diagnosis | null): {states: Record<string, string>; flow: Flow; graph: ReturnType<typeof flowGraph>} {
  const graph = flowGraph(base);
  const result = flowOf(graph, answersFor(graph, 0), said);
  const states = graph.edges.map((edge, id) => [`${graph.nodes[edge.from].name}>${graph.nodes[edge.to].name}`, result.edges[id]]);
  return {states: Object.fromEntries(states), flow: result, graph};
}

test("a closed group says that a gradient inside is not finite, or fades", () => {
  const base = trace([read("g/a", "v"), read("g/b", "w"), {name: "g/add", from: ["g/a", "g/b"]}, {name: "h/loss", from: ["g/add"]}]);
  const tree = treeOf(flowGraph(base));
  const result = flowOf(tree.graph, answersFor(tree.graph, 0), diagnosis(base, {v: "nan", w: "vanishing"}));

  const troubles = troublesOf(result, tree.items);

  const group = tree.items.find(({label, children}) => label === "g" && children.length > 0)?.id as number;
  expect([troubles.notFinite[group], troubles.warnings[group], troubles.missing[group]]).toEqual([1, 1, 0]);
});

describe("the state of edges", () => {
  test("broken up to the cut, lost behind it, until a gradient flows again", () => {
    const {states} = flow(filter, diagnosis(filter, {threshold: "disconnected"}, [blamed]));

    expect(states).toEqual({
      "threshold>f/clip": "broken",
      "f/clip>f/mask/less": "broken",
      "f/mask/less>f/mask/cast": "lost",
      "f/mask/cast>f/mul": "gradient",
      "kernel>c/conv": "gradient",
      "c/conv>f/mul": "gradient",
      "f/mul>out": "gradient",
      "out>loss": "gradient",
    });
  });

  test("nothing is broken where no variable misses its gradient", () => {
    const {states} = flow(filter, diagnosis(filter, {threshold: "frozen"}));

    expect(states["threshold>f/clip"]).toBe("off");
    expect(states["f/clip>f/mask/less"]).toBe("off");
  });

  test("a variable whose missing gradient is only explained is not missed", () => {
    const explained = finding(filter, "info", ["threshold"], "");

    const {states, flow: result} = flow(filter, diagnosis(filter, {threshold: "disconnected"}, [explained]));

    expect(states["threshold>f/clip"]).toBe("off");
    expect(result.missing.size).toBe(0);
    expect(result.marks.filter((mark) => mark === "blocking")).toHaveLength(0);
  });

  test("a straight-through estimator is whole: the rounding beside it blocks nobody", () => {
    const base = answered(
      trace([
        read("r", "v"),
        {name: "round", from: ["r none"]},
        {name: "stop", from: ["round not_differentiable"]},
        {name: "add", from: ["r", "stop"]},
      ]),
      {r: "value", round: "none", stop: "value", add: "value", v: "value"},
    );

    const {states, flow: result} = flow(base, diagnosis(base, {}));

    expect(states).toEqual({"v>round": "off", "round>stop": "off", "v>add": "gradient", "stop>add": "gradient", "add>loss": "gradient"});
    expect(result.marks.every((mark) => mark === null)).toBe(true);
  });

  test("the way of a variable that never reaches the loss is broken to its end", () => {
    const base = answered(trace([read("r", "v"), {name: "head", from: ["r"]}, {name: "out"}]), {r: "none", v: "none", out: "value"});

    expect(flow(base, diagnosis(base, {v: "unused"})).states["v>head"]).toBe("broken");
  });

  test("a tensor that nobody asked for is told from one without a gradient", () => {
    const base = answered(trace([{name: "a"}, {name: "b", from: ["a"]}, {name: "c", from: ["b"]}]), {b: "none", c: "value"});

    expect(flow(base, diagnosis(base, {})).states).toEqual({"a>b": "unrecorded", "b>c": "off", "c>loss": "gradient"});
  });

  test("a read value that was not recorded has its variable's gradient, if it is read once", () => {
    const base = answered(trace([read("r", "v"), {name: "a", from: ["r"]}]), {v: "value", a: "value"});

    expect(flow(base, diagnosis(base, {})).states["v>a"]).toBe("gradient");
  });
});

describe("targets", () => {
  const answer = (target: number, outcome: "value" | "none") => ({target, variable: 0, outcome, row: null, watched: true});

  test.each([
    [["value"], 0],
    [["none", "value"], 1],
    [["value", "none"], 0],
    [["value", "value"], 1],
    [[], 0],
  ] as const)("that give %o: the main one is %i", (outcomes, main) => {
    const base = trace([read("r", "v"), {name: "a", from: ["r"]}]);
    const targets = outcomes.map((_, index) => ({...base.targets[0], name: `loss ${index}`}));

    expect(mainTarget({...base, targets, variable_gradients: outcomes.map((outcome, target) => answer(target, outcome))})).toBe(main);
  });
});

describe("marks and what is rolled up", () => {
  test("the op that a finding names is marked", () => {
    const {flow: result, graph} = flow(filter, diagnosis(filter, {threshold: "disconnected"}, [blamed]));

    expect(graph.nodes.filter((node) => result.marks[node.id] === "blocking").map((node) => node.name)).toEqual(["f/mask/less"]);
  });

  test("a cut that a finding explains is marked at the op it names, others faintly where they are", () => {
    const base = trace([
      read("r", "v"),
      {name: "cast", from: ["r none"]},
      {name: "less", from: ["cast"]},
      {name: "floor", from: ["r none"]},
      {name: "out", from: ["less", "floor"]},
    ]);
    const said = finding(base, "error", ["v"], "less", ["r", "cast", "less", "out"]);

    const {flow: result, graph} = flow(base, diagnosis(base, {v: "disconnected"}, [said]));

    const marked = (mark: string): string[] => graph.nodes.filter((node) => result.marks[node.id] === mark).map((node) => node.name);
    expect([marked("blocking"), marked("aside")]).toEqual([["less"], ["floor"]]);
    expect(graph.edges.filter((_, edge) => result.cuts[edge] !== null).map((edge, at) => [graph.nodes[edge.to].name, result.cuts.filter((cut) => cut !== null)[at]])).toEqual([["cast", "path"], ["floor", "aside"]]);
    const counted = troublesOf(result, treeOf(graph).items);
    expect(Math.max(...counted.blocking)).toBe(1);
  });

  test("where no op is to blame, as when the tape saw nothing, an op without a derivative is innocent", () => {
    const elsewhere = finding(filter, "error", ["threshold"], "");

    const {flow: result, states} = flow(filter, diagnosis(filter, {threshold: "disconnected"}, [elsewhere]));

    expect(result.marks.every((mark) => mark === null)).toBe(true);
    expect(result.cuts.every((cut) => cut === null)).toBe(true);
    expect(states["threshold>f/clip"]).toBe("broken");
    expect(states["f/clip>f/mask/less"]).toBe("off");
  });

  test("a warning's op is marked as that", () => {
    const {flow: result, graph} = flow(filter, diagnosis(filter, {}, [finding(filter, "warning", ["kernel"], "c/conv")]));

    expect(result.marks[graph.nodeOfOp[5]]).toBe("warning");
  });

  test("troubles are counted on every group around them, and nowhere else", () => {
    const {flow: result, graph} = flow(filter, diagnosis(filter, {threshold: "disconnected"}, [blamed]));
    const tree = treeOf(graph);
    const item = (label: string): number => tree.items.findIndex((each) => each.label === label);

    const troubles = troublesOf(result, tree.items);

    expect(troubles.blocking[item("mask")]).toBe(1);
    expect(troubles.blocking[item("f")]).toBe(1);
    expect(troubles.missing[item("f")]).toBe(1);
    expect(troubles.missing[item("mask")]).toBe(0);
    expect(troubles.blocking[item("c")] + troubles.missing[item("c")]).toBe(0);
  });
});

describe("bundles", () => {
  const graph = flowGraph(filter);
  const answers = answersFor(graph, 0);
  const result = flowOf(graph, answers, diagnosis(filter, {threshold: "disconnected"}, [blamed]));
  const all = graph.edges.map((_, id) => id);

  /** Numbers of one step: the norm of each row, in the order of `answered`. */
  function numbers(norms: readonly number[]): StepNumbers {
    const rows = norms.map((norm) => [norm, norm, norm, Number(norm === 0), Number(Number.isNaN(norm)), Number(norm === Infinity)]);
    return new StepNumbers(Float32Array.from(rows.flat()), new Float32Array(0), 0, 1);
  }

  function bundled(edges: readonly number[], step: StepNumbers | null) {
    return bundleOf(edges, result, answers, step, measured("norm", graph, answers, step, null).edges);
  }

  test("the largest norm shows, and how many are broken", () => {
    const bundle = bundled(all, numbers([0, 0, 0, 1, 2, 8, 4, 1, 1, 0]));

    expect(bundle).toEqual({look: "finite", value: 8, count: 8, broken: 2, cut: "path"});
    expect(describeBundle(bundle, "norm 8")).toBe("8 tensors, 2 of 8 broken; at most norm 8");
  });

  test("NaN shows over everything, zero only alone", () => {
    expect(bundled(all, numbers([0, 0, 0, 1, NaN, 8, 4, 1, 1, 0])).look).toBe("nan");
    expect(bundled(all, numbers([0, 0, 0, 0, 0, 0, 0, 0, 0, 0])).look).toBe("zero");
  });

  test("without numbers a gradient is not recorded rather than zero", () => {
    expect(bundled([3], null).look).toBe("unrecorded");
  });

  test("a gradient of which nothing is measured is not recorded, rather than of some shade", () => {
    const step = numbers([0, 0, 0, 1, 2, 8, 4, 1, 1, 0]);

    expect(bundleOf(all, result, answers, step, new Float64Array(graph.edges.length).fill(NaN)).look).toBe("unrecorded");
  });

  test("none at all is broken, not zero", () => {
    const bundle = bundled([0], numbers(new Array(10).fill(1)));

    expect(bundle.look).toBe("broken");
    expect(describeBundle(bundle, "–")).toBe("no gradient");
  });
});
