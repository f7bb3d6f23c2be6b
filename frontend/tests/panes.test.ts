import {describe, expect, test} from "vitest";
import {limitsOf, sizeFrom, sizeOf, usualSize} from "../src/state/panes.ts";

const NOBODY = {side: null, details: null, drawer: null};
const WIDE = {width: 1440, height: 900};

describe("a pane", () => {
  test("has the usual size where nobody has drawn it, wider findings in a wider frame", () => {
    expect(sizeOf("side", NOBODY, WIDE, 0)).toBe(usualSize("side", WIDE));
    expect(usualSize("side", WIDE)).toBeGreaterThan(usualSize("side", {width: 900, height: 800}));
  });

  test("with a short table takes no more than that needs, and gives the rest to the graph", () => {
    const [one, six, many] = [1, 6, 600].map((rows) => usualSize("drawer", WIDE, rows));

    expect(one).toBeLessThan(six);
    expect(six).toBeLessThan(many);
    expect(many).toBe(usualSize("drawer", WIDE));
  });

  test("is as large as it was drawn", () => {
    expect(sizeOf("side", {...NOBODY, side: 500}, WIDE, 0)).toBe(500);
  });

  test.each([[900, 800], [1440, 900], [1000, 500], [320, 400]])("leaves some of the graph in a frame of %i by %i, whatever it was drawn to", (width, height) => {
    const chosen = {side: 5000, details: 5000, drawer: 5000};
    const side = sizeOf("side", chosen, {width, height}, 0);
    const beside = width >= 900 ? side : 0;
    const details = sizeOf("details", NOBODY, {width, height}, beside);

    expect(side).toBeLessThan(width);
    expect(details).toBeLessThan(width);
    expect(sizeOf("drawer", chosen, {width, height}, beside)).toBeLessThan(height);
  });

  test.each(["side", "details", "drawer"] as const)("is never drawn to nothing: %s", (pane) => {
    expect(sizeOf(pane, {...NOBODY, [pane]: 1}, WIDE, 0)).toBe(limitsOf(pane, WIDE, 0).least);
  });

  test.each([["420", 420], [null, null], ["", null], ["wide", null], ["-3", null], ["Infinity", null], ["0", null]])("kept as %j is %j", (text, size) => {
    expect(sizeFrom(text)).toBe(size);
  });
});
