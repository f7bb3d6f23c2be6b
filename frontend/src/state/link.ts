/** The names in a link that mean nothing here: another log directory, or another version of the program. */

import type {Place} from "../host/address.ts";
import {MEASURES} from "../model/measure.ts";
import {termNamed} from "../model/term_view.ts";
import {keyOf} from "../model/findings.ts";
import {unnumbered} from "../model/compare.ts";
import type {Derived} from "./derived.ts";
import type {State} from "./state.ts";
import {TABS, viewOf, type View} from "./view.ts";

export interface Absent {
  /** A sentence for each name. */
  readonly words: readonly string[];
  /** The view without these names. */
  readonly view: View;
}

/** Null while too little is loaded to know. `start`: the view of a run if a link says nothing else. */
export function absentFrom(place: Place, state: State, derived: Derived, start: View): Absent | null {
  const {runs, missing, overview, trace, target, diagnosis} = state;
  const shown = runs?.find((entry) => entry.run === state.run)?.name ?? "";
  if (missing !== null && missing.run === place.run) {
    const words = [`This log directory has no run “${missing.run}”, to which the link leads. The run “${shown}” is shown instead.`];
    return {words, view: viewOf({all: place.all, tab: place.tab, measure: place.measure}, start)};
  }
  if (overview === null || trace === null || diagnosis === null || derived.model === null || diagnosis.trace !== trace.index) {
    return null;
  }
  const words: string[] = [];
  const known = {...place};
  const check = (name: string, isThere: (value: string) => boolean, say: (value: string) => string): void => {
    const value = place[name] ?? "";
    if (value !== "" && !isThere(value)) {
      words.push(say(value));
      known[name] = undefined;
    }
  };
  const loss = trace.targets.findIndex(({name}) => name === place.loss);
  const step = overview.steps[state.at];
  check("step", (value) => overview.steps.includes(Number(value)), (value) => `Step ${value} is not recorded: step ${step} is shown.`);
  check("loss", () => loss >= 0, (value) => `There is no loss “${value}”.`);
  check("term", (value) => termNamed(trace, loss < 0 ? target : loss, value) >= 0, (value) => `The loss has no term “${value}”.`);
  check("select", (value) => derived.itemNamed(value) >= 0, (value) => `“${value}” is not in this graph.`);
  check("finding", (value) => diagnosis.findings.some((each) => keyOf(each) === value), (value) => `“${value.split("~")[0].replaceAll("_", " ")}” was not found in step ${step}.`);
  check("with", (value) => (runs ?? []).some(({run}) => run === value), (value) => `There is no run “${value}” to compare with.`);
  const strange = (place.series ?? "").split("|").filter((name) => name !== "" && !trace.variables.some((each) => unnumbered(each.name) === unnumbered(name)));
  check("series", () => strange.length === 0, () => `There is no variable ${strange.map((name) => `“${name}”`).join(", ")}.`);
  check("tab", (value) => value === "-" || TABS.some((tab) => tab === value), (value) => `There is no tab “${value}”.`);
  check("measure", (value) => MEASURES.some((measure) => measure === value), (value) => `There is no measure “${value}”.`);
  return {words, view: viewOf(known, start)};
}
