import {describe, expect, test} from "vitest";
import {reversals} from "../src/layout/acyclic.ts";
import {layered, type Box} from "../src/layout/layered.ts";
import {layersOf} from "../src/layout/layers.ts";
import {Arranger} from "../src/layout/arranger.ts";
import type {Scene} from "../src/layout/scene.ts";
import {flowGraph} from "../src/model/graph.ts";
import {groupFlows} from "../src/model/segments.ts";
import {isGroup, treeOf, type Tree} from "../src/model/tree.ts";
import {random, read, trace} from "./build.ts";

const box = (pin: Box["pin"] = null): Box => ({width: 80, height: 30, pin});
const link = (from: number, to: number) => ({from, to, fromOffset: 0, toOffset: 0});
const chainOf = (count: number) => Array.from({length: count - 1}, (_, at) => link(at, at + 1));

/** Links among `count` nodes, each pointing to a later one. */
function randomLinks(count: number, seed: number) {
  const next = random(seed);
  return Array.from({length: count - 1}, (_, at) => link(Math.floor(next() * (at + 1)), at + 1)).concat(
    Array.from({length: count}, () => {
      const to = 1 + Math.floor(next() * (count - 1));
      return link(Math.floor(next() * to), to);
    }),
  );
}

describe("cycles", () => {
  test("one link of each cycle is reversed, and no other", () => {
    expect(reversals(4, [link(0, 1), link(1, 2), link(2, 1), link(2, 3)])).toEqual([false, false, true, false]);
  });

  test("a chain of a hundred thousand does not overflow", () => {
    expect(reversals(100_000, chainOf(100_000)).includes(true)).toBe(false);
  });
});

describe("layers", () => {
  test.each([1, 2, 3, 4, 5])("every link points down, whatever the graph (%i)", (seed) => {
    const links = randomLinks(60, seed);

    const layers = layersOf(60, links, new Array(60).fill(null));

    expect(links.every(({from, to}) => layers[from] < layers[to])).toBe(true);
  });

  test("a source stands right above what it feeds", () => {
    const layers = layersOf(5, [link(0, 1), link(1, 2), link(2, 3), link(4, 3)], new Array(5).fill(null));

    expect(layers[4]).toBe(layers[3] - 1);
  });

  test("ports are first and last, alone", () => {
    const layers = layersOf(4, [link(0, 1), link(1, 2), link(2, 3)], ["first", null, null, "last"]);

    expect([...layers]).toEqual([0, 1, 2, 3]);
  });
});

describe("a layered drawing", () => {
  test.each([1, 2, 3])("has no two boxes that overlap (%i)", (seed) => {
    const boxes = Array.from({length: 40}, () => box());

    const {x, y} = layered(boxes, randomLinks(40, seed));

    for (let a = 0; a < 40; a += 1) {
      for (let b = 0; b < a; b += 1) {
        expect(Math.abs(x[a] - x[b]) >= 80 || Math.abs(y[a] - y[b]) >= 30).toBe(true);
      }
    }
  });

  test("routes begin below their source and end above their target", () => {
    const links = randomLinks(30, 9);

    const {x, y, routes} = layered(Array.from({length: 30}, () => box()), links);

    links.forEach(({from, to}, index) => {
      const points = routes[index];
      expect(points.slice(0, 2)).toEqual([x[from], y[from] + 15]);
      expect(points.slice(-2)).toEqual([x[to], y[to] - 15]);
    });
  });

  test("a link against the flow is marked and still runs from its source to its target", () => {
    const {x, routes, back, y} = layered([box(), box(), box()], [link(0, 1), link(1, 2), link(2, 0)]);

    expect(back).toEqual([false, false, true]);
    expect(routes[2].slice(0, 2)).toEqual([x[2], y[2] - 15]);
    expect(routes[2].slice(-2)).toEqual([x[0], y[0] + 15]);
  });

  test("everything lies within its width and height", () => {
    const {x, y, width, height} = layered(Array.from({length: 25}, () => box()), randomLinks(25, 4));

    expect(Math.min(...x)).toBeGreaterThanOrEqual(40 - 1e-9);
    expect(Math.max(...x)).toBeLessThanOrEqual(width - 40 + 1e-9);
    expect(Math.max(...y)).toBeLessThanOrEqual(height);
  });

  test("a long chain is cut into columns of about the same length instead of a ribbon", () => {
    const count = 120;

    const {width, height, x} = layered(Array.from({length: count}, () => box()), chainOf(count));

    expect(height / width).toBeLessThan(2.5);
    const columns = new Map<number, number>();
    x.forEach((each) => columns.set(Math.round(each), (columns.get(Math.round(each)) ?? 0) + 1));
    expect(Math.min(...columns.values())).toBeGreaterThan(0.5 * Math.max(...columns.values()));
  });

  test("boxes with their way in at the left and their way out at the right are no stairs", () => {
    const count = 30;
    const links = chainOf(count).map((each) => ({...each, fromOffset: 140, toOffset: -140}));

    const {x, width, height} = layered(Array.from({length: count}, () => ({width: 300, height: 200, pin: null})), links);

    expect(width).toBeLessThan(2 * height);
    expect(width * height).toBeLessThan(3 * count * 300 * 200);
    expect(new Set(Array.from(x, Math.round)).size).toBeLessThan(count / 3);
  });

  test("ways in and out that are near to one another stand below one another", () => {
    const links = chainOf(3).map((each) => ({...each, fromOffset: 20, toOffset: -20}));

    const {x} = layered(Array.from({length: 3}, () => ({width: 300, height: 200, pin: null})), links);

    expect(x[1] - x[0]).toBeCloseTo(40);
    expect(x[2] - x[1]).toBeCloseTo(40);
  });

  test("a chain of ten thousand has a drawing", () => {
    const {x, width} = layered(Array.from({length: 10_000}, () => box()), chainOf(10_000));

    expect(x).toHaveLength(10_000);
    expect(Number.isFinite(width)).toBe(true);
  });

  test("nothing is a drawing too", () => {
    expect(layered([], [])).toMatchObject({width: 0, height: 0});
  });
});

describe("a scene", () => {
  const base = trace([
    read("a/r", "v"),
    {name: "a/p", from: ["a/r"]},
    {name: "a/q", from: ["a/p"]},
    {name: "b/in/s", from: ["a/q"]},
    {name: "b/in/t", from: ["b/in/s"]},
    {name: "b/u", from: ["b/in/t", "a/p"]},
    {name: "out", from: ["b/u"]},
  ]);
  const tree = treeOf(flowGraph(base));
  const arranger = new Arranger(tree, groupFlows(tree));
  const groups = tree.items.filter((item) => isGroup(tree, item.id) && item.id !== tree.root).map((item) => item.id);
  const opened = new Set(groups);

  test("children lie inside their open groups", () => {
    const scene = arranger.arrange(opened);

    for (const each of scene.placed) {
      const parent = scene.byItem.get(tree.items[each.item].parent);
      if (parent !== undefined) {
        expect(each.x).toBeGreaterThanOrEqual(parent.x);
        expect(each.y).toBeGreaterThanOrEqual(parent.y);
        expect(each.x + each.width).toBeLessThanOrEqual(parent.x + parent.width);
        expect(each.y + each.height).toBeLessThanOrEqual(parent.y + parent.height);
      }
    }
  });

  test("closed groups hide what is inside", () => {
    const scene = arranger.arrange(new Set());

    expect(scene.placed.map((each) => tree.items[each.item].label).sort()).toEqual(["a", "b", "loss"]);
  });

  test("an edge into an open group goes on inside where it ended at the border", () => {
    const scene = arranger.arrange(opened);

    expect(loose(scene, tree)).toEqual([]);
  });

  test("every edge of the graph is drawn without a gap, whatever is open", () => {
    const next = random(3);
    for (let round = 0; round < 20; round += 1) {
      const open = new Set(groups.filter(() => next() > 0.5));
      const scene = arranger.arrange(open);

      expect(loose(scene, tree)).toEqual([]);
      const drawn = new Set(scene.routed.flatMap((each) => each.segment.edges));
      const hidden = tree.graph.edges.filter((edge) => sameClosedGroup(tree, scene, edge.from, edge.to)).length;
      expect(drawn.size).toBe(tree.graph.edges.length - hidden);
    }
  });

  test("what did not change is not laid out again", () => {
    const before = arranger.arrange(opened).routed.length;

    expect(arranger.arrange(opened).routed).toHaveLength(before);
    expect(arranger.arrange(new Set()).placed).toHaveLength(3);
  });

  test("no edge runs through an item without edges", () => {
    const specs = [{name: "m/x"}, {name: "m/y", from: ["m/x"]}, {name: "m/lonely"}, {name: "m/alone"}, {name: "z/out", from: ["m/y"]}, {name: "z/end", from: ["z/out"]}];
    const at = treeOf(flowGraph(trace(specs)));
    const all = new Set(at.items.filter((item) => isGroup(at, item.id)).map((item) => item.id));

    const scene = new Arranger(at, groupFlows(at)).arrange(all);

    for (const each of scene.placed.filter((box) => ["lonely", "alone"].includes(at.items[box.item].label))) {
      const xs = scene.routed.flatMap(({points}) => points.filter((_, index) => index % 2 === 0));
      expect(xs.some((x) => x > each.x && x < each.x + each.width)).toBe(false);
    }
  });

  test("items without edges stand in rows, not in one line", () => {
    const lonely = Array.from({length: 30}, (_, index) => ({name: `lonely_${index}`}));
    const alone = treeOf(flowGraph(trace([...lonely, {name: "x"}])));

    const scene = new Arranger(alone, groupFlows(alone)).arrange(new Set());

    expect(scene.width).toBeLessThan(3 * scene.height);
  });
});

/** Ends of routes at open groups' borders or ports that no other route meets. */
function loose(scene: Scene, tree: Tree): string[] {
  const meets = (x: number, y: number, group: number, self: object): boolean =>
    scene.routed.some(
      (other) =>
        other !== self &&
        other.group === group &&
        [other.points.slice(0, 2), other.points.slice(-2)].some(([a, b]) => Math.hypot(a - x, b - y) < 0.01),
    );
  return scene.routed.flatMap((routed) => {
    const {segment, points, group} = routed;
    const ends = [
      {end: segment.from, at: points.slice(0, 2)},
      {end: segment.to, at: points.slice(-2)},
    ];
    return ends.flatMap(({end, at}) => {
      const open = end >= 0 && scene.byItem.get(end)?.open === true;
      const other = end < 0 ? tree.items[group].parent : end;
      return (open || end < 0) && !meets(at[0], at[1], other, routed) ? [`${group}: ${segment.from}>${segment.to}`] : [];
    });
  });
}

/** Whether both ends are hidden in the same closed group. */
function sameClosedGroup(tree: Tree, scene: Scene, a: number, b: number): boolean {
  const shown = (node: number): number => {
    let item = node;
    while (!scene.byItem.has(item)) {
      item = tree.items[item].parent;
    }
    return item;
  };
  return shown(a) === shown(b);
}
