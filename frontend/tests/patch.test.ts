import {describe, expect, test} from "vitest";
import shared from "../../tests/serve/patches.json" with {type: "json"};
import {changedLines, patchOf, shownLines, triedInWords, type ShownLine} from "../src/model/patch.ts";
import type {Edit, Passage, Tried} from "../src/record.ts";

test.each(shared.patches)("the page copies the patch that the report prints: $edit.file:$edit.line", ({edit, passages, patch}) => {
  expect(patchOf(edit as Edit, passages as Passage[])).toBe(patch);
});

test.each(shared.sentences)("the page says what was tried as the report says it: $said", ({tried, said}) => {
  expect(triedInWords(tried as unknown as Tried)).toBe(said);
});

test("an edit that only takes away adds no line", () => {
  expect(changedLines({file: "a.py", line: 1, end_line: 2, before: "x\ny", after: ""})).toEqual({old: ["x", "y"], fresh: []});
});

describe("an edit is shown", () => {
  const text = ({pieces}: ShownLine): string => pieces.map((piece) => piece.text).join("");
  const marked = ({pieces, changed: [from, end]}: ShownLine): string => pieces.slice(from, end).map((piece) => piece.text).join("");
  const edit = (before: string, after: string): Edit => ({file: "a.py", line: 1, end_line: 1, before, after});

  test("without the indentation of all of its lines, and with the difference marked", () => {
    const {old, fresh} = shownLines(edit("        x = tf.round(x)", "        x = tf.sigmoid(x)"));

    expect([...old, ...fresh].map(text)).toEqual(["x = tf.round(x)", "x = tf.sigmoid(x)"]);
    expect([...old, ...fresh].map(marked)).toEqual(["round", "sigmoid"]);
  });

  test("with the indentation that its lines have against each other", () => {
    const {old, fresh} = shownLines(edit("\tif a:\n\n\t\tb()", "\tif a:\n\t\tc()\n\td()\n\te()"));

    expect(old.map(text)).toEqual(["if a:", "", "\tb()"]);
    expect(fresh.map(text)).toEqual(["if a:", "\tc()", "d()", "e()"]);
    expect([...old, ...fresh].map(marked).join("")).toBe("");
  });

  test("as lines that go where nothing comes", () => {
    const {old, fresh} = shownLines(edit("    x = 1\n    y = 2", ""));

    expect([old.map(text), fresh]).toEqual([["x = 1", "y = 2"], []]);
  });
});
