import {describe, expect, test} from "vitest";
import {inOrder, keyOf, neighbour} from "../src/model/findings.ts";
import {flowGraph} from "../src/model/graph.ts";
import {groupsToShow, initiallyOpen, visibleItems} from "../src/model/opening.ts";
import {itemsOnPath, pathOf} from "../src/model/paths.ts";
import {treeOf} from "../src/model/tree.ts";
import {diagnosis, finding, read, trace} from "./build.ts";

const base = trace([
  read("a/in/read", "v"),
  {name: "a/in/clip", from: ["a/in/read"]},
  {name: "b/x/less", from: ["a/in/clip none"]},
  {name: "b/x/cast", from: ["b/x/less"]},
  {name: "c/mul", from: ["b/x/cast"]},
  {name: "c/sum", from: ["c/mul"]},
  {name: "d/one"},
  {name: "d/two", from: ["d/one"]},
  {name: "out", from: ["c/sum", "d/two"]},
]);
const blamed = finding(base, "error", ["v"], "b/x/less", ["a/in/read", "a/in/clip", "b/x/less", "b/x/cast", "c/mul", "c/sum", "out"]);
const graph = flowGraph(base);
const tree = treeOf(graph);
const names = (items: Iterable<number>): string[] => [...items].map((item) => tree.items[item].name);

describe("the way of a finding", () => {
  const path = pathOf(graph, blamed);

  test("runs from the variable over the cut to the loss, folded ops left out", () => {
    expect(names(path.nodes)).toEqual(["v", "a/in/clip", "b/x/less", "b/x/cast", "c/mul", "c/sum", "out", "loss"]);
    expect(path.edges.size).toBe(7);
    expect(names([path.culprit])).toEqual(["b/x/less"]);
  });

  test("lights the groups around it, and no others", () => {
    const lit = names(itemsOnPath(tree, path));

    expect(lit).toContain("b/x");
    expect(lit).not.toContain("d");
  });

  test("that does not reach the loss does not light it", () => {
    const short = pathOf(graph, finding(base, "error", ["v"], "b/x/less", ["a/in/read", "a/in/clip", "b/x/less"]));

    expect(names(short.nodes)).not.toContain("loss");
  });

  test("of a finding about variables alone is those", () => {
    const path = pathOf(graph, finding(base, "warning", ["v", "unknown"], ""));

    expect(names(path.nodes)).toEqual(["v"]);
    expect(path.culprit).toBe(-1);
  });
});

describe("what is open", () => {
  test("showing a path opens it up to what comes right after the cut", () => {
    expect(names(groupsToShow(tree, pathOf(graph, blamed))).sort()).toEqual(["a/in", "b/x", "c"]);
  });

  test("a path through very many groups is opened at its beginning and its cut", () => {
    const specs = Array.from({length: 40}, (_, index) => [
      {name: `g${index}/p`, from: index === 0 ? ["g0/r"] : [`g${index - 1}/q`]},
      {name: `g${index}/q`, from: [`g${index}/p`]},
    ]).flat();
    const long = trace([read("g0/r", "v"), ...specs]);
    const longTree = treeOf(flowGraph(long));
    const way = ["g0/r", ...specs.map((spec) => spec.name)];

    const open = groupsToShow(longTree, pathOf(longTree.graph, finding(long, "error", ["v"], "g30/p", way)));

    expect([...open].map((item) => longTree.items[item].label).sort()).toEqual(["g0", "g29", "g30", "g31"]);
  });

  test("at the start the scopes of errors are open, those of information are not", () => {
    const error = initiallyOpen(tree, diagnosis(base, {}, [blamed]));

    expect(names(error)).toContain("b/x");
  });

  test("at the start of a healthy run enough is open to see a model", () => {
    const specs = Array.from({length: 12}, (_, index) => [{name: `m/l${index}/a`}, {name: `m/l${index}/b`}]).flat();
    const healthy = treeOf(flowGraph(trace(specs)));
    const open = initiallyOpen(healthy, null);

    expect([...open].map((item) => healthy.items[item].label)).toEqual(["m"]);
  });

  test("only what is inside open groups is visible", () => {
    const node = graph.nodes.findIndex((each) => each.name === "b/x/less");
    const group = tree.items.findIndex((item) => item.name === "b/x");

    expect(visibleItems(tree, new Set())).not.toContain(node);
    expect(visibleItems(tree, new Set([group]))).toContain(node);
  });
});

describe("the list of findings", () => {
  const warning = finding(base, "warning", ["v"], "");
  const info = finding(base, "info", ["v"], "");

  test("is worst first", () => {
    expect(inOrder([info, warning, blamed])).toEqual([blamed, warning, info]);
  });

  test("is walked round", () => {
    const list = [blamed, warning];

    expect(neighbour(list, null, 1)).toBe(blamed);
    expect(neighbour(list, null, -1)).toBe(warning);
    expect(neighbour(list, keyOf(warning), 1)).toBe(blamed);
    expect(neighbour([], null, 1)).toBeNull();
  });
});
