import {describe, expect, test} from "vitest";
import type {Divergence} from "../src/api/routes.ts";
import type {Source} from "../src/api/source.ts";
import {beginning, settings} from "../src/model/divergence.ts";
import {Diverged} from "../src/state/diverged.ts";

const SAME: Divergence = {a: {run: "before", recorded: 3}, b: {run: "after", recorded: 3}, differs: false, summary: "No difference.", agreed: "All values are equal."};

const source = {file: "/home/me/model.py", line: 7, code: "    x = tf.exp(x)\n"};
const DIFFERENT: Divergence = {
  ...SAME,
  differs: true,
  step: 12,
  direction: "forward",
  op: {a: {name: "net/Exp", type: "Exp", source}, b: null},
  value: {kind: "weights", name: "kernel", statistic: "max_abs", a: 1.000002, b: -2e-9},
  settings: [{what: "global seed", a: "0", b: ""}],
};

describe("the first difference", () => {
  test("stands side by side, with as many figures as tell the values apart", () => {
    expect(beginning(DIFFERENT)).toEqual([
      {what: "largest magnitude of kernel before the step", a: "1", b: "−2e−9", isCode: false},
      {what: "op", a: "net/Exp (Exp)", b: "", isCode: false},
      {what: "line", a: "model.py:7", b: "", isCode: false},
      {what: "code", a: "x = tf.exp(x)", b: "", isCode: true},
    ]);
    expect(beginning({...SAME, differs: true, value: {kind: "loss", name: "mse", statistic: null, a: 0.123456, b: null}})).toEqual([
      {what: "loss mse", a: "0.123456", b: "not finite, or not there", isCode: false},
    ]);
    expect(settings(DIFFERENT)).toEqual([{what: "global seed", a: "0", b: "", isCode: false}]);
  });

  test("is not there where runs agree", () => {
    expect([beginning(SAME), settings(SAME)]).toEqual([[], []]);
  });
});

describe("looking for it", () => {
  const waiting: {readonly pair: string; readonly answer: (found: Divergence) => void; readonly fail: (error: Error) => void}[] = [];
  const asking = {divergence: (before: string, now: string) => new Promise<Divergence>((answer, fail) => waiting.push({pair: `${before} ${now}`, answer, fail}))} as Partial<Source> as Source;

  test("asks once, and forgets the answer when other runs are compared", async () => {
    const diverged = new Diverged(asking, () => {});

    const looking = diverged.look("a", "b");
    void diverged.look("a", "b");
    expect([waiting.map(({pair}) => pair), diverged.isLooking]).toEqual([["a b"], true]);
    waiting[0].answer(DIFFERENT);
    await looking;
    expect([diverged.found, diverged.isLooking]).toEqual([DIFFERENT, false]);
    diverged.show("a", "b");
    expect(diverged.found).toBe(DIFFERENT);
    diverged.show("a", "c");
    expect(diverged.found).toBeNull();
  });

  test("does not show the answer about others, and says why there is none", async () => {
    const diverged = new Diverged(asking, () => {});
    const first = diverged.look("a", "b");
    const second = diverged.look("a", "c");

    waiting.at(-2)?.answer(DIFFERENT);
    waiting.at(-1)?.fail(new Error("a and c have nothing to compare"));
    await Promise.all([first, second]);

    expect([diverged.found, diverged.problem, diverged.isLooking]).toEqual([null, "a and c have nothing to compare", false]);
  });
});
