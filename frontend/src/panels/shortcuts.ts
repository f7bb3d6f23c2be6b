/** The keys that work everywhere in the page. */

import {TABS, TITLES} from "../state/view.ts";
import type {Shortcut} from "./keys.ts";
import type {Scope} from "./scope.ts";

export function shortcuts({store, view, ask}: Scope): readonly Shortcut[] {
  const {at} = store.state;
  return [
    {key: "/", words: "find by name, type, cause or line of code", run: () => ask.focusOn("gf-search")},
    {key: "n", words: "next finding", run: () => ask.goToFinding(1)},
    {key: "p", words: "previous finding", run: () => ask.goToFinding(-1)},
    {key: ".", words: "along the path of the finding, towards the loss", run: () => ask.followPath(1)},
    {key: ",", words: "back along the path, towards the variable", run: () => ask.followPath(-1)},
    {key: "[", words: "previous recorded step", run: () => ask.chooseStep(at - 1)},
    {key: "]", words: "next recorded step", run: () => ask.chooseStep(at + 1)},
    {key: " ", words: "play or stop the recorded steps", run: () => ask.togglePlay()},
    {key: "g", words: "go to the graph", run: () => ask.focusOn("gf-graph")},
    {key: "a", words: "list all runs, or go back to one", run: () => ask.look({all: !view.all})},
    {key: "f", words: "show or hide the findings", run: () => ask.toggleSide()},
    {key: "t", words: "show or hide the panel below the graph", run: () => ask.look({tab: view.tab === null ? TABS[0] : null})},
    ...TABS.map((tab, index) => ({key: String(index + 1), words: `below the graph: ${TITLES[tab].toLowerCase()}`, run: () => ask.look({tab})})),
    {key: "?", words: "show this list", run: () => ask.toggleKeys()},
    {key: "Escape", words: "clear the selection", run: () => ask.select(-1)},
  ];
}
