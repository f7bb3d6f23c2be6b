import {describe, expect, test} from "vitest";
import {flowGraph, type FlowGraph} from "../src/model/graph.ts";
import {homesOf} from "../src/model/homes.ts";
import {read, trace} from "./build.ts";

function links(graph: FlowGraph): string[] {
  return graph.edges.map((edge) => `${graph.nodes[edge.from].name}>${graph.nodes[edge.to].name}`);
}

describe("the graph of a trace", () => {
  test("a variable stands in the place of the op that reads it", () => {
    const graph = flowGraph(trace([read("d/MatMul/ReadVariableOp", "d/kernel"), {name: "d/MatMul", from: ["d/MatMul/ReadVariableOp"]}]));

    expect(links(graph)).toEqual(["d/kernel>d/MatMul", "d/MatMul>loss"]);
  });

  test("a variable that is read twice is one node", () => {
    const graph = flowGraph(
      trace([read("r1", "w"), read("r2", "w"), {name: "a", from: ["r1"]}, {name: "b", from: ["r2", "a"]}]),
    );

    expect(links(graph)).toEqual(["w>a", "w>b", "a>b", "b>loss"]);
  });

  test("an op that reads a variable and does more stays, with an edge from the variable", () => {
    const graph = flowGraph(trace([{name: "g", type: "ResourceGather", reads: "table"}, {name: "a", from: ["g"]}]));

    expect(links(graph)).toContain("table>g");
  });

  test("an Identity is no node, and its tensor's gradient is that of the edge", () => {
    const graph = flowGraph(trace([{name: "a"}, {name: "i", type: "Identity", from: ["a"]}, {name: "b", from: ["i"]}]));

    expect(links(graph)).toEqual(["a>b", "b>loss"]);
    expect(graph.edges[0].op).toBe(1);
  });

  test("an Identity that blocks, or that is blamed, stays", () => {
    const ops = [{name: "a"}, {name: "i", type: "Identity", from: ["a dtype"]}, {name: "j", type: "Identity", from: ["i"]}];

    expect(links(flowGraph(trace(ops)))).toEqual(["a>i", "i>loss"]);
    expect(links(flowGraph(trace(ops), new Set([2])))).toEqual(["a>i", "i>j", "j>loss"]);
  });

  test("a read of what was written before is the written value's, and stays", () => {
    const graph = flowGraph(trace([{name: "w", type: "AssignVariableOp"}, {...read("r", "v"), from: ["w state"]}]));

    expect(links(graph)).toEqual(["v>r", "w>r", "r>loss"]);
  });

  test("a loss that depends on no variable is a node without edges", () => {
    const base = trace([{name: "a"}]);
    const graph = flowGraph({...base, targets: [{...base.targets[0], op: -1}]});

    expect(links(graph)).toEqual([]);
    expect(graph.nodes.at(-1)?.kind).toBe("loss");
  });
});

describe("homes", () => {
  test("a variable stands where it is used", () => {
    const graph = flowGraph(trace([read("m/d/MatMul/ReadVariableOp", "d/kernel"), {name: "m/d/MatMul", from: ["m/d/MatMul/ReadVariableOp"]}]));

    expect(homesOf(graph)[graph.nodeOfVariable[0]]).toBe("m/d");
  });

  test("a regulariser elsewhere does not draw a variable out of its layer", () => {
    const layers = [{scope: "m/d_1", name: "d", type: "Dense", source: null}];
    const ops = [read("r", "d/kernel"), {name: "m/d_1/MatMul", from: ["r"]}, {name: "penalty/Square", from: ["r"]}];
    const graph = flowGraph(trace(ops, {layers}));

    expect(homesOf(graph)[graph.nodeOfVariable[0]]).toBe("m/d_1");
  });

  test("a variable that nobody uses stands beside its layer", () => {
    const layers = [{scope: "m/d_1", name: "d", type: "Dense", source: null}];
    const graph = flowGraph(trace([{name: "m/d_1/MatMul"}], {layers, variables: ["d/bias", "lost/kernel"]}));

    expect(homesOf(graph).slice(0, 2)).toEqual(["m/d_1", "lost"]);
  });

  test("ops without a scope join the innermost scope around their neighbours, through one another", () => {
    const graph = flowGraph(
      trace([{name: "m/a/x"}, {name: "AddN_1", from: ["m/a/x"]}, {name: "AddN_2", from: ["AddN_1"]}, {name: "m/b/y", from: ["AddN_2"]}]),
    );

    expect(homesOf(graph).slice(0, 4)).toEqual(["m/a", "m/a", "m/b", "m/b"]);
  });

  test("an op between two layers stands in what holds both", () => {
    const graph = flowGraph(trace([{name: "m/a/x"}, {name: "Add", from: ["m/a/x"]}, {name: "m/b/y", from: ["Add"]}]));

    expect(homesOf(graph)[1]).toBe("m");
  });
});
