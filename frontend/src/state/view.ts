/** The view of a run, the compared run and the step: all of it by name, so that it has the same meaning elsewhere. */

import type {Place} from "../host/address.ts";
import {LONGEST} from "../model/addresses.ts";
import {MEASURES, type Measure} from "../model/measure.ts";

export type Tab = "variables" | "heat" | "series" | "terms" | "changes";

export const TABS: readonly Tab[] = ["variables", "heat", "series", "terms", "changes"];

export const TITLES: Readonly<Record<Tab, string>> = {
  variables: "Variables",
  heat: "Heat map",
  series: "Series",
  terms: "Terms",
  changes: "Changes",
};

export interface View {
  /** Name of an item; empty for none. */
  readonly selected: string;
  /** Key of the finding whose path is lit. */
  readonly finding: string | null;
  /** Names of open groups; null for the default. */
  readonly open: readonly string[] | null;
  /** The tab of the drawer; null if it is closed. */
  readonly tab: Tab | null;
  /** Name of the chosen loss; empty for none. */
  readonly loss: string;
  /** Name of the term of that loss whose gradient is shown; empty for the whole loss. */
  readonly term: string;
  /** The compared run. */
  readonly beside: string | null;
  readonly measure: Measure;
  /** Names of the variables in the charts, in addition to the selected one. */
  readonly charted: readonly string[];
  /** Whether all runs are listed instead of one. */
  readonly all: boolean;
}

/** Separates names; TensorFlow does not use it in its own. */
const BETWEEN = "|";
const NONE = "-";
const YES = "1";

/** The view in the address; the rest as in `start`. */
export function viewOf(place: Place, start: View): View {
  const {tab, measure, open} = place;
  return {
    selected: place.select ?? "",
    finding: place.finding ?? null,
    open: open === undefined ? null : open === NONE ? [] : open.split(BETWEEN),
    tab: tab === NONE ? null : (TABS.find((each) => each === tab) ?? start.tab),
    loss: place.loss ?? "",
    term: place.term ?? "",
    beside: place.with ?? null,
    measure: MEASURES.find((each) => each === measure) ?? start.measure,
    charted: place.series?.split(BETWEEN) ?? [],
    all: place.all === YES,
  };
}

export function placeOf(view: View, start: View): Place {
  const open = view.open?.join(BETWEEN);
  const series = view.charted.join(BETWEEN);
  return {
    select: view.selected,
    finding: view.finding ?? undefined,
    open: open === "" ? NONE : open !== undefined && open.length <= LONGEST ? open : undefined,
    tab: view.tab === start.tab ? undefined : (view.tab ?? NONE),
    loss: view.loss,
    term: view.term,
    with: view.beside ?? undefined,
    measure: view.measure === start.measure ? undefined : view.measure,
    series: series.length <= LONGEST ? series : undefined,
    all: view.all ? YES : undefined,
  };
}
