import {describe, expect, test} from "vitest";
import {paintEdges} from "../src/draw/edges.ts";
import {pictureOf, type Condition} from "../src/draw/look.ts";
import {marksOf} from "../src/draw/marks.ts";
import {LIGHT} from "../src/draw/palette.ts";
import type {Picture} from "../src/draw/picture.ts";
import {SvgBrush, svgOf} from "../src/draw/svg.ts";
import {touches, type Rectangle} from "../src/layout/sizes.ts";
import {Unfolding} from "../src/layout/unfolding.ts";
import {NOTHING_ALIKE} from "../src/model/alike.ts";
import {flowOf, troublesOf} from "../src/model/flow.ts";
import {answersFor, StepNumbers} from "../src/model/gradients.ts";
import {measured} from "../src/model/measure.ts";
import {modelOf} from "../src/model/model.ts";
import type {Status} from "../src/record.ts";
import {answered, diagnosis, finding, random, read, trace} from "./build.ts";

const BLOCKS = Array.from({length: 6}, (_, at) => `m/b${at}`);
const OPS = BLOCKS.flatMap((block, at) => [
  read(`${block}/r`, `${block}/w`),
  {name: `${block}/mul`, from: [at === 0 ? "x" : `m/b${at - 1}/act`, `${block}/r`]},
  {name: `${block}/act`, from: [`${block}/mul${at === 4 ? " none" : ""}`, ...(at > 2 ? ["m/b0/act"] : [])]},
]);
/** In the order of the rows. */
const MEASURED = [...OPS.map(({name}) => name), ...BLOCKS.map((block) => `${block}/w`)];
const TRACE = answered(trace([{name: "x"}, ...OPS]), Object.fromEntries(MEASURED.map((name) => [name, "value" as const])));
const MODEL = modelOf(TRACE, new Set());

function everythingOpen(): Unfolding {
  const unfolding = new Unfolding(MODEL, new Set());
  unfolding.openAll();
  return unfolding;
}

/** `normOf`: of each row. */
function numbersOf(normOf: (row: number) => number): StepNumbers {
  const rows = MEASURED.flatMap((_, row) => [normOf(row), 1, 1, 0, Number(Number.isNaN(normOf(row))), 0]);
  return new StepNumbers(Float32Array.from(rows), new Float32Array(), 0, 1);
}

function conditionOf(numbers: StepNumbers, statuses: Record<string, Status> = {}): Condition {
  const {tree} = MODEL;
  const answers = answersFor(tree.graph, 0);
  const blamed = Object.keys(statuses).map((name) => finding(TRACE, "error", [name], "m/b4/act", ["m/b4/mul", "m/b4/act"]));
  const said = diagnosis(TRACE, statuses, blamed);
  const flow = flowOf(tree.graph, answers, said);
  const shown = measured("norm", tree.graph, answers, numbers, {low: -2, high: 2});
  return {tree, flow, troubles: troublesOf(flow, tree.items), answers, numbers, diagnosis: said, measured: shown, alike: NOTHING_ALIKE, changes: null, parts: null};
}

describe("what is seen of a scene", () => {
  const {scene} = everythingOpen();
  const picture = pictureOf(scene, conditionOf(numbersOf((row) => row + 1)));

  test.each([1, 2, 3, 4, 5, 6, 7, 8])("is all that touches the window, in order (%i)", (seed) => {
    const next = random(seed * 7919);
    const window: Rectangle = {x: next() * scene.width, y: next() * scene.height, width: next() * 300, height: next() * 300};

    expect(picture.boxesIn(window)).toEqual(picture.boxes.filter((box) => touches(box, window)));
    expect(picture.edgesIn(window)).toEqual(picture.edges.filter((edge) => touches(edge, window)));
  });

  test("is everything in a window on all of it, and nothing beside it", () => {
    expect(picture.boxesIn({x: 0, y: 0, ...scene})).toHaveLength(scene.placed.length);
    expect(picture.edgesIn({x: 0, y: 0, ...scene})).toHaveLength(scene.routed.length);
    expect(picture.boxesIn({x: -900, y: -900, width: 100, height: 100})).toEqual([]);
  });
});

describe("from one step to the next", () => {
  const {scene} = everythingOpen();
  const before = pictureOf(scene, conditionOf(numbersOf(() => 1)));
  const boxes = before.boxes;

  test("a picture is another if something flows otherwise, not if numbers change", () => {
    const condition = conditionOf(numbersOf(() => 1));
    const first = pictureOf(scene, condition);

    expect(pictureOf(scene, {...condition, numbers: numbersOf(() => 5)}).steady).toBe(first.steady);
    expect(pictureOf(scene, conditionOf(numbersOf(() => 5), {"m/b4/w": "disconnected"})).steady).not.toBe(first.steady);
  });

  test("boxes of ops stay, those of variables show their numbers", () => {
    const condition = conditionOf(numbersOf(() => 1));
    const first = pictureOf(scene, condition).boxes;

    const second = pictureOf(scene, {...condition, numbers: numbersOf(() => 5)}).boxes;

    expect(second).toHaveLength(boxes.length);
    second.forEach((box, at) => (box.kind === "variable" ? expect(box.magnitude?.norm).toBe(5) : expect(box).toBe(first[at])));
  });
});

test("what is in trouble comes first in a list that is too short for all", () => {
  const picture = pictureOf(everythingOpen().scene, conditionOf(numbersOf(() => 1), {"m/b4/w": "disconnected"}));
  const titles = picture.foremost(4, null).map((box) => box.title);

  expect(titles).toHaveLength(4);
  expect(titles).toEqual(expect.arrayContaining(["w", "act"]));
  expect(picture.foremost(1, new Set([picture.boxes[0].item])).map((box) => box.item)).toEqual([picture.boxes[0].item]);
  expect(picture.broken).toEqual(picture.edges.filter((edge) => edge.bundle.broken > 0));
  expect(picture.broken.length).toBeGreaterThan(0);
});

describe("lines seen from far away", () => {
  /** Width on the screen, and whether it is dashed, of each stroke. */
  function strokes(picture: Picture, zoom: number) {
    const brush = new SvgBrush(() => ({width: 0}) as TextMetrics);
    paintEdges(brush, picture, picture.edges, {litItems: null, litEdges: null, selected: -1, hovered: -1}, LIGHT, zoom);
    return brush.elements.flatMap((element) => {
      const width = / stroke-width="([^"]+)"/.exec(element)?.[1];
      return width === undefined ? [] : [{width: Number(width) * zoom, dashed: element.includes("stroke-dasharray")}];
    });
  }

  test("are thin where they are whole, and keep what tells them where they are not", () => {
    const picture = pictureOf(everythingOpen().scene, conditionOf(numbersOf((row) => (row === 5 ? NaN : 10 ** (row % 3)))));
    const [near, far] = [strokes(picture, 0.3), strokes(picture, 0.05)];

    expect(Math.max(...far.filter(({dashed}) => !dashed).map(({width}) => width))).toBeLessThan(1);
    expect(Math.max(...near.filter(({dashed}) => !dashed).map(({width}) => width))).toBeGreaterThan(2);
    expect(Math.max(...far.filter(({dashed}) => dashed).map(({width}) => width))).toBeGreaterThan(2);
  });
});

describe("the legend", () => {
  const nothing = {litItems: null, litEdges: null, selected: -1, hovered: -1};
  const {scene} = everythingOpen();
  const picture = pictureOf(scene, conditionOf(numbersOf((row) => (row === 5 ? NaN : 1)), {"m/b4/w": "disconnected"}));

  test("explains the marks that are drawn, and no others", () => {
    const {looks, signs} = marksOf(picture, nothing);

    expect([...looks]).toEqual(expect.arrayContaining(["finite", "nan", "broken"]));
    expect(looks).not.toContain("inf");
    expect(signs).toContain("missing");
    expect(signs).not.toContain("change");
  });

  test("explains what is lit alone", () => {
    const {litItems, litEdges} = {litItems: new Set([picture.boxes[0].item]), litEdges: new Set<number>()};
    const lit = marksOf(picture, {...nothing, litItems, litEdges});

    expect(lit.looks.size).toBe(0);
    expect(lit.signs).not.toContain("missing");
  });
});

test("a picture that leaves the page says what its colours and lines mean", () => {
  const {scene} = everythingOpen();
  const picture = pictureOf(scene, conditionOf(numbersOf((row) => (row === 5 ? NaN : 1)), {"m/b4/w": "disconnected"}));
  const svg = svgOf(picture, scene, {litItems: null, litEdges: null, selected: -1, hovered: -1}, LIGHT, () => ({width: 10}) as TextMetrics);
  const words = [...svg.matchAll(/<text [^>]*>([^<]*)<\/text>/g)].map(([, text]) => text);

  expect(words).toEqual(expect.arrayContaining(["Norm of the gradient", "10⁻²", "10²", "no gradient", "NaN  has NaN"]));
  expect(words).not.toContain("∞  has infinities");
  const [, height] = /viewBox="[^"]* ([\d.]+)"/.exec(svg) ?? [];
  const lowest = Math.max(...[...svg.matchAll(/<text x="[^"]*" y="([\d.]+)"/g)].map(([, y]) => Number(y)));
  expect(lowest).toBeLessThan(Number(height) - 24);
});
