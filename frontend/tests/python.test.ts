import {expect, test} from "vitest";
import {differing, linesOfPieces, piecesOf, type Piece} from "../src/model/python.ts";

/** The pieces that are not plain, each as `kind text`. */
const coloured = (pieces: readonly Piece[]): string[] => pieces.filter(({kind}) => kind !== "plain").map(({kind, text}) => `${kind} ${text}`);

test.each([
  ["return tf.sequence_mask(threshold, self.width)", ["keyword return", "keyword self"]],
  ["x = 1.5e-3 * y2 + .5  # half of 1", ["number 1.5e-3", "number .5", "comment # half of 1"]],
  ['name = f"{x} # no comment" + rb\'\\\'\'', ['string f"{x} # no comment"', "string rb'\\''"]],
  ["notation = is_in(None, informal)", ["keyword None"]],
  ["match = case.sum()", []],
  ["match x:", ["keyword match"]],
  ["mask = x[..., tf.newaxis] > 0x1F", ["number 0x1F"]],
  ["café = 'é' if π else 0", ["string 'é'", "keyword if", "keyword else", "number 0"]],
  ["print('never closed", ["string 'never closed"]],
])("%s is coloured as Python reads it", (code, expected) => {
  expect(coloured(piecesOf(code))).toEqual(expected);
});

test.each(["", "x", "\tx = '''a\nb''' # c\n\n  y", '"\\', "£ $ ?", "a\r\nb", "x = 'a\\\nb'"])("the pieces of %j are the text", (code) => {
  expect(piecesOf(code).map(({text}) => text).join("")).toBe(code);
  expect(linesOfPieces(code).map((line) => line.map(({text}) => text).join("")).join("\n")).toBe(code);
});

test("a string over several lines is one on each of them", () => {
  const lines = linesOfPieces('doc = """one\ntwo"""\nx = 1');

  expect(lines.map(coloured)).toEqual([['string """one'], ['string two"""'], ["number 1"]]);
});

test("a long line takes no longer than its length", () => {
  const line = `x = "${"\\a'".repeat(20_000)}`;

  expect(piecesOf(line)).toHaveLength(5);
});

test.each([
  ["tf.round(x) + 1", "tf.sigmoid(x) + 1", "round", "sigmoid"],
  ["a", "a", "", ""],
  ["f(x)", "f(g(x))", "x", "g(x)"],
  ["", "x", "", "x"],
])("of %j and %j the difference is known", (before, after, gone, come) => {
  const [one, other] = [piecesOf(before), piecesOf(after)];
  const [from, endBefore, endAfter] = differing(one, other);
  const text = (pieces: readonly Piece[], end: number): string => pieces.slice(from, end).map((piece) => piece.text).join("");

  expect([text(one, endBefore), text(other, endAfter)]).toEqual([gone, come]);
});
