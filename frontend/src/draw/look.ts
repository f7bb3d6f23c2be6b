/** How each part of a scene looks at the chosen step: the model's states, put on the boxes and routes. */

import type {Scene} from "../layout/scene.ts";
import {bundleOf} from "../model/bundle.ts";
import type {Flow, Troubles} from "../model/flow.ts";
import type {Changes} from "../model/changes.ts";
import type {Answers, StepNumbers} from "../model/gradients.ts";
import type {Scale} from "../model/scale.ts";
import {subtitleOf, titleOf} from "../model/titles.ts";
import {isGroup, type Tree} from "../model/tree.ts";
import type {Diagnosis} from "../record.ts";
import type {Picture, PictureBox, PictureEdge} from "./picture.ts";

/** Everything a picture depends on beside the scene. */
export interface Condition {
  readonly tree: Tree;
  readonly flow: Flow;
  readonly troubles: Troubles;
  readonly answers: Answers;
  readonly numbers: StepNumbers | null;
  readonly diagnosis: Diagnosis | null;
  readonly scale: Scale;
  /** Against the run beside; null if there is none. */
  readonly changes: Changes | null;
}

export function pictureOf(scene: Scene, condition: Condition): Picture {
  return {
    boxes: scene.placed.map((placed) => boxOf(placed, condition)),
    edges: scene.routed.map((routed) => edgeOf(scene, routed, condition)),
    scale: condition.scale,
  };
}

function boxOf(placed: Scene["placed"][number], {tree, flow, troubles, answers, numbers, diagnosis, changes}: Condition): PictureBox {
  const {item} = placed;
  const group = isGroup(tree, item);
  const node = group ? null : tree.graph.nodes[item];
  const variable = node?.kind === "variable" ? node.index : -1;
  return {
    item,
    x: placed.x,
    y: placed.y,
    width: placed.width,
    height: placed.height,
    kind: node?.kind ?? (placed.open ? "open" : "group"),
    title: titleOf(tree, item),
    subtitle: group ? subtitleOf(tree, item) : "",
    status: diagnosis?.variables[variable]?.status ?? null,
    magnitude: variable < 0 ? null : (numbers?.magnitude(answers.variables[variable].row) ?? null),
    missing: flow.missing.has(item),
    mark: flow.marks[item] ?? null,
    badge: troubles.blocking[item] + troubles.missing[item],
    warnings: troubles.warnings[item],
    change: changes?.marks.get(item) ?? null,
    changesInside: placed.open ? 0 : (changes?.inside.get(item) ?? 0),
  };
}

function edgeOf(scene: Scene, routed: Scene["routed"][number], {flow, answers, numbers}: Condition): PictureEdge {
  const {points, segment} = routed;
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (let at = 0; at < points.length; at += 2) {
    left = Math.min(left, points[at]);
    right = Math.max(right, points[at]);
    top = Math.min(top, points[at + 1]);
    bottom = Math.max(bottom, points[at + 1]);
  }
  return {
    routed,
    bundle: bundleOf(segment.edges, flow, answers, numbers),
    arrow: segment.to >= 0 && scene.byItem.get(segment.to)?.open === false,
    x: left,
    y: top,
    width: right - left,
    height: bottom - top,
  };
}
