import {describe, expect, test} from "vitest";
import type {Camera} from "../src/draw/camera.ts";
import {cornersOf, overlap} from "../src/panels/corners.ts";
import {Viewport} from "../src/panels/viewport.ts";

const HEIGHT = 30;

/** A way of so many boxes, one below the other, each a hundred below the one before. */
const way = (count: number) => Array.from({length: count}, (_, at) => ({x: 500, y: 100 * at, width: 90, height: HEIGHT}));

/** The positions of the boxes that a camera sees wholly in a view of that height. */
function seen(camera: Camera, boxes: ReturnType<typeof way>, height: number): number[] {
  return boxes.flatMap((box, at) => {
    const [top, bottom] = [box.y, box.y + box.height].map((y) => y * camera.zoom + camera.y);
    return top >= 0 && bottom <= height ? [at] : [];
  });
}

function lookAlong(count: number, at: number, height: number): {camera: Camera; shown: number[]} {
  const viewport = new Viewport(() => undefined);
  viewport.resize(800, height);
  const camera = viewport.along(way(count), at);
  return {camera, shown: seen(camera, way(count), height)};
}

describe("the look at a finding", () => {
  test("holds the whole way where that can be read", () => {
    const {camera, shown} = lookAlong(8, 4, 600);

    expect(shown).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(camera.zoom).toBeGreaterThan(0.58);
  });

  test("is never larger than life", () => {
    expect(lookAlong(2, 0, 600).camera.zoom).toBe(1);
  });

  test("gives up the end of a way before its beginning", () => {
    const {camera, shown} = lookAlong(30, 5, 600);

    expect(shown).toContain(0);
    expect(shown).toContain(5);
    expect(shown).not.toContain(29);
    expect(camera.zoom).toBeGreaterThan(0.58);
  });

  test("of a cut far from the beginning holds what comes right after it, and as much before as can be read", () => {
    const {camera, shown} = lookAlong(40, 20, 600);

    expect(shown).toContain(21);
    expect(shown).toContain(20);
    expect(shown.length).toBeGreaterThan(7);
    expect(shown[0]).toBeLessThan(15);
    expect(camera.zoom).toBeGreaterThan(0.58);
  });

  test("of a thing too large to be read whole is at its middle", () => {
    const viewport = new Viewport(() => undefined);
    viewport.resize(800, 600);

    const {zoom, x, y} = viewport.along([{x: 0, y: 0, width: 4000, height: 4000}], 0);

    expect([2000 * zoom + x, 2000 * zoom + y]).toEqual([400, 300]);
    expect(zoom).toBeGreaterThan(0.8);
  });

  test("leaves free what a panel covers", () => {
    const viewport = new Viewport(() => undefined);
    viewport.resize(800, 600);
    viewport.covered = 300;

    const {zoom, x} = viewport.along(way(2), 0);

    expect((500 + 45) * zoom + x).toBe(250);
  });

  test("keeps clear of the map, and where there is none stays in the middle", () => {
    const middle = (covered: number): number => {
      const viewport = new Viewport(() => undefined);
      viewport.resize(570, 470);
      viewport.covered = covered;
      const {zoom, x} = viewport.along(way(7), 6);
      return (500 + 45) * zoom + x;
    };

    expect(middle(0)).toBeLessThan(570 - 150);
    expect(middle(310)).toBeCloseTo(130);
  });
});

describe("the look at everything", () => {
  const wholeIn = (width: number, sceneWidth: number) => {
    const viewport = new Viewport(() => undefined);
    viewport.resize(width, 600);
    return viewport.whole({width: sceneWidth, height: 100});
  };

  test("of a small graph is in the middle, and larger than life", () => {
    const {zoom, x, y} = wholeIn(1000, 200);

    expect(zoom).toBe(1.6);
    expect([x + 100 * zoom, y + 50 * zoom]).toEqual([500, 300]);
  });

  test("is as large as the width allows", () => {
    const {zoom, x} = wholeIn(1000, 700);

    expect(zoom).toBeCloseTo((1000 - 72) / 700);
    expect(x).toBeCloseTo(36);
  });

  test("is no larger than life where that would be covered", () => {
    const viewport = new Viewport(() => undefined);
    viewport.resize(900, 500);
    viewport.legend = {width: 200, height: 124};
    const scene = {width: 600, height: 420};

    expect(viewport.whole(scene).zoom).toBeLessThanOrEqual(1);
  });

  test.each([[300, 200], [500, 120], [150, 300], [260, 330]])("covers nothing of a graph of %i by %i that is enlarged", (width, height) => {
    const viewport = new Viewport(() => undefined);
    viewport.resize(1000, 520);
    viewport.legend = {width: 200, height: 124};

    const {zoom, x, y} = viewport.whole({width, height});

    const seen = {x, y, width: width * zoom, height: height * zoom};
    expect(zoom).toBeGreaterThan(1);
    expect(cornersOf(viewport.view, viewport.legend).some((corner) => overlap(corner, seen))).toBe(false);
  });

  test("is beside the legend where there is room, and no smaller for it", () => {
    const high = (width: number) => {
      const viewport = new Viewport(() => undefined);
      viewport.resize(1000, 600);
      return viewport.whole({width, height: 500});
    };

    expect(high(700)).toMatchObject({x: 220, zoom: 1});
    expect(high(900)).toMatchObject({x: 50, zoom: 1});
  });
});

describe("the look at something low and far to the right", () => {
  const placed = (x: number, y: number): Camera => {
    const viewport = new Viewport(() => undefined);
    viewport.resize(1000, 500);
    return viewport.along([{x: 0, y: 0, width: 90, height: 30}, {x, y, width: 90, height: 30}], 1);
  };

  test("moves it from behind the map, and keeps its distance", () => {
    const {zoom, x} = placed(850, 420);

    expect((850 + 90) * zoom + x).toBeCloseTo(1000 - 174 - 30);
  });

  test("leaves it where the map is not", () => {
    const {zoom, x} = placed(850, 0);

    expect((850 + 90) * zoom + x).toBeGreaterThan(1000 - 180);
  });
});

describe("the first look at what is too large to be read whole", () => {
  const scene = {width: 1070, height: 1048};
  const legend = {width: 202, height: 124};
  /** Three columns of boxes down to the end of the scene. */
  const boxes = [0, 1, 2].flatMap((column) => Array.from({length: 14}, (_, row) => ({x: 60 + 360 * column, y: 40 + 72 * row, width: 240, height: 46})));
  const lookIn = (width: number, height: number, legendThere = legend) => {
    const viewport = new Viewport(() => undefined);
    viewport.resize(width, height);
    viewport.legend = legendThere;
    const camera = viewport.beginning(scene, boxes);
    return {viewport, camera, covered: viewport.covers(camera, boxes)};
  };

  test("is beside the map where there is room for that, and the legend is folded", () => {
    const {camera, covered} = lookIn(800, 458, {width: 90, height: 36});

    expect(camera.x + scene.width * camera.zoom).toBeLessThan(800 - 150);
    expect(covered).toBeLessThan(lookIn(800, 458).covered);
  });

  test("begins below the buttons where they would lie over it", () => {
    expect(lookIn(800, 458).camera.y).toBeGreaterThan(50);
    expect(lookIn(1110, 458).camera.y).toBeLessThan(50);
  });
});

test("all of a very large scene is seen", () => {
  const viewport = new Viewport(() => undefined);
  viewport.resize(1000, 600);

  const {zoom, x} = viewport.whole({width: 52_000, height: 38_000});

  expect(52_000 * zoom + x).toBeLessThan(1000);
  expect(38_000 * zoom).toBeLessThan(600);
});

describe("what lies in the corners", () => {
  const legend = {width: 202, height: 106};
  const corners = (viewport: Viewport) => cornersOf({width: viewport.room, height: viewport.view.height}, legend);
  const viewportOf = (width: number, height: number): Viewport => {
    const viewport = new Viewport(() => undefined);
    viewport.resize(width, height);
    viewport.legend = legend;
    return viewport;
  };

  test.each([
    [490, 460],
    [560, 300],
    [800, 460],
    [1110, 420],
  ])("covers nothing of a way that would be seen beside it, in a view of %i x %i", (width, height) => {
    for (const x of [-400, 0, 400]) {
      const viewport = viewportOf(width, height);
      const boxes = [0, 1, 2].map((at) => ({x: x * at, y: 80 * at, width: 60, height: 24}));

      const camera = viewport.along(boxes, 1);

      const [main] = [boxes[1]].map((box) => ({x: box.x * camera.zoom + camera.x, y: box.y * camera.zoom + camera.y, width: 60 * camera.zoom, height: 24 * camera.zoom}));
      expect(corners(viewport).some((corner) => overlap(corner, main))).toBe(false);
    }
  });

  test("is left by what was selected behind it, as far as must be", () => {
    const viewport = viewportOf(800, 460);
    viewport.camera = {zoom: 1, x: 0, y: 0};
    const [behind, beside] = [{x: 100, y: 380, width: 60, height: 24}, {x: 400, y: 380, width: 60, height: 24}];

    viewport.uncover(beside);
    expect(viewport.isFlying).toBe(false);
    expect(viewport.shows(viewport.camera, [behind])).toBe(false);
    expect(viewport.shows(viewport.clearing(behind), [behind])).toBe(true);
  });

  test("takes no more than there is", () => {
    const viewport = viewportOf(300, 120);

    expect(viewport.along([{x: 0, y: 0, width: 90, height: 30}], 0).zoom).toBeGreaterThan(0.5);
  });
});

describe("a view without a size, as a frame has while it is hidden", () => {
  const viewport = new Viewport(() => undefined);
  const thing = {x: 100, y: 380, width: 60, height: 24};

  test.each([
    ["what is selected", () => viewport.clearing(thing)],
    ["a path", () => viewport.along([thing], 0)],
    ["everything", () => viewport.whole({width: 400, height: 600})],
    ["the beginning", () => viewport.beginning({width: 400, height: 6000}, [thing])],
  ])("has a camera for %s", (_, look) => {
    expect(Object.values(look()).every(Number.isFinite)).toBe(true);
  });
});

describe("the look along a way beside other things", () => {
  const lookIn = (width: number): Camera => {
    const viewport = new Viewport(() => undefined);
    viewport.resize(width, 600);
    return viewport.along(way(2), 0);
  };

  test("uncovers what stands left of it, if the way stays clear of the map", () => {
    expect(lookIn(1020).x).toBe(220);
  });

  test("stays in the middle if there is no room for that", () => {
    expect(lookIn(800).x).toBe(400 - 545);
  });
});
