import {expect, test} from "vitest";
import shared from "../../tests/serve/patches.json" with {type: "json"};
import {changedLines, patchOf, triedInWords} from "../src/model/patch.ts";
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
