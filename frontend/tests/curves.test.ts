import {describe, expect, it} from "vitest";
import {comparedIn, curvesOf} from "../src/model/curves.ts";
import type {Descent} from "../src/record.ts";

const trained = (curve: readonly (number | null)[], without: readonly (number | null)[]) => ({
  steps: curve.length - 1,
  loss: [curve[0] ?? null, curve[curve.length - 1] ?? null],
  without: [without[0] ?? null, without[without.length - 1] ?? null],
  curve,
  curve_without: without,
});

describe("curvesOf", () => {
  it("has both courses in one range", () => {
    expect(curvesOf(trained([4, 3, 2], [4, 4, 6]))).toEqual({
      withEdit: [[[0, 0.5], [0.5, 0.25], [1, 0]]],
      without: [[[0, 0.5], [0.5, 0.5], [1, 1]]],
      range: [2, 6],
      isLog: false,
    });
  });

  it("interrupts a line where the loss is not finite", () => {
    const drawn = curvesOf(trained([1, 0.5, 0], [1, null, null]));

    expect(drawn?.without).toEqual([[[0, 1]]]);
    expect(drawn?.withEdit).toEqual([[[0, 1], [0.5, 0.5], [1, 0]]]);
  });

  it("is logarithmic over several orders of magnitude", () => {
    const drawn = curvesOf(trained([1000, 10, 0.1], []));

    expect(drawn?.isLog).toBe(true);
    expect(drawn?.withEdit[0][1][1]).toBeCloseTo(0.5);
  });

  it("draws a loss that does not change, and nothing for an older log", () => {
    expect(curvesOf(trained([2, 2], []))?.withEdit).toEqual([[[0, 0.5], [1, 0.5]]]);
    expect(curvesOf(trained([], []))).toBeNull();
    expect(curvesOf(trained([null, null], [1, 1]))).toBeNull();
  });
});

const descent = (losses: readonly (number | null)[], more: Partial<Descent> = {}): Descent => ({by: "adam", rate: 0.01, changed: "nothing", losses, ...more});

describe("comparedIn", () => {
  const fit = {step: 7, rows: 32, began: null, ended: null};

  it("compares the best course with the best one without the inputs", () => {
    const alike = descent([1, 0.8], {changed: "inputs_alike"});

    expect(comparedIn({...fit, descents: [descent([1, 0.9], {by: "own", rate: null}), descent([1, null, 0.7]), alike]})).toEqual({
      steps: 2,
      curve: [1, null, 0.7],
      curve_without: [1, 0.8],
      names: ["with Adam at a rate of 0.01", "where each row has the inputs of the first one"],
    });
  });

  it("compares it with the program's own optimizer otherwise, and is null without any", () => {
    const own = descent([1, 0.9], {by: "own", rate: null});

    expect(comparedIn({...fit, descents: [own, descent([1, 0.1])]})?.curve_without).toEqual([1, 0.9]);
    expect(comparedIn({...fit, descents: [own]})?.curve_without).toEqual([]);
    expect(comparedIn({...fit, descents: []})).toBeNull();
  });
});
