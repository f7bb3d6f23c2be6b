/** Which groups are open: at the start, and to show something. */

import type {Diagnosis} from "../record.ts";
import {pathOf, type Path} from "./paths.ts";
import {ancestorsOf, isGroup, type Tree} from "./tree.ts";

/** A path through more groups than this stays closed except for its ends and its cut. */
const MOST_GROUPS = 12;
/** Number of nodes after the cut that are shown with it. */
const BEHIND = 2;
/** Number of findings whose paths are open at the start. */
const MOST_FINDINGS = 4;
/** Fewer items than this show too little to start with, more show too much. */
const FEW_ITEMS = 10;
const MANY_ITEMS = 40;

/** The groups to open to show the beginning of a path, its cut, and what comes right after it. */
export function groupsToShow(tree: Tree, path: Path): Set<number> {
  const cut = path.nodes.indexOf(path.culprit);
  const until = cut < 0 ? path.nodes : path.nodes.slice(0, cut + 1 + BEHIND);
  const all = groupsAround(tree, until);
  if (all.size <= MOST_GROUPS) {
    return all;
  }
  const near = cut < 0 ? [] : path.nodes.slice(Math.max(0, cut - 1), cut + 1 + BEHIND);
  return groupsAround(tree, [...path.nodes.slice(0, 1), ...near]);
}

function groupsAround(tree: Tree, nodes: readonly number[]): Set<number> {
  return new Set(nodes.flatMap((node) => ancestorsOf(tree, node)));
}

/** The groups that are open at the start: those on the paths of errors and warnings, or enough to show a model. */
export function initiallyOpen(tree: Tree, diagnosis: Diagnosis | null): Set<number> {
  const worst = (diagnosis?.findings ?? []).filter((finding) => finding.severity !== "info").slice(0, MOST_FINDINGS);
  const open = new Set<number>();
  for (const finding of worst) {
    for (const group of groupsToShow(tree, pathOf(tree.graph, finding))) {
      open.add(group);
    }
  }
  openUntilSomethingShows(tree, open);
  return open;
}

function openUntilSomethingShows(tree: Tree, open: Set<number>): void {
  for (;;) {
    const visible = visibleItems(tree, open).filter((item) => !open.has(item));
    const closed = visible.filter((item) => isGroup(tree, item));
    if (visible.length >= FEW_ITEMS || closed.length === 0) {
      return;
    }
    const largest = closed.reduce((a, b) => (tree.items[a].size >= tree.items[b].size ? a : b));
    if (open.size > 0 && visible.length + tree.items[largest].children.length > MANY_ITEMS) {
      return;
    }
    open.add(largest);
  }
}

/** Items that are drawn, open groups among them, without the root; parents first. */
export function visibleItems(tree: Tree, open: ReadonlySet<number>): number[] {
  const visible = [...tree.items[tree.root].children];
  for (let at = 0; at < visible.length; at += 1) {
    if (open.has(visible[at])) {
      visible.push(...tree.items[visible[at]].children);
    }
  }
  return visible;
}
