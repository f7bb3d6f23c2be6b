/** What the parts of the page are given: what is shown, and what they may ask for. */

import type {Palette} from "../draw/palette.ts";
import type {Finding} from "../record.ts";
import type {Derived} from "../state/derived.ts";
import type {Other} from "../state/beside.ts";
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
  /** Items that the search found; null while nobody searches. */
  readonly found: ReadonlySet<number> | null;
  /** Whether the findings are shown. */
  readonly side: boolean;
  /** Whether the table shows only variables without a usable gradient. */
  readonly onlyTroubled: boolean;
  /** The run that the shown one is compared with; null if there is none, or nothing is known of it yet. */
  readonly other: Other | null;
  /** Why there is no such run, in words. */
  readonly otherProblem: string;
  /** Whether the steps are being played. */
  readonly playing: boolean;
  /** Pixels that each pane takes of the frame, where it is shown. */
  readonly sizes: Readonly<Record<Pane, number>>;
  readonly ask: Asked;
}

export interface Asked {
  look(change: Partial<View>): void;
  chooseRun(run: string): void;
  /** Opens the second, compared with the first. */
  compareRuns(before: string, now: string): void;
  /** By position among the recorded steps. */
  chooseStep(at: number): void;
  /** -1 lets go. */
  select(item: number): void;
  /** Selects and brings into view. */
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
  /** Null for the usual size. */
  resize(pane: Pane, size: number | null): void;
  /** Null when the search is over. */
  light(items: readonly number[] | null): void;
  /** The drawn graph as a file; null if there is none. */
  picture(kind: "svg" | "png"): Promise<Blob | null>;
  /** Opens the groups around items. */
  openAround(items: readonly number[]): void;
  /** Gives the keyboard to a part of the page. */
  focusOn(element: "gf-search" | "gf-graph"): void;
}

/** The index of the selected variable; -1 if something else, or nothing, is selected. */
export function selectedVariable({derived, selected}: Scope): number {
  const node = derived.model?.tree.graph.nodes[selected];
  return node?.kind === "variable" ? node.index : -1;
}
