import {describe, expect, test} from "vitest";
import {flowGraph} from "../src/model/graph.ts";
import {Nesting} from "../src/model/nesting.ts";
import {ancestorsOf, isGroup, treeOf, type Tree} from "../src/model/tree.ts";
import {Drawings} from "../src/layout/drawings.ts";
import {layered, type Box} from "../src/layout/layered.ts";
import {Arranger} from "../src/layout/arranger.ts";
import {groupFlows} from "../src/model/segments.ts";
import {random, trace} from "./build.ts";

/** Ops in scopes three deep, each reading some before it. */
function nested(count: number, seed: number): Tree {
  const next = random(seed);
  const names: string[] = [];
  const specs = Array.from({length: count}, (_, at) => {
    const [a, b] = [Math.floor(next() * 3), Math.floor(next() * 3)];
    const name = [`m${a}/n${b}/op${at}`, `m${a}/op${at}`, `op${at}`][Math.floor(next() * 3)];
    const from = at === 0 ? [] : [names[Math.floor(next() * at)], names[Math.floor(next() * at)]];
    names.push(name);
    return {name, from};
  });
  return treeOf(flowGraph(trace(specs)));
}

describe("edges and groups", () => {
  test.each([1, 2, 3])("what is seen inside a group is every edge that no child hides (%i)", (seed) => {
    const tree = nested(60, seed);
    const nesting = new Nesting(tree);
    const around = (node: number): number[] => [node, ...ancestorsOf(tree, node), tree.root];

    for (const {id, children} of tree.items.filter((item) => isGroup(tree, item.id))) {
      const childOf = (node: number): number => around(node).find((item) => children.includes(item)) ?? -1;
      const wanted = tree.graph.edges.flatMap(({from, to}, edge) => (childOf(from) !== childOf(to) ? [edge] : []));

      expect([...nesting.edgesIn(id)]).toEqual(wanted);
    }
  });

  test("the innermost common group holds both, and no group in it does", () => {
    const tree = nested(60, 4);
    const nesting = new Nesting(tree);

    for (const {from, to} of tree.graph.edges.filter((edge) => edge.from !== edge.to)) {
      const group = nesting.common(from, to);

      expect([nesting.isInside(from, group), nesting.isInside(to, group)]).toEqual([true, true]);
      expect(nesting.childOf(group, from)).not.toBe(nesting.childOf(group, to));
    }
  });
});

describe("drawings", () => {
  const box = (width: number): Box => ({width, height: 30, pin: null});
  const link = {from: 0, to: 1, fromOffset: 0, toOffset: 0};

  test("copies share one drawing", () => {
    const drawings = new Drawings();

    expect(drawings.of([box(80), box(60)], [link])).toBe(drawings.of([box(80), box(60)], [{...link}]));
  });

  test.each([
    ["a width", [box(81), box(60)], [link]],
    ["a pin", [{...box(80), pin: "first" as const}, box(60)], [link]],
    ["a place where a link arrives", [box(80), box(60)], [{...link, toOffset: 3}]],
    ["a direction", [box(80), box(60)], [{...link, from: 1, to: 0}]],
  ])("what differs in %s is drawn for itself", (_, boxes, links) => {
    const drawings = new Drawings();
    drawings.of([box(80), box(60)], [link]);

    expect(drawings.of(boxes, links)).toEqual(layered(boxes, links));
  });
});

describe("a stable layout", () => {
  test.each([1, 2, 3, 4])("whatever group is opened, its siblings stay above one another and side by side as they were (%i)", (seed) => {
    const tree = nested(40, seed);
    const arranger = new Arranger(tree, groupFlows(tree));
    const closed = arranger.arrange(new Set());
    const siblings = tree.items[tree.root].children;

    for (const group of siblings.filter((item) => isGroup(tree, item))) {
      const opened = arranger.arrange(new Set([group]));
      const middle = (scene: typeof closed, item: number): number => {
        const box = scene.byItem.get(item);
        return box === undefined ? NaN : box.y + box.height / 2;
      };
      for (const a of siblings) {
        for (const b of siblings) {
          const before = Math.sign(Math.round(middle(closed, a) - middle(closed, b)));
          const after = Math.sign(Math.round(middle(opened, a) - middle(opened, b)));
          expect(after).toBe(before);
          if (before === 0 && a !== b) {
            const left = (scene: typeof closed): boolean => (scene.byItem.get(a)?.x ?? 0) < (scene.byItem.get(b)?.x ?? 0);
            expect(left(opened)).toBe(left(closed));
          }
        }
      }
    }
  });
});
