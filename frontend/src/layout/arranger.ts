/**
 * Lays out groups one by one, innermost first, and places them into one another. A group whose content did not change
 * is not laid out again.
 */

import {portKey, type Flows, type GroupFlow} from "../model/segments.ts";
import {isGroup, type Tree} from "../model/tree.ts";
import {subtitleOf, titleOf} from "../model/titles.ts";
import {Drawings} from "./drawings.ts";
import {GAP_X, type Box} from "./layered.ts";
import {Scene, type GroupLayout} from "./scene.ts";
import {groupSize, HEADER, lossSize, opSize, PADDING, variableSize, type Size} from "./sizes.ts";

interface Kept {
  readonly inside: readonly (GroupLayout | null)[];
  readonly layout: GroupLayout;
}

/** The aspect ratio of a grid of items without links. */
const SQUARE = 1.3;

/** Lays out one tree repeatedly, as its groups open and close. */
export class Arranger {
  readonly #tree: Tree;
  readonly #flows: Flows;
  readonly #kept = new Map<number, Kept>();
  readonly #drawings = new Drawings();

  constructor(tree: Tree, flows: Flows) {
    this.#tree = tree;
    this.#flows = flows;
  }

  arrange(open: ReadonlySet<number>): Scene {
    const layouts = new Map<number, GroupLayout>();
    for (const group of openGroups(this.#tree, open).reverse()) {
      layouts.set(group, this.#layoutOf(group, layouts));
    }
    return new Scene(this.#tree.root, layouts);
  }

  #layoutOf(group: number, layouts: ReadonlyMap<number, GroupLayout>): GroupLayout {
    const inside = this.#tree.items[group].children.map((child) => layouts.get(child) ?? null);
    const kept = this.#kept.get(group);
    if (kept !== undefined && kept.inside.every((each, index) => each === inside[index])) {
      return kept.layout;
    }
    const layout = layoutGroup(this.#tree, group, this.#flows.get(group), inside, this.#drawings);
    this.#kept.set(group, {inside, layout});
    return layout;
  }
}

/** Visible open groups, the root first, outer before inner. */
function openGroups(tree: Tree, open: ReadonlySet<number>): number[] {
  const groups = [tree.root];
  for (let at = 0; at < groups.length; at += 1) {
    groups.push(...tree.items[groups[at]].children.filter((child) => open.has(child)));
  }
  return groups;
}

function sizeOf(tree: Tree, item: number): Size {
  if (isGroup(tree, item)) {
    return groupSize(titleOf(tree, item), subtitleOf(tree, item));
  }
  const {kind} = tree.graph.nodes[item];
  const size = kind === "variable" ? variableSize : kind === "loss" ? lossSize : opSize;
  return size(titleOf(tree, item));
}

/** A group's children, by whether they have links. */
interface Family {
  readonly children: readonly number[];
  readonly sizes: readonly Size[];
  readonly inside: readonly (GroupLayout | null)[];
  /** Indices among the children. */
  readonly joined: readonly number[];
  readonly alone: readonly number[];
}

function familyOf(tree: Tree, group: number, flow: GroupFlow, inside: readonly (GroupLayout | null)[]): Family {
  const {children} = tree.items[group];
  const linked = new Set<number>();
  for (const {from, to} of flow.segments) {
    linked.add(from).add(to);
  }
  const [joined, alone]: [number[], number[]] = [[], []];
  children.forEach((child, index) => (linked.has(child) ? joined : alone).push(index));
  return {children, sizes: children.map((child, index): Size => inside[index] ?? sizeOf(tree, child)), inside, joined, alone};
}

function layoutGroup(
  tree: Tree,
  group: number,
  flow: GroupFlow,
  inside: readonly (GroupLayout | null)[],
  drawings: Drawings,
): GroupLayout {
  const family = familyOf(tree, group, flow, inside);
  const {children, sizes, joined} = family;
  const drawing = drawings.of(boxesOf(family, flow), linksOf(family, flow));
  const isRoot = group === tree.root;
  const frame = isRoot ? {left: 0, top: 0, bottom: 0} : frameOf(flow);
  const grid = gridOf(family.alone, sizes, drawing);
  const least = isRoot ? 0 : sizeOf(tree, group).width - 2 * frame.left;
  const inner = Math.max(grid.width === 0 ? drawing.width : grid.left + grid.width, least);
  const height = frame.top + Math.max(drawing.height + frame.bottom, grid.height + (isRoot ? 0 : PADDING));
  const shift = frame.left + (grid.width === 0 ? (inner - drawing.width) / 2 : 0);
  const flowing = joined.map((index, at) => ({
    item: children[index],
    x: drawing.x[at] - sizes[index].width / 2 + shift,
    y: drawing.y[at] - sizes[index].height / 2 + frame.top,
    size: sizes[index],
  }));
  const resting = grid.placed.map(({index, x, y}) => ({item: children[index], x: x + frame.left, y: y + frame.top, size: sizes[index]}));
  const portX = flow.ports.map((port, at) => [portKey(port.outside, port.inward), drawing.x[joined.length + at] + shift] as const);
  const routes = {group, segments: flow.segments, drawing, left: shift, top: frame.top};
  return {width: inner + 2 * frame.left, height, children: [...flowing, ...resting], routes, portX: new Map(portX)};
}

/** The nodes to be layered: the linked children, then the ports. */
function boxesOf({joined, sizes}: Family, flow: GroupFlow): Box[] {
  return [
    ...joined.map((index): Box => ({width: sizes[index].width, height: sizes[index].height, pin: null})),
    ...flow.ports.map((port): Box => ({width: 4, height: 0, pin: port.inward ? "first" : "last"})),
  ];
}

/** The links between those; at an open child they end at its port. */
function linksOf({children, joined, inside}: Family, flow: GroupFlow) {
  const position = new Map(joined.map((index, at) => [children[index], at]));
  const endOf = (end: number): number => (end < 0 ? joined.length - 1 - end : (position.get(end) as number));
  const offsetOf = (end: number, key: number): number => {
    const layout = end < 0 ? null : inside[joined[endOf(end)]];
    return layout === null ? 0 : (layout.portX.get(key) ?? layout.width / 2) - layout.width / 2;
  };
  return flow.segments.map((segment) => ({
    from: endOf(segment.from),
    to: endOf(segment.to),
    fromOffset: offsetOf(segment.from, segment.fromPort),
    toOffset: offsetOf(segment.to, segment.toPort),
  }));
}

/** Space between a group's border and its content; ports add an empty layer. */
function frameOf(flow: GroupFlow): {left: number; top: number; bottom: number} {
  const inward = flow.ports.some((port) => port.inward);
  const outward = flow.ports.some((port) => !port.inward);
  return {left: PADDING, top: inward ? HEADER - 22 : HEADER + 6, bottom: outward ? 0 : PADDING};
}

/**
 * Items without links, in rows next to everything else: below it, links that leave the group would run through them.
 */
function gridOf(items: readonly number[], sizes: readonly Size[], beside: Size) {
  const widest = items.reduce((most, index) => Math.max(most, sizes[index].width), 0);
  const area = items.reduce((sum, index) => sum + (sizes[index].width + GAP_X) * (sizes[index].height + GAP_X), 0);
  const limit = Math.max(widest, area / Math.max(beside.height, Math.sqrt(area / SQUARE)));
  const left = beside.width > 0 ? beside.width + 2 * GAP_X : 0;
  const placed: {index: number; x: number; y: number}[] = [];
  let [x, y, row, right] = [0, 0, 0, 0];
  for (const index of items) {
    if (x > 0 && x + sizes[index].width > limit) {
      [x, y, row] = [0, y + row + GAP_X, 0];
    }
    placed.push({index, x: left + x, y});
    right = Math.max(right, x + sizes[index].width);
    x += sizes[index].width + GAP_X;
    row = Math.max(row, sizes[index].height);
  }
  return {placed, left, width: right, height: items.length === 0 ? 0 : y + row};
}
