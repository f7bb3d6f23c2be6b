/** How each part of a scene looks at the chosen step: the model's states, put on the boxes and routes. */

import type {Scene} from "../layout/scene.ts";
import {bundleOf} from "../model/bundle.ts";
import type {Flow, Troubles} from "../model/flow.ts";
import type {Changes} from "../model/changes.ts";
import type {Answers, StepNumbers} from "../model/gradients.ts";
import type {Alike} from "../model/alike.ts";
import type {Measured} from "../model/measure.ts";
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
  readonly measured: Measured;
  readonly alike: Alike;
  /** Against the run beside; null if there is none. */
  readonly changes: Changes | null;
}

interface Drawn {
  readonly condition: Condition;
  readonly boxes: readonly PictureBox[];
}

/** The last picture of a scene: from one step to the next most boxes stay as they are. */
const DRAWN = new WeakMap<Scene, Drawn>();

export function pictureOf(scene: Scene, condition: Condition): Picture {
  const known = DRAWN.get(scene);
  const same = known !== undefined && STEADY.every((cause) => known.condition[cause] === condition[cause]);
  const boxes = same
    ? known.boxes.map((box, index) => (box.kind === "variable" ? boxOf(scene.placed[index], condition) : box))
    : scene.placed.map((placed) => boxOf(placed, condition));
  DRAWN.set(scene, {condition, boxes});
  return {
    boxes,
    edges: scene.routed.map((routed) => edgeOf(scene, routed, condition)),
    scale: condition.measured.scale,
    measure: condition.measured.measure,
  };
}

/** What boxes depend on, but for those of variables, which show numbers. */
const STEADY = ["tree", "flow", "troubles", "diagnosis", "alike", "changes"] as const;

function boxOf(placed: Scene["placed"][number], condition: Condition): PictureBox {
  const {tree, flow, troubles, answers, numbers, diagnosis, changes, alike} = condition;
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
    kin: alike.kinds[item] ?? -1,
    copies: alike.counts[alike.kinds[item]] ?? 0,
    value: variable < 0 ? NaN : valueOf(condition, item, variable),
    status: diagnosis?.variables[variable]?.status ?? null,
    magnitude: variable < 0 ? null : (numbers?.magnitude(answers.variables[variable].row) ?? null),
    missing: flow.missing.has(item),
    mark: flow.marks[item] ?? null,
    badge: troubles.blocking[item] + troubles.missing[item],
    warnings: troubles.warnings[item],
    notFinite: troubles.notFinite[item],
    change: changes?.marks.get(item) ?? null,
    changesInside: placed.open ? 0 : (changes?.inside.get(item) ?? 0),
  };
}

/** Of a variable: its own norm, or what is measured of the edges that leave it. */
function valueOf({tree, answers, numbers, measured: {measure, edges}}: Condition, node: number, variable: number): number {
  if (measure === "norm") {
    return numbers?.magnitude(answers.variables[variable].row).norm ?? NaN;
  }
  return tree.graph.outgoing[node].reduce((most, edge) => (edges[edge] > most || Number.isNaN(most) ? edges[edge] : most), NaN);
}

function edgeOf(scene: Scene, routed: Scene["routed"][number], {flow, answers, numbers, measured}: Condition): PictureEdge {
  const {segment, x, y, width, height} = routed;
  return {
    routed,
    bundle: bundleOf(segment.edges, flow, answers, numbers, measured.edges),
    arrow: segment.to >= 0 && scene.byItem.get(segment.to)?.open === false,
    x,
    y,
    width,
    height,
  };
}
