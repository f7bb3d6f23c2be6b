import {describe, expect, test} from "vitest";
import {keyOf} from "../src/model/findings.ts";
import {Derived} from "../src/state/derived.ts";
import {absentFrom} from "../src/state/link.ts";
import {NOTHING_CHOSEN, type State} from "../src/state/state.ts";
import type {View} from "../src/state/view.ts";
import {answered, diagnosis, finding, read, trace} from "./build.ts";

const START: View = {selected: "", finding: null, open: null, tab: "variables", loss: "", term: "", beside: null, measure: "norm", charted: [], all: false};
const TRACE = answered(trace([read("a", "v"), {name: "b", from: ["a"]}]), {a: "value", b: "value"});
const FOUND = finding(TRACE, "error", ["v"], "a", ["a", "b"]);
const ENTRY = {run: "run/gradflow", name: "run", error: null, began: 1, health: null};

function loaded(): {state: State; derived: Derived} {
  const derived = new Derived();
  const report = {...diagnosis(TRACE, {}, [FOUND]), step: 5};
  const overview = {run: ENTRY.run, steps: [0, 5]} as unknown as State["overview"];
  const state: State = {...NOTHING_CHOSEN, runs: [ENTRY], standings: null, run: ENTRY.run, missing: null, problems: new Map(), overview, at: 1, trace: TRACE, target: 0, diagnosis: report};
  derived.update(state, null, "norm", "");
  return {state, derived};
}

describe("the names in a link", () => {
  test("are all here if they come from this page", () => {
    const {state, derived} = loaded();
    const place = {run: ENTRY.run, step: "5", select: derived.nameOf(0), finding: keyOf(FOUND), loss: TRACE.targets[0].name, series: "v", tab: "heat", measure: "op"};

    expect(absentFrom(place, state, derived, START)?.words).toEqual([]);
  });

  test.each([
    [{step: "7"}, "Step 7 is not recorded: step 5 is shown."],
    [{select: "gone/op"}, "“gone/op” is not in this graph."],
    [{finding: "dead_relu~x~0~v"}, "“dead relu” was not found in step 5."],
    [{loss: "other_loss"}, "There is no loss “other_loss”."],
    [{term: "kl"}, "The loss has no term “kl”."],
    [{with: "another"}, "There is no run “another” to compare with."],
    [{series: "v|w/kernel"}, "There is no variable “w/kernel”."],
    [{tab: "nothing"}, "There is no tab “nothing”."],
    [{measure: "miles"}, "There is no measure “miles”."],
  ])("are told and left out where they are not: %o", (place, words) => {
    const {state, derived} = loaded();

    const absent = absentFrom(place, state, derived, START);

    expect(absent?.words).toEqual([words]);
    expect(absent?.view).toEqual(START);
  });

  test("of a run that is not here say nothing about the run that is shown instead", () => {
    const {state, derived} = loaded();

    const absent = absentFrom({run: "gone", select: "a", finding: "x"}, {...state, missing: {run: "gone", step: undefined}}, derived, START);

    expect(absent?.words).toEqual(["This log directory has no run “gone”, to which the link leads. The run “run” is shown instead."]);
    expect(absent?.view).toEqual(START);
  });

  test("are not judged before the report is there", () => {
    const {state, derived} = loaded();

    expect(absentFrom({select: "gone"}, {...state, diagnosis: null}, derived, START)).toBeNull();
  });
});
