import {describe, expect, it} from "vitest";
import {curvesOf} from "../src/model/curves.ts";

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
