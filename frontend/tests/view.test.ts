import {describe, expect, test} from "vitest";
import {atStep, parsePlace, withPlace} from "../src/host/address.ts";
import {steered} from "../src/layout/steer.ts";
import {Addresses} from "../src/model/addresses.ts";
import {flowGraph} from "../src/model/graph.ts";
import {ancestorsOf, isGroup, treeOf} from "../src/model/tree.ts";
import {placeOf, viewOf, type View} from "../src/state/view.ts";
import {trace} from "./build.ts";

const START: View = {selected: "", finding: null, open: null, tab: "variables", loss: "", term: "", beside: null, measure: "norm", charted: [], all: false};

describe("the address", () => {
  test.each<View>([
    START,
    {...START, selected: "a/b & c=d|e", finding: "nan~x/Log~0~w", open: ["a/", "b/c/"], tab: "heat"},
    {...START, open: [], tab: null, loss: "d loss", term: "kl", beside: "other run", measure: "op", charted: ["v/kernel", "w/bias"]},
    {...START, all: true},
  ])("leads back to %o", (view) => {
    const hash = withPlace("#gradflow&other=1", placeOf(view, START));

    expect(hash).toContain("other=1");
    expect(viewOf(parsePlace(hash), START)).toEqual(view);
  });

  test("says nothing of what is as at the start", () => {
    expect(withPlace("#gradflow", placeOf(START, START))).toBe("#gradflow");
  });

  test("with words nobody knows is as at the start", () => {
    expect(viewOf({tab: "nothing", measure: "miles"}, START)).toEqual(START);
  });
});

describe("addresses of items", () => {
  const tree = treeOf(flowGraph(trace([{name: "a/x/p"}, {name: "a/x/q", from: ["a/x/p"]}, {name: "a/y", from: ["a/x/q"]}, {name: "a", from: ["a/y"]}])));
  const addresses = new Addresses(tree);

  test("are all different and lead back", () => {
    const names = tree.items.map(({id}) => addresses.nameOf(id));

    expect(new Set(names).size).toBe(names.length);
    names.forEach((name, id) => expect(addresses.itemNamed(name)).toBe(id));
  });

  test("name the innermost open groups, which bring back those around them", () => {
    const inner = tree.items.find(({id, label}) => isGroup(tree, id) && label === "x")?.id as number;
    const open = new Set([inner, ...ancestorsOf(tree, inner)]);

    const names = addresses.namesOf(open);

    expect(names).toEqual(["a/x/"]);
    expect(addresses.groupsNamed(names)).toEqual(open);
    expect(addresses.groupsNamed(["gone/", "a/y"])).toEqual(new Set());
  });
});

test("where everything is open an address says so, instead of more names than anybody can send", () => {
  const ops = Array.from({length: 120}, (_, at) => ({name: `a_group_with_a_long_name_${at}/op`, from: at === 0 ? [] : [`a_group_with_a_long_name_${at - 1}/op`]}));
  const many = treeOf(flowGraph(trace([...ops, {name: "a_group_with_a_long_name_0/other", from: ["a_group_with_a_long_name_0/op"]}, ...ops.slice(1).map(({name}) => ({name: `${name}_2`, from: [name]}))])));
  const groups = new Set(many.items.filter(({id}) => isGroup(many, id) && id !== many.root).map(({id}) => id));
  const names = new Addresses(many).namesOf(groups);

  expect(groups.size).toBeGreaterThan(60);
  expect(placeOf({...START, open: names}, START).open).toBe("*");
  expect(new Addresses(many).groupsNamed(viewOf({open: "*"}, START).open as readonly string[])).toEqual(groups);
});

describe("the address to share", () => {
  test("names the step, also where that of the page does not because it is the last", () => {
    expect(atStep("http://host/#gradflow&p.gradflow.run=a%2Fb", 7)).toBe("http://host/#gradflow&p.gradflow.run=a%2Fb&p.gradflow.step=7");
    expect(atStep("http://host/#gradflow&p.gradflow.step=3", 7)).toBe("http://host/#gradflow&p.gradflow.step=7");
  });

  test("names none where there is none", () => {
    expect(atStep("http://host/#gradflow", -1)).toBe("http://host/#gradflow");
  });
});

describe("an arrow key", () => {
  const at = (item: number, x: number, y: number, open = false) => ({item, x, y, width: 10, height: 10, open});
  const boxes = [at(1, 0, 0), at(2, 0, 100), at(3, 80, 60), at(4, -50, -50, true)];

  test.each([
    ["down", 1, 2],
    ["up", 2, 1],
    ["right", 1, 3],
    ["left", 3, 2],
    ["left", 1, -1],
    ["down", -1, 1],
  ] as const)("%s from %i leads to %i", (direction, from, to) => {
    expect(steered(boxes, from, direction)).toBe(to);
  });
});
