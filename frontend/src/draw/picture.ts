/** The drawing: a scene, and the look of each of its parts. Created by `look`, read by painters. */

import type {Bundle} from "../model/bundle.ts";
import type {Mark as Change} from "../model/changes.ts";
import type {Mark} from "../model/flow.ts";
import type {Magnitude} from "../model/gradients.ts";
import type {Status} from "../record.ts";
import type {Routed} from "../layout/scene.ts";
import type {Measure} from "../model/measure.ts";
import type {Scale} from "../model/scale.ts";
import type {Rectangle} from "./camera.ts";

export type BoxKind = "op" | "variable" | "loss" | "group" | "open";

export interface PictureBox extends Rectangle {
  readonly item: number;
  readonly kind: BoxKind;
  readonly title: string;
  readonly subtitle: string;
  /** For a variable. */
  readonly status: Status | null;
  readonly magnitude: Magnitude | null;
  /** The value of its colour; NaN if there is none. */
  readonly value: number;
  /** For a group that is not the only one of its kind, the number of the kind; otherwise -1. */
  readonly kin: number;
  /** Number of groups of this kind. */
  readonly copies: number;
  /** A variable that gets no gradient but should. */
  readonly missing: boolean;
  readonly mark: Mark;
  /** Number of ops inside a closed group that an error names. */
  readonly named: number;
  /** Number of variables inside a closed group that get no gradient but should. */
  readonly without: number;
  readonly warnings: number;
  /** Number of variables inside a closed group whose gradient is not finite. */
  readonly notFinite: number;
  /** Number of these with NaN. */
  readonly nan: number;
  /** For a group, what the chosen term gives its variables; null if the whole loss is shown, or if there are none. */
  readonly part: {readonly norm: number; readonly share: number} | null;
  /** The change from the compared run. */
  readonly change: Change | null;
  /** Number of such changes inside a closed group. */
  readonly changesInside: number;
}

export interface PictureEdge extends Rectangle {
  readonly routed: Routed;
  readonly bundle: Bundle;
  /** Ends at a closed box, where an arrow is drawn. */
  readonly arrow: boolean;
}

/** The look of a box in a thumbnail. */
export type Dot = "open" | "closed" | "loss" | "warning" | "bad" | "without";

/** Of tens of thousands of boxes few are visible: each is created on request. */
export interface Picture {
  /** All boxes, in painting order. */
  readonly boxes: readonly PictureBox[];
  readonly edges: readonly PictureEdge[];
  readonly scale: Scale;
  readonly measure: Measure;
  /** The same object from one step to the next, as long as only numbers change. */
  readonly steady: object;
  /** Edges of which some part is broken. */
  readonly broken: readonly PictureEdge[];
  /** Everything that overlaps a part of the scene, in painting order. */
  boxesIn(window: Rectangle): readonly PictureBox[];
  edgesIn(window: Rectangle): readonly PictureEdge[];
  /** At most this many: first those with problems and those of `preferred`, then others. */
  foremost(most: number, preferred: ReadonlySet<number> | null): readonly PictureBox[];
  eachDot(visit: (x: number, y: number, width: number, height: number, dot: Dot) => void): void;
}

/** The hovered or selected part; everything else is dimmed while a path is lit. */
export interface Focus {
  readonly litItems: ReadonlySet<number> | null;
  readonly litEdges: ReadonlySet<number> | null;
  readonly selected: number;
  readonly hovered: number;
}
