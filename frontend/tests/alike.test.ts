import {expect, test} from "vitest";
import {alikeOf} from "../src/model/alike.ts";
import {flowGraph} from "../src/model/graph.ts";
import {treeOf} from "../src/model/tree.ts";
import {read, trace} from "./build.ts";

function block(name: string, from: string, last = "Relu") {
  return [
    read(`${name}/r`, `${name}/w`),
    {name: `${name}/mul`, type: "MatMul", from: [from, `${name}/r`]},
    {name: `${name}/add`, type: "AddV2", from: [`${name}/mul`]},
    {name: `${name}/act`, type: last, from: [`${name}/add`]},
  ];
}

function kindsOf(specs: Parameters<typeof trace>[0]): Record<string, number> {
  const tree = treeOf(flowGraph(trace(specs)));
  const {kinds} = alikeOf(tree);
  return Object.fromEntries(tree.items.filter(({children, name}) => children.length > 0 && name !== "").map(({id, label}) => [label, kinds[id]]));
}

test("copies of a block are of one kind, another block is of none", () => {
  const kinds = kindsOf([{name: "in/x"}, ...block("a", "in/x"), ...block("b", "a/act"), ...block("c", "b/act", "Tanh")]);

  expect(kinds.a).toBe(0);
  expect(kinds.b).toBe(0);
  expect(kinds.c).toBe(-1);
});

test("the same ops in another order are another block", () => {
  const turned = [
    read("b/r", "b/w"),
    {name: "b/act", type: "Relu", from: ["a/act"]},
    {name: "b/add", type: "AddV2", from: ["b/act"]},
    {name: "b/mul", type: "MatMul", from: ["b/add", "b/r"]},
  ];

  expect(kindsOf([{name: "in/x"}, ...block("a", "in/x"), ...turned])).toEqual({a: -1, b: -1});
});
