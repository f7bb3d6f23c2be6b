import {expect, test} from "vitest";
import {timeSeriesAt} from "../src/host/address.ts";
import {filtersFor} from "../src/model/scalars.ts";

const scalars = new Map([
  ["sweep/lr0.1/train", ["epoch_loss", "epoch_accuracy"]],
  ["sweep/lr0.1", ["epoch_learning_rate"]],
  ["sweep/lr0.10/train", ["epoch_loss"]],
  ["other", ["reward"]],
]);

test.each([
  ["sweep/lr0.1/gradflow", {runs: "^sweep/lr0\\.1(/|$)", tags: "loss"}],
  ["other", {runs: "^other(/|$)", tags: ""}],
  ["sweep/lr0/gradflow", null],
  ["gradflow", {runs: "", tags: "loss"}],
  ["nothing", null],
])("of %s the filters are %j", (name, filters) => {
  expect(filtersFor(name, scalars)).toEqual(filters);
});

test("the filter of a run takes none whose name only begins alike", () => {
  const pattern = new RegExp(filtersFor("sweep/lr0.1/gradflow", scalars)?.runs ?? "");

  expect([...scalars.keys()].filter((run) => pattern.test(run))).toEqual(["sweep/lr0.1/train", "sweep/lr0.1"]);
});

test("the address of the time series keeps where TensorBoard is, and nothing of ours", () => {
  const href = timeSeriesAt("https://host/prefix/?darkMode=true&runFilter=old#gradflow&p.gradflow.run=a", {runs: "^a(/|$)", tags: "loss"});

  expect(href).toBe("https://host/prefix/?darkMode=true&runFilter=%5Ea%28%2F%7C%24%29&tagFilter=loss#timeseries");
});
