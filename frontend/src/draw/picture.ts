/** What is to be drawn: a scene, and how each part of it looks at this moment. Made by `look`, read by painters. */

import type {Bundle} from "../model/bundle.ts";
import type {Mark} from "../model/changes.ts";
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
  /** Of a variable. */
  readonly status: Status | null;
  readonly magnitude: Magnitude | null;
  /** What its colour tells; NaN if there is none. */
  readonly value: number;
  /** Of a group that is not the only one of its kind, the number of the kind; else -1. */
  readonly kin: number;
  /** How many there are of the kind. */
  readonly copies: number;
  /** A variable that gets no gradient and misses it. */
  readonly missing: boolean;
  /** An op that a gradient ends at, or that a warning blames. */
  readonly mark: "blocking" | "warning" | null;
  /** Troubles inside a closed group. */
  readonly badge: number;
  readonly warnings: number;
  /** Variables inside a closed group whose gradient is not finite. */
  readonly notFinite: number;
  /** How many of those have NaN. */
  readonly nan: number;
  /** Against the run beside. */
  readonly change: Mark | null;
  /** How many such there are inside a closed group. */
  readonly changesInside: number;
}

export interface PictureEdge extends Rectangle {
  readonly routed: Routed;
  readonly bundle: Bundle;
  /** Ends at something closed, where an arrow belongs. */
  readonly arrow: boolean;
}

/** What a thumbnail tells of a box. */
export type Dot = "open" | "closed" | "loss" | "warning" | "bad";

/** Of tens of thousands of things few are seen: each is made when it is asked for. */
export interface Picture {
  /** All, in the order in which they are painted. */
  readonly boxes: readonly PictureBox[];
  readonly edges: readonly PictureEdge[];
  readonly scale: Scale;
  readonly measure: Measure;
  /** The same object from one step to the next, as long as nothing but numbers changes. */
  readonly steady: object;
  /** Edges of which a part is broken. */
  readonly broken: readonly PictureEdge[];
  /** What touches a part of the scene, in the order of all. */
  boxesIn(window: Rectangle): readonly PictureBox[];
  edgesIn(window: Rectangle): readonly PictureEdge[];
  /** At most so many: first those in trouble and those of `preferred`, then others. */
  foremost(most: number, preferred: ReadonlySet<number> | null): readonly PictureBox[];
  eachDot(visit: (x: number, y: number, width: number, height: number, dot: Dot) => void): void;
}

/** What the reader points at or has chosen; everything else steps back while a path is lit. */
export interface Focus {
  readonly litItems: ReadonlySet<number> | null;
  readonly litEdges: ReadonlySet<number> | null;
  readonly selected: number;
  readonly hovered: number;
}
