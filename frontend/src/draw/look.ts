/** How each part of a scene looks at the chosen step: applies the model's states to boxes and routes. */

import type {Part, Placed, Routed, Scene} from "../layout/scene.ts";
import {touches, type Rectangle} from "../layout/sizes.ts";
import {bundleOf} from "../model/bundle.ts";
import type {Flow, Troubles} from "../model/flow.ts";
import type {Changes} from "../model/changes.ts";
import type {Answers, StepNumbers} from "../model/gradients.ts";
import type {Alike} from "../model/alike.ts";
import type {Measure, Measured} from "../model/measure.ts";
import type {Scale} from "../model/scale.ts";
import type {Parts} from "../model/term_view.ts";
import {subtitleOf, titleOf} from "../model/titles.ts";
import {isGroup, type Tree} from "../model/tree.ts";
import type {Diagnosis} from "../record.ts";
import type {Dot, Picture, PictureBox, PictureEdge} from "./picture.ts";

/** Everything that a picture depends on, except the scene. */
export interface Condition {
  readonly tree: Tree;
  readonly flow: Flow;
  readonly troubles: Troubles;
  readonly answers: Answers;
  readonly numbers: StepNumbers | null;
  readonly diagnosis: Diagnosis | null;
  readonly measured: Measured;
  readonly alike: Alike;
  /** The comparison with another run; null if there is none. */
  readonly changes: Changes | null;
  /** What the chosen term gives each item; null if the whole loss is shown. */
  readonly parts: Parts | null;
}

/** The boxes of a part as they were drawn last: most of them stay the same from one step to the next. */
type Drawn = Map<Part, {readonly condition: Condition; readonly boxes: readonly PictureBox[]}>;

const DRAWN = new WeakMap<Scene, {readonly condition: Condition; readonly drawn: Drawn}>();

/** Everything boxes depend on, except those of variables, which show numbers and statuses. */
const STEADY = ["tree", "flow", "troubles", "alike", "changes", "parts"] as const;

export function pictureOf(scene: Scene, condition: Condition): Picture {
  const known = DRAWN.get(scene);
  const same = known !== undefined && STEADY.every((cause) => known.condition[cause] === condition[cause]);
  const drawn: Drawn = same ? known.drawn : new Map();
  DRAWN.set(scene, {condition, drawn});
  return new Shown(scene, condition, drawn);
}

class Shown implements Picture {
  readonly scale: Scale;
  readonly measure: Measure;
  readonly steady: Drawn;
  readonly #scene: Scene;
  readonly #condition: Condition;
  readonly #edges = new Map<Part, readonly PictureEdge[]>();

  constructor(scene: Scene, condition: Condition, drawn: Drawn) {
    [this.#scene, this.#condition, this.steady] = [scene, condition, drawn];
    this.scale = condition.measured.scale;
    this.measure = condition.measured.measure;
  }

  get boxes(): readonly PictureBox[] {
    return this.#scene.parts.flatMap((part) => this.#boxesOf(part));
  }

  get edges(): readonly PictureEdge[] {
    return this.#scene.parts.flatMap((part) => this.#edgesOf(part));
  }

  get broken(): readonly PictureEdge[] {
    const {edges} = this.#condition.flow;
    const isBroken = (edge: number): boolean => edges[edge] === "broken";
    const parts = this.#scene.parts.filter(({layout}) => layout.routes.segments.some((segment) => segment.edges.some(isBroken)));
    return parts.flatMap((part) => this.#edgesOf(part).filter((edge) => edge.bundle.broken > 0));
  }

  boxesIn(window: Rectangle): readonly PictureBox[] {
    return this.#partsIn(window).flatMap((part) => this.#boxesOf(part).filter((box) => touches(box, window)));
  }

  edgesIn(window: Rectangle): readonly PictureEdge[] {
    return this.#partsIn(window).flatMap((part) => this.#edgesOf(part).filter((edge) => touches(edge, window)));
  }

  foremost(most: number, preferred: ReadonlySet<number> | null): readonly PictureBox[] {
    const {flow, troubles} = this.#condition;
    const [first, others]: [PictureBox[], PictureBox[]] = [[], []];
    for (const part of this.#scene.parts) {
      part.layout.children.forEach(({item}, index) => {
        const troubled = flow.missing.has(item) || (flow.marks[item] ?? null) !== null || troubles.blocking[item] + troubles.missing[item] > 0;
        const list = troubled || preferred?.has(item) === true ? first : others;
        if (list.length < most) {
          list.push(this.#boxesOf(part)[index]);
        }
      });
    }
    return [...first, ...others].slice(0, most);
  }

  eachDot(visit: (x: number, y: number, width: number, height: number, dot: Dot) => void): void {
    for (const part of this.#scene.parts) {
      for (const {item, x, y, size} of part.layout.children) {
        visit(part.x + x, part.y + y, size.width, size.height, this.#dotOf(item, part.isOpen(item)));
      }
    }
  }

  #dotOf(item: number, open: boolean): Dot {
    const {tree, flow, troubles} = this.#condition;
    const closed = isGroup(tree, item) && !open;
    const mark = flow.marks[item] ?? null;
    if (mark === "blocking" || (closed && troubles.blocking[item] > 0)) {
      return "bad";
    }
    if (flow.missing.has(item) || (closed && troubles.missing[item] > 0)) {
      return "without";
    }
    if (mark === "warning" || (closed && troubles.warnings[item] > 0)) {
      return "warning";
    }
    return open ? "open" : tree.graph.nodes[item]?.kind === "loss" ? "loss" : "closed";
  }

  #partsIn(window: Rectangle): readonly Part[] {
    return this.#scene.parts.filter((part) => touches(part.bounds, window));
  }

  #boxesOf(part: Part): readonly PictureBox[] {
    const condition = this.#condition;
    const known = this.steady.get(part);
    if (known?.condition === condition) {
      return known.boxes;
    }
    const boxes = part.placed.map((placed, index) => {
      const before = known?.boxes[index];
      return before === undefined || before.kind === "variable" ? boxOf(placed, condition) : before;
    });
    this.steady.set(part, {condition, boxes});
    return boxes;
  }

  #edgesOf(part: Part): readonly PictureEdge[] {
    let edges = this.#edges.get(part);
    if (edges === undefined) {
      edges = part.routed.map((routed) => edgeOf(routed, this.#condition));
      this.#edges.set(part, edges);
    }
    return edges;
  }
}

function boxOf(placed: Placed, condition: Condition): PictureBox {
  const {tree, flow, troubles, answers, numbers, diagnosis, changes, alike, parts} = condition;
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
    named: troubles.blocking[item],
    without: troubles.missing[item],
    warnings: troubles.warnings[item],
    notFinite: troubles.notFinite[item],
    nan: troubles.nan[item],
    part: parts === null || !group || Number.isNaN(parts.norms[item]) ? null : {norm: parts.norms[item], share: parts.shares[item]},
    change: changes?.marks.get(item) ?? null,
    changesInside: placed.open ? 0 : (changes?.inside.get(item) ?? 0),
  };
}

/** For a variable: its own norm, or the measure of the edges that leave it. */
function valueOf({tree, answers, numbers, measured: {measure, edges}}: Condition, node: number, variable: number): number {
  if (measure === "norm") {
    return numbers?.magnitude(answers.variables[variable].row).norm ?? NaN;
  }
  return tree.graph.outgoing[node].reduce((most, edge) => (edges[edge] > most || Number.isNaN(most) ? edges[edge] : most), NaN);
}

function edgeOf(routed: Routed, {flow, answers, numbers, measured}: Condition): PictureEdge {
  const {segment, arrives, x, y, width, height} = routed;
  return {routed, bundle: bundleOf(segment.edges, flow, answers, numbers, measured.edges), arrow: arrives, x, y, width, height};
}
