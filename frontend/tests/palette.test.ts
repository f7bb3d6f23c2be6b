import {describe, expect, test} from "vitest";
import {DARK, LIGHT, type Palette} from "../src/draw/palette.ts";

/** WCAG 2.2's contrast of two opaque colours: https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio */
function contrast(one: string, other: string): number {
  const luminance = (colour: string): number => {
    const [red, green, blue] = [1, 3, 5].map((at) => {
      const share = parseInt(colour.slice(at, at + 2), 16) / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const [dim, bright] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (bright + 0.05) / (dim + 0.05);
}

test("the contrast is that of the standard", () => {
  expect(contrast("#000000", "#ffffff")).toBeCloseTo(21);
  expect(contrast("#777777", "#ffffff")).toBeCloseTo(4.48, 2);
});

describe.each([["light", LIGHT], ["dark", DARK]] as const)("in the %s theme", (_, palette: Palette) => {
  const grounds = ["raised", "gone", "goneMark", "come", "comeMark"] as const;

  test.each(grounds.flatMap((ground) => (["text", "keyword", "string", "number", "comment"] as const).map((ink) => [ink, ground] as const)))("code that is %s is read on %s", (ink, ground) => {
    expect(contrast(palette[ink], palette[ground])).toBeGreaterThanOrEqual(4.5);
  });

  test("lines that come are told from those that go, and both from what is different in them", () => {
    const {gone, goneMark, come, comeMark} = palette;

    expect(new Set([gone, goneMark, come, comeMark]).size).toBe(4);
  });
});
