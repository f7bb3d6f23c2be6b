/** The edge of a pane, with which the reader resizes it. */

import {html, type TemplateResult} from "lit";
import {limitsOf, type Pane} from "../state/panes.ts";
import type {Scope} from "./scope.ts";
import type {Edge} from "./splitter.ts";
import {besideGraph, frame} from "./room.ts";
import "./splitter.ts";

const EDGES: Readonly<Record<Pane, readonly [Edge, string]>> = {
  side: ["right", "Width of the findings"],
  details: ["left", "Width of the details"],
  drawer: ["top", "Height of the drawer"],
};

export function edgeOf(pane: Pane, scope: Scope): TemplateResult {
  const [edge, label] = EDGES[pane];
  const limits = limitsOf(pane, frame(), besideGraph(scope));
  return html`<gf-splitter .edge=${edge} .label=${label} .size=${scope.sizes[pane]} .limits=${limits} @gf-resize=${({detail}: CustomEvent<number | null>) => scope.ask.resize(pane, detail)}></gf-splitter>`;
}
