import {describe, expect, test} from "vitest";
import {detailsOf} from "../src/model/details.ts";
import {answersFor} from "../src/model/gradients.ts";
import {flowGraph} from "../src/model/graph.ts";
import {treeOf} from "../src/model/tree.ts";
import type {Trace} from "../src/record.ts";
import {answered, read, trace} from "./build.ts";

/** What the panel of an op says where it has no numbers. */
function wordsFor(base: Trace, name: string): string {
  const graph = flowGraph(base);
  const node = graph.nodeOfOp[base.ops.findIndex((op) => op.name === name)];
  return detailsOf(treeOf(graph), node, answersFor(graph, 0)).tensors[0].words;
}

function withType(base: Trace, name: string, dtype: string): Trace {
  const ops = base.ops.map((op) => (op.name === name ? {...op, outputs: [{shape: [2], dtype}]} : op));
  return {...base, ops};
}

describe("a gradient that is not there", () => {
  const base = trace([
    read("read", "weight"),
    {name: "less", from: ["read"]},
    {name: "while/loop_variable_0", type: "While", from: ["less"]},
    {name: "while/body/sin", from: ["while/loop_variable_0"]},
    {name: "cond/output_1", type: "If", from: ["while/body/sin"]},
    {name: "PartitionedCall_3/sin", from: ["cond/output_1"]},
    {name: "loss", from: ["PartitionedCall_3/sin"]},
  ]);

  test.each([
    ["bool", "none: a bool tensor carries no gradient"],
    ["int32", "none: an int32 tensor carries no gradient"],
    ["string", "none: a string tensor carries no gradient"],
    ["bfloat16", "not recorded"],
    ["float64", "not recorded"],
    ["complex64", "not recorded"],
  ])("of a tensor of type %s is said to be %s", (dtype, words) => {
    expect(wordsFor(withType(base, "less", dtype), "less")).toBe(words);
  });

  test.each(["while/loop_variable_0", "while/body/sin", "PartitionedCall_3/sin"])("in a function is told as that: %s", (name) => {
    expect(wordsFor(base, name)).toBe("not recorded: inside a function, where the tape sees only the call");
  });

  test("of a branching's output, which stands outside the branches, is just not recorded", () => {
    expect(wordsFor(base, "cond/output_1")).toBe("not recorded");
  });

  test("that the tape answered with None is told as that, wherever it is", () => {
    expect(wordsFor(answered(base, {"while/body/sin": "none"}), "while/body/sin")).toBe("no gradient");
  });
});
