/** The interface of the page's parts: what is shown, and what they may request. */

import type {Palette} from "../draw/palette.ts";
import type {Finding} from "../record.ts";
import type {Derived} from "../state/derived.ts";
import type {Other} from "../state/beside.ts";
import type {Diverged} from "../state/diverged.ts";
import type {Pane} from "../state/panes.ts";
import type {Store} from "../state/store.ts";
import type {View} from "../state/view.ts";

export interface Scope {
  readonly store: Store;
  readonly derived: Derived;
  readonly view: View;
  readonly palette: Palette;
  /** The selected item; -1 for none. */
  readonly selected: number;
  /** Items that the search found; null while there is no search. */
  readonly found: ReadonlySet<number> | null;
  /** Whether the findings are shown. */
  readonly side: boolean;
  /** Whether the table shows only variables with a problem. */
  readonly onlyTroubled: boolean;
  /** The compared run; null if there is none, or nothing is known of it yet. */
  readonly other: Other | null;
  /** A message that says why there is no such run. */
  readonly otherProblem: string;
  /** Where the shown run and the compared one differ first. */
  readonly diverged: Diverged;
  /** Whether the steps are playing. */
  readonly playing: boolean;
  /** The size of each pane in pixels, if it is shown. */
  readonly sizes: Readonly<Record<Pane, number>>;
  readonly ask: Asked;
}

export interface Asked {
  look(change: Partial<View>): void;
  chooseRun(run: string): void;
  /** Opens the second, compared with the first. */
  compareRuns(before: string, now: string): void;
  /** Looks for the first difference between the shown run and the compared one. */
  findDivergence(): void;
  /** By index among the recorded steps. */
  chooseStep(at: number): void;
  /** -1 clears the selection. */
  select(item: number): void;
  /** Selects an item and brings it into view. */
  go(item: number): void;
  goToVariable(variable: number): void;
  showFinding(finding: Finding): void;
  goToFinding(step: 1 | -1): void;
  /** One op towards the loss, or back towards the variable. */
  followPath(step: 1 | -1): void;
  togglePlay(): void;
  toggleSide(): void;
  toggleTroubled(): void;
  toggleKeys(): void;
  /** Null for the default size. */
  resize(pane: Pane, size: number | null): void;
  /** Null when the search is over. */
  light(items: readonly number[] | null): void;
  /** The drawn graph as a file; null if there is none. */
  picture(kind: "svg" | "png"): Promise<Blob | null>;
  /** Opens the groups around items. */
  openAround(items: readonly number[]): void;
  /** Moves the focus to a part of the page. */
  focusOn(element: "gf-search" | "gf-graph"): void;
}

/** The index of the selected variable; -1 if something else, or nothing, is selected. */
export function selectedVariable({derived, selected}: Scope): number {
  const node = derived.model?.tree.graph.nodes[selected];
  return node?.kind === "variable" ? node.index : -1;
}
