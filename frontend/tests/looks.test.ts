import {describe, expect, test} from "vitest";
import type {Camera} from "../src/draw/camera.ts";
import {Unfolding} from "../src/layout/unfolding.ts";
import {initiallyOpen} from "../src/model/opening.ts";
import {modelOf} from "../src/model/model.ts";
import {mainOf, pathOf, type Path} from "../src/model/paths.ts";
import {firstLook, lookAlong} from "../src/panels/looks.ts";
import {Viewport} from "../src/panels/viewport.ts";
import {answered, diagnosis, finding, read, trace} from "./build.ts";

describe("the first look at a graph too large to be read whole", () => {
  const chain = Array.from({length: 60}, (_, at) => ({name: `model/op_${at}`, from: [at === 0 ? "model/read" : `model/op_${at - 1}`]}));
  const base = answered(
    trace([
      read("model/read", "model/kernel"),
      ...chain,
      read("model/router/gate/read", "model/router/gate/threshold"),
      {name: "model/router/gate/less", from: ["model/router/gate/read not_differentiable"]},
      {name: "model/router/gate/cast", from: ["model/router/gate/less dtype"]},
      {name: "model/router/mul", from: ["model/router/gate/cast", "model/op_59"]},
      {name: "model/out", from: ["model/router/mul"]},
      {name: "out", from: ["model/out"]},
    ]),
    {"model/router/gate/threshold": "none"},
  );
  const way = ["model/router/gate/read", "model/router/gate/less", "model/router/gate/cast", "model/router/mul", "model/out", "out"];
  const blamed = finding(base, "error", ["model/router/gate/threshold"], "model/router/gate/less", way);
  const said = diagnosis(base, {"model/router/gate/threshold": "disconnected"}, [blamed]);

  test.each([120, 140, 160, 180, 200, 240])("gives up no beginning of a way for a header in a view %i high", (height) => {
    const model = modelOf(base, new Set([blamed.culprit]));
    const unfolding = new Unfolding(model, initiallyOpen(model.tree, said));
    const viewport = new Viewport(() => undefined);
    viewport.resize(900, height);
    const path = pathOf(model.tree.graph, blamed) as Path;
    const places = unfolding.standIns(path.nodes);
    const seen = (camera: Camera) => places.findIndex(({y}) => y * camera.zoom + camera.y >= 0);

    const plain = viewport.along(places, places.indexOf(unfolding.standIns([mainOf(path)])[0]));

    expect(seen(firstLook(viewport, unfolding, path))).toBe(seen(plain));
  });

  test("begins at the beginning where the worst is about no op and no variable", () => {
    const model = modelOf(base, new Set());
    const unfolding = new Unfolding(model, initiallyOpen(model.tree, said));
    const viewport = new Viewport(() => undefined);
    viewport.resize(900, 500);
    const aboutNothing = pathOf(model.tree.graph, {...blamed, variables: [], op: null, culprit: -1, path: []});

    expect(firstLook(viewport, unfolding, aboutNothing)).toEqual(firstLook(viewport, unfolding, null));
    expect(lookAlong(viewport, unfolding, aboutNothing.nodes, mainOf(aboutNothing))).toEqual(viewport.camera);
  });

  test("shows the headers of the groups in which the worst stands", () => {
    const model = modelOf(base, new Set([blamed.culprit]));
    const unfolding = new Unfolding(model, initiallyOpen(model.tree, said));
    const viewport = new Viewport(() => undefined);
    viewport.resize(900, 500);

    const camera = firstLook(viewport, unfolding, pathOf(model.tree.graph, blamed));

    const tops = [...unfolding.scene.byItem.values()].filter(({open}) => open).map(({item, y}) => [model.tree.items[item].label, y * camera.zoom + camera.y]);
    const {router, gate} = Object.fromEntries(tops) as Record<string, number>;
    expect(router).toBeGreaterThan(10);
    expect(gate).toBeGreaterThan(router);
    expect(gate).toBeLessThan(250);
  });
});
