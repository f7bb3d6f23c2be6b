import {expect, test} from "vitest";
import {contextOf, mentionedIn} from "../src/model/context.ts";

function source(line: number, code = `line ${line}`, file = "/home/me/model.py") {
  return {file, line, function: "call", code};
}

test("a line stands among those of the same file that are near, in order, with gaps told", () => {
  const lines = contextOf([source(20), source(12), source(11), source(18), source(10, "x", "/other.py"), source(40)], source(17, "the line"));

  expect(lines.map(({line, code, main, gap}) => [line, code, main, gap])).toEqual([
    [11, "line 11", false, false],
    [12, "line 12", false, false],
    [17, "the line", true, true],
    [18, "line 18", false, false],
    [20, "line 20", false, true],
  ]);
});

test("a file is the same though a report has only the end of its path", () => {
  expect(contextOf([source(16)], source(17, "the line", "model.py"))).toHaveLength(2);
});

test("alone it stands alone", () => {
  expect(contextOf([], source(17))).toHaveLength(1);
});

test.each([
  ["the tape did not see it (model.py:17). The forward pass", 17],
  ["the tape did not see it (model.py:170)", null],
  ["asked in model.py:17.", 17],
  ["asked in other_model.py:17", null],
  ["nothing is said of where", null],
])("of %j the line is %j", (message, line) => {
  expect(mentionedIn(message, [source(16), source(17), source(17, "")])?.line ?? null).toBe(line);
});
