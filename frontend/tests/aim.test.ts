import {describe, expect, test} from "vitest";
import type {Overview} from "../src/api/routes.ts";
import {Aim} from "../src/panels/aim.ts";
import type {Severity} from "../src/record.ts";
import type {State} from "../src/state/state.ts";
import {diagnosis, finding, trace} from "./build.ts";

const ONE = trace([{name: "a"}, {name: "b", from: ["a"]}]);
const TWO = {...ONE, targets: ["d_loss", "g_loss"].map((name) => ({...ONE.targets[0], name}))};

function state(run: string, worst: Severity | null, target = 0): State {
  const findings = worst === null ? [] : [{...finding(TWO, worst, ["w"], ""), target: 1}];
  const overview = {run, session: {id: "1"}} as unknown as Overview;
  return {trace: TWO, target, diagnosis: diagnosis(TWO, {}, findings), overview} as unknown as State;
}

describe("of several losses is shown", () => {
  test("the one that the worst finding is about", () => {
    expect(new Aim().target(state("a", "error"), "")).toBe(1);
    expect(new Aim().target(state("a", "info"), "")).toBe(0);
    expect(new Aim().target(state("a", null), "")).toBe(0);
  });

  test("the one that was asked for by its name", () => {
    expect(new Aim().target(state("a", "error"), "d_loss")).toBe(0);
    expect(new Aim().target(state("a", null), "g_loss")).toBe(1);
    expect(new Aim().target(state("a", "error"), "a loss of another run")).toBe(1);
  });

  test("no other at other steps of the same run", () => {
    const aim = new Aim();
    aim.target(state("a", null), "");

    expect(aim.target(state("a", "error"), "")).toBe(0);
    expect(aim.target(state("b", "error"), "")).toBe(1);
  });

  test("what is shown already, until it is known what is wrong", () => {
    const aim = new Aim();

    expect(aim.target({...state("a", "error", 0), diagnosis: null}, "")).toBe(0);
    expect(aim.target(state("a", "error", 0), "")).toBe(1);
  });
});
