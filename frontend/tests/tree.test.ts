import {describe, expect, test} from "vitest";
import {flowGraph} from "../src/model/graph.ts";
import {ancestorsOf, treeOf, type Tree} from "../src/model/tree.ts";
import {random, read, trace} from "./build.ts";

function tree(...given: Parameters<typeof trace>): Tree {
  return treeOf(flowGraph(trace(...given)));
}

/** The tree as nested labels, siblings by name. */
function outline(at: Tree, item = at.root): string {
  const {label, children} = at.items[item];
  const inside = children.map((child) => outline(at, child)).sort();
  return inside.length === 0 ? label : `${label}(${inside.join(" ")})`;
}

describe("the tree of scopes", () => {
  test("scopes are groups within groups", () => {
    const at = tree([{name: "a/x"}, {name: "a/y"}, {name: "b/z/p"}, {name: "b/z/q"}, {name: "b/w"}]);

    expect(outline(at)).toBe("(a(x y) b(w z(p q)) loss)");
  });

  test("a group of one is merged with what is inside", () => {
    expect(outline(tree([{name: "a/b/c/x"}, {name: "a/b/c/y"}, {name: "d/z"}]))).toBe("(a/b/c(x y) d/z loss)");
  });

  test("an op whose name is a scope too stands in it", () => {
    expect(outline(tree([{name: "a/clip/Minimum"}, {name: "a/clip"}, {name: "a/x"}]))).toBe("(a(clip(Minimum clip) x) loss)");
  });

  test("a layer's group has the layer's own name, and keeps it when merged", () => {
    const layers = [{scope: "m/dense_7", name: "dense", type: "Dense", source: null}];
    const at = tree([{name: "m/dense_7/MatMul"}, {name: "m/dense_7/Add"}], {layers});
    const group = at.items.find((item) => item.label === "m/dense");

    expect(group?.layer?.type).toBe("Dense");
  });

  test("every node is in the tree once, below the root", () => {
    const at = tree([read("m/r", "v"), {name: "m/a/x", from: ["m/r"]}, {name: "m/y", from: ["m/a/x"]}]);

    const listed = at.items.flatMap((item) => item.children).filter((item) => item < at.graph.nodes.length);
    expect(listed.sort()).toEqual(at.graph.nodes.map((node) => node.id));
    expect(at.items[at.root].size).toBe(at.graph.nodes.length);
  });

  test("too many layers are put together by the beginnings of their names", () => {
    const names = [1, 2, 3, 4].flatMap((block) => [1, 2, 3, 4, 5, 6].map((part) => `m/conv2_block${block}_${part}`));
    const specs = names.flatMap((name, index) => [
      {name: `${name}/a`, from: index === 0 ? [] : [`${names[index - 1]}/b`]},
      {name: `${name}/b`, from: [`${name}/a`]},
    ]);
    const at = tree(specs);
    const model = at.items.find((item) => item.label === "m");

    expect(model?.children.map((child) => at.items[child].label)).toEqual([1, 2, 3, 4].map((block) => `conv2_block${block}`));
  });

  test("names that alternate along the flow are not put together: that would make a cycle", () => {
    const names = Array.from({length: 30}, (_, index) => `${index % 2 === 0 ? "up" : "down"}_${index}`);
    const specs = names.flatMap((name, index) => [
      {name: `m/${name}/a`, from: index === 0 ? [] : [`m/${names[index - 1]}/b`]},
      {name: `m/${name}/b`, from: [`m/${name}/a`]},
    ]);
    const at = tree(specs);

    expect(at.items.find((item) => item.label === "m")?.children).toHaveLength(30);
  });

  test("a chain of ten thousand ops is stretches of stretches", () => {
    const specs = Array.from({length: 10_000}, (_, index) => ({name: `op_${index}`, from: index === 0 ? [] : [`op_${index - 1}`]}));
    const at = treeOf(flowGraph(chain(specs)));

    expect(at.items[at.root].children.length).toBeLessThanOrEqual(100);
    expect(Math.max(...at.items.map((item) => item.children.length))).toBeLessThanOrEqual(100);
    expect(ancestorsOf(at, 5000).length).toBeGreaterThan(0);
  });

  test("thirty thousand ops in scopes become a tree in which no group is large", () => {
    const next = random(7);
    const specs = Array.from({length: 30_000}, (_, index) => {
      const layer = Math.floor(index / 50);
      return {name: `m/block_${Math.floor(layer / 10)}/layer_${layer}/op_${index}`, from: index === 0 ? [] : [`${Math.floor(next() * index)}`]};
    });
    const at = treeOf(flowGraph(numbered(specs)));

    expect(at.items[at.root].size).toBe(30_001);
    expect(Math.max(...at.items.map((item) => item.children.length))).toBeLessThanOrEqual(100);
  });
});

/** As `trace`, but for many ops: inputs are positions. */
function numbered(specs: readonly {name: string; from: readonly string[]}[]) {
  const base = trace([{name: "x"}]);
  const ops = specs.map(({name, from}) => ({
    ...base.ops[0],
    name,
    inputs: from.map((position, input) => ({op: Number(position), output: 0, input, passes: "yes" as const, carried: false})),
  }));
  return {...base, ops, targets: [{...base.targets[0], op: ops.length - 1}]};
}

function chain(specs: readonly {name: string; from: readonly string[]}[]) {
  return numbered(specs.map(({name, from}, index) => ({name, from: from.map(() => String(index - 1))})));
}
