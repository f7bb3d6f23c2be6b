import {describe, expect, test} from "vitest";
import {magnitudeColour, magnitudeWidth, SHADES, shadeOf} from "../src/draw/colour.ts";
import {strokeOf} from "../src/draw/strokes.ts";
import {DARK, LIGHT} from "../src/draw/palette.ts";
import {parsePlace, withPlace} from "../src/host/address.ts";
import {formatCount, formatDecade, formatNumber, formatShape, plural} from "../src/model/format.ts";
import {answersFor, StepNumbers} from "../src/model/gradients.ts";
import {modelOf} from "../src/model/model.ts";
import {filtered, isTroubled, rowsOf, sorted, WORST_FIRST, type Row} from "../src/model/rows.ts";
import {position, widened} from "../src/model/scale.ts";
import {firstSentence} from "../src/panels/prose.ts";
import type {Status} from "../src/record.ts";
import {answered, read, trace} from "./build.ts";

describe("numbers in words", () => {
  test.each([
    [0, "0"],
    [-0.5, "−0.5"],
    [12.345, "12.3"],
    [0.00123456, "0.00123"],
    [0.00012345, "1.23e−4"],
    [-1.5e-9, "−1.5e−9"],
    [123456, "1.23e5"],
    [99999, "100000"],
    [1e30, "1e30"],
    [Infinity, "∞"],
    [-Infinity, "−∞"],
  ])("%d is %s", (value, text) => {
    expect(formatNumber(value)).toBe(text);
  });

  test("none is a dash, never a zero", () => {
    expect([null, undefined, NaN].map(formatNumber)).toEqual(["–", "–", "–"]);
  });

  test("decades, counts and shapes", () => {
    expect(formatDecade(-12)).toBe("10⁻¹²");
    expect(formatCount(1234567)).toBe("1\u202f234\u202f567");
    expect([plural(1, "op"), plural(2, "op")]).toEqual(["1 op", "2 ops"]);
    expect([formatShape(null), formatShape([]), formatShape([-1, 3])]).toEqual(["unknown shape", "()", "(?, 3)"]);
  });
});

describe("the scale", () => {
  test("is in whole decades around what was seen", () => {
    expect(widened(null, 3e-7, 20)).toEqual({low: -7, high: 2});
  });

  test("never becomes narrower, so that steps compare", () => {
    const before = widened(null, 1e-7, 10);

    expect(widened(before, 0.1, 0.2)).toEqual(before);
    expect(widened(before, 1e-8, 1).low).toBe(-8);
  });

  test("is not so narrow that noise looks like a difference, nor so wide that nothing does", () => {
    expect(widened(null, 0.5, 0.6)).toEqual({low: -4, high: 0});
    expect(widened(null, 1e-38, 1)).toEqual({low: -12, high: 0});
  });

  test("without any number it is what it was", () => {
    expect(widened({low: -3, high: 1}, Infinity, 0)).toEqual({low: -3, high: 1});
    expect(widened(null, Infinity, 0)).toEqual({low: -4, high: 0});
  });

  test("places are even in decades and stop at the ends", () => {
    const scale = {low: -4, high: 0};

    expect([1e-9, 1e-4, 1e-2, 1, 1e5].map((norm) => position(scale, norm))).toEqual([0, 0, 0.5, 1, 1]);
  });
});

describe("colours", () => {
  const luminance = (colour: string): number => {
    const [red, green, blue] = (colour.match(/\d+/g) ?? []).map(Number);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const places = Array.from({length: 21}, (_, index) => index / 20);

  test("larger is darker on light and lighter on dark, evenly without a turn", () => {
    const light = places.map((place) => luminance(magnitudeColour(place, false)));
    const dark = places.map((place) => luminance(magnitudeColour(place, true)));

    expect(light).toEqual([...light].sort((a, b) => b - a));
    expect(dark).toEqual([...dark].sort((a, b) => a - b));
  });

  test("no magnitude is red: that is kept for what is broken", () => {
    for (const place of places.flatMap((each) => [magnitudeColour(each, false), magnitudeColour(each, true)])) {
      const [red, green, blue] = (place.match(/\d+/g) ?? []).map(Number);
      expect(red > 1.5 * Math.max(green, blue)).toBe(false);
    }
  });

  test("larger is wider", () => {
    expect(magnitudeWidth(1)).toBeGreaterThan(magnitudeWidth(0));
    expect([shadeOf(0), shadeOf(1)]).toEqual([0, SHADES - 1]);
  });

  test("no two states look alike without colour", () => {
    const looks = (["broken", "zero", "nan", "inf", "unrecorded", "lost", "off"] as const).map((look) => strokeOf(look, LIGHT));

    expect(new Set(looks.map(({dash, width}) => `${dash.join()} ${width}`)).size).toBe(looks.length);
    expect(strokeOf("broken", DARK).colour).toBe(DARK.bad);
  });
});

describe("the address", () => {
  test("says the run, the step and the selection, and leaves the rest of it alone", () => {
    const hash = withPlace("#gradflow&p.other.x=1&p.gradflow.run=old", {run: "a b/c&d", step: "7", select: ""});

    expect(hash).toBe("#gradflow&p.other.x=1&p.gradflow.run=a%20b%2Fc%26d&p.gradflow.step=7");
    expect(parsePlace(hash)).toEqual({run: "a b/c&d", step: "7"});
  });

  test("a broken escape is read as it stands", () => {
    expect(parsePlace("#p.gradflow.run=%E0%A4%A")).toEqual({run: "%E0%A4%A"});
  });
});

describe("the table", () => {
  const row = (variable: number, name: string, norm: number | null, status: Row["status"] = "connected"): Row => ({
    variable,
    name,
    status,
    explained: false,
    without: false,
    norm,
    maxAbs: null,
    weight: null,
    update: null,
    ratio: null,
  });
  const rows = [row(0, "b/kernel", 2), row(1, "a/kernel", null, "disconnected"), row(2, "b/bias", 10)];
  const order = (list: readonly Row[]): number[] => list.map((each) => each.variable);

  test("sorts by number, what has none last in both directions", () => {
    expect(order(sorted(rows, {column: "norm", descending: true}))).toEqual([2, 0, 1]);
    expect(order(sorted(rows, {column: "norm", descending: false}))).toEqual([0, 2, 1]);
  });

  test("sorts trouble first by status", () => {
    expect(order(sorted(rows, {column: "status", descending: false}))).toEqual([1, 0, 2]);
  });

  test("begins with the worst, alike ones in the model's order, frozen ones last", () => {
    const statuses: Status[] = ["frozen", "connected", "vanishing", "zero", "unused", "connected", "nan", "disconnected"];
    statuses.push("exploding", "inf", "error", "unused");
    const all = statuses.map((status, index) => row(index, "v", null, status));

    expect(order(sorted(all, WORST_FIRST))).toEqual([10, 6, 9, 7, 4, 11, 3, 8, 2, 1, 5, 0]);
  });

  test("puts what is explained behind the trouble and before what is well, and numbers that are not finite first", () => {
    const rows = [row(0, "v", 1), {...row(1, "v", NaN, "vanishing"), explained: true}, row(2, "v", 3, "vanishing")];

    expect(order(sorted(rows, WORST_FIRST))).toEqual([2, 1, 0]);
    expect(order(sorted(rows, {column: "norm", descending: true}))).toEqual([1, 2, 0]);
    expect(isTroubled({...row(0, "v", null, "disconnected"), explained: true})).toBe(false);
  });

  test("of a gradient with NaN says so, and not the norm of what is left", () => {
    const made = answered(trace([read("read", "w"), {name: "out", from: ["read"]}]), {w: "value"});
    const graph = modelOf(made, new Set()).tree.graph;
    const at = (nans: number, lost: number) =>
      rowsOf(made, null, answersFor(graph, 0), new StepNumbers(Float32Array.of(0, 0, 0, 0, nans, 0), Float32Array.of(2, 1, 0, lost), 0, 1))[0];

    expect(at(3, 4)).toMatchObject({norm: NaN, maxAbs: NaN, weight: NaN, update: NaN});
    expect(at(0, 0)).toMatchObject({norm: 0, maxAbs: 0, weight: 2, update: 1});
  });

  test("counts as troubled what cannot train, never what is frozen or only small", () => {
    const statuses: Status[] = ["disconnected", "unused", "nan", "inf", "error", "frozen", "zero", "vanishing", "connected"];
    const troubled = statuses.filter((status) => isTroubled(row(0, "v", null, status)));

    expect(troubled).toEqual(["disconnected", "unused", "nan", "inf", "error"]);
  });

  test("is filtered by words in name and status", () => {
    expect(order(filtered(rows, "KERNEL b/"))).toEqual([0]);
    expect(order(filtered(rows, "disconnected"))).toEqual([1]);
    expect(order(filtered(rows, " "))).toEqual([0, 1, 2]);
  });
});

describe("sentences", () => {
  test.each([
    ["One. Two. Three.", "One.", "Two. Three."],
    ["`v` never learns: `tf.round` blocks it.", "`v` never learns", "`tf.round` blocks it."],
    ["`a. b` is whole. Rest", "`a. b` is whole.", "Rest"],
    ["0.5 is no end", "0.5 is no end", ""],
  ])("the first of %s", (text, first, rest) => {
    expect(firstSentence(text)).toEqual([first, rest]);
  });
});
