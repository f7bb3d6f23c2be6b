/** How a run is looked at, beside which run and which step: all of it by name, so that it means the same elsewhere. */

import type {Place} from "../host/address.ts";
import {LONGEST} from "../model/addresses.ts";
import {MEASURES, type Measure} from "../model/measure.ts";

export type Tab = "variables" | "heat" | "series" | "changes";

export const TABS: readonly Tab[] = ["variables", "heat", "series", "changes"];

export const TITLES: Readonly<Record<Tab, string>> = {
  variables: "Variables",
  heat: "Heat map",
  series: "Series",
  changes: "Changes",
};

export interface View {
  /** Address of an item; empty for none. */
  readonly selected: string;
  /** Key of the finding whose way is lit. */
  readonly finding: string | null;
  /** Addresses of open groups; null for those that are open at the start. */
  readonly open: readonly string[] | null;
  /** What is below the graph; null for nothing. */
  readonly tab: Tab | null;
  /** Name of the loss that was chosen; empty for none. */
  readonly loss: string;
  /** The run that the shown one is compared with. */
  readonly beside: string | null;
  readonly measure: Measure;
  /** Names of the variables in the series, beside the selected one. */
  readonly charted: readonly string[];
  /** Whether all runs are listed, in the place of one. */
  readonly all: boolean;
}

/** Stands between names; TensorFlow has none of it in its own. */
const BETWEEN = "|";
const NONE = "-";
const YES = "1";

/** What the address says; the rest as in `start`. */
export function viewOf(place: Place, start: View): View {
  const {tab, measure, open} = place;
  return {
    selected: place.select ?? "",
    finding: place.finding ?? null,
    open: open === undefined ? null : open === NONE ? [] : open.split(BETWEEN),
    tab: tab === NONE ? null : (TABS.find((each) => each === tab) ?? start.tab),
    loss: place.loss ?? "",
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
    with: view.beside ?? undefined,
    measure: view.measure === start.measure ? undefined : view.measure,
    series: series.length <= LONGEST ? series : undefined,
    all: view.all ? YES : undefined,
  };
}
