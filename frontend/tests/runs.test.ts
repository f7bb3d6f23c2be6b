import {describe, expect, test} from "vitest";
import type {Health, RunEntry, Standing} from "../src/api/routes.ts";
import {agoInWords, countsOf, filteredRuns, linesOf, mayGoOn, runToOpen, settingInWords, sortedRuns} from "../src/model/runs.ts";

function entry(run: string, began: number, health: Health | null, error: string | null = null): RunEntry {
  return {run, name: run, error, began, health};
}

function standing(name: string, health: Health, more: Partial<Standing> = {}): Standing {
  return {run: name, name, health, summary: "", cause: "", place: "", first: null, step: 9, steps: 2, loss: 1, has_loss: true, recorded: 1, hyperparameters: {}, ...more};
}

const names = (runs: readonly Standing[]): string[] => runs.map(({name}) => name);

describe("the run to open", () => {
  test("is the worst, and of these the newest", () => {
    const runs = [entry("a", 9, "healthy"), entry("b", 1, "error"), entry("c", 2, "error"), entry("d", 8, "warning")];

    expect(runToOpen(runs)?.run).toBe("c");
  });

  test("is the newest where nothing is wrong, or nobody has looked", () => {
    expect(runToOpen([entry("a", 1, "healthy"), entry("b", 3, null), entry("c", 2, "healthy")])?.run).toBe("b");
  });

  test("is one that cannot be read only where there is no other", () => {
    expect(runToOpen([entry("a", 9, "unknown", "format 99"), entry("b", 1, "healthy")])?.run).toBe("b");
    expect(runToOpen([entry("a", 9, "unknown", "format 99")])?.run).toBe("a");
    expect(runToOpen([])).toBe(null);
  });
});

test("a training may go on for a minute after its last recorded step", () => {
  expect([mayGoOn(1000, 1030), mayGoOn(1000, 1090)]).toEqual([true, false]);
});

describe("the list of all runs", () => {
  const runs = [
    standing("old", "error", {cause: "log_zero", place: "a/model.py:3", first: 20, loss: null, recorded: 1}),
    standing("fine", "healthy", {recorded: 9, loss: 0.5}),
    standing("new", "error", {cause: "dead_relu", place: "loss.py:8", first: 5, loss: 2, recorded: 2}),
    standing("odd", "warning", {cause: "log_zero", first: 0, recorded: 5}),
  ];

  test("has the worst first, and of these the newest", () => {
    expect(names(sortedRuns(runs, null))).toEqual(["new", "old", "odd", "fine"]);
  });

  test("is sorted by a column, those without a value last", () => {
    expect(names(sortedRuns(runs, {column: "first", descending: true}))).toEqual(["old", "new", "odd", "fine"]);
    expect(names(sortedRuns(runs, {column: "loss", descending: false}))).toEqual(["fine", "odd", "new", "old"]);
    expect(names(sortedRuns(runs, {column: "cause", descending: false}))).toEqual(["new", "old", "odd", "fine"]);
  });

  test("is searched by name, cause as it is written or said, and line of code", () => {
    const found = (words: string): string[] => names(filteredRuns(runs, {words, health: null}));

    expect(found("log zero")).toEqual(["old", "odd"]);
    expect(found("LOG_ZERO model.py:3")).toEqual(["old"]);
    expect(found("nothing")).toEqual([]);
    expect(names(filteredRuns(runs, {words: "log", health: "warning"}))).toEqual(["odd"]);
  });

  test("is sorted and searched by hyperparameters, as they were chosen", () => {
    const sweep = [
      standing("a", "healthy", {hyperparameters: {lr: 0.001, optimizer: "sgd"}}),
      standing("b", "healthy", {hyperparameters: {lr: 10, optimizer: "adam"}}),
      standing("c", "error", {hyperparameters: {lr: 0.1}}),
      standing("d", "error"),
    ];

    expect(names(sortedRuns(sweep, {column: "=lr", descending: true}))).toEqual(["b", "c", "a", "d"]);
    expect(names(sortedRuns(sweep, {column: "=optimizer", descending: false}))).toEqual(["b", "a", "c", "d"]);
    expect(names(filteredRuns(sweep, {words: "lr=0.001", health: null}))).toEqual(["a"]);
    expect(settingInWords(0.30000001192092896)).toBe("0.3");
    expect(settingInWords(true)).toBe("true");
    expect(settingInWords(undefined)).toBe("");
  });

  test("counts how many are how", () => {
    expect([...countsOf(runs)]).toEqual([[null, 4], ["error", 2], ["healthy", 1], ["warning", 1]]);
  });

  test("has a line for runs that nobody has judged yet", () => {
    const lines = linesOf([entry("fine", 1, null), entry("late", 2, null), entry("bad", 3, "unknown", "format 99")], runs);

    expect(lines.map(({name, health, summary}) => [name, health, summary])).toEqual([
      ["fine", "healthy", ""],
      ["late", "unknown", "Not analysed yet."],
      ["bad", "unknown", "format 99"],
    ]);
  });

  test.each([[5, "5 seconds ago"], [60, "1 minute ago"], [7300, "2 hours ago"], [90_000, "1 day ago"]])("says %s seconds as %s", (seconds, words) => {
    expect(agoInWords(seconds)).toBe(words);
  });
});
