/** The looks of lines and the signs on boxes in a drawing: what the legend has to explain, and nothing else. */

import type {Look} from "../model/bundle.ts";
import type {Palette} from "./palette.ts";
import type {Focus, Picture, PictureBox, PictureEdge} from "./picture.ts";

export type Sign = "missing" | "cut" | "blocking" | "aside" | "warning" | "without" | "zero" | "nan" | "inf" | "kin" | "change";

export interface Marks {
  readonly looks: ReadonlySet<Look>;
  readonly signs: ReadonlySet<Sign>;
}

export const NO_MARKS: Marks = {looks: new Set(), signs: new Set()};

interface Meaning {
  readonly sign: Sign;
  /** How it is written in the drawing. */
  readonly text: string;
  readonly word: string;
  readonly colour: (palette: Palette) => string;
}

/** In the order of the legend. */
export const MEANINGS: readonly Meaning[] = [
  {sign: "missing", text: "✕", word: "variable gets none", colour: ({bad}) => bad},
  {sign: "cut", text: "⊗", word: "cut: it ends here", colour: ({bad}) => bad},
  {sign: "blocking", text: "⊘", word: "op that stops it", colour: ({bad}) => bad},
  {sign: "aside", text: "⊘", word: "a side path ends here", colour: ({bad}) => bad},
  {sign: "without", text: "①", word: "variables inside that get no gradient", colour: ({bad}) => bad},
  {sign: "warning", text: "!", word: "has a warning", colour: ({warn}) => warn},
  {sign: "zero", text: "0", word: "gradient of zero", colour: ({zero}) => zero},
  {sign: "nan", text: "NaN", word: "gradient has NaN", colour: ({nan}) => nan},
  {sign: "inf", text: "∞", word: "gradient is infinite", colour: ({inf}) => inf},
  {sign: "kin", text: "▌", word: "same colour: groups alike", colour: ({muted}) => muted},
  {sign: "change", text: "≠", word: "differs from the other run", colour: ({accent}) => accent},
];

/** Of more boxes only these are looked at, those with problems first. */
const MOST = 2000;

/** While something is lit, the rest is dimmed, and explains nothing. */
export function marksOf(picture: Picture, {litItems, litEdges}: Focus): Marks {
  const isLit = ({item}: PictureBox): boolean => litItems === null || litItems.has(item);
  const isLitEdge = ({routed}: PictureEdge): boolean => litEdges === null || routed.segment.edges.some((edge) => litEdges.has(edge));
  const boxes = picture.foremost(MOST, litItems).filter(isLit);
  const edges = picture.edges.filter(isLitEdge);
  const signs = new Set<Sign>(boxes.flatMap(signsOf));
  if (edges.some(({bundle, routed}) => bundle.cut === "path" && routed.segment.to >= 0)) {
    signs.add("cut");
  }
  const looks = new Set(edges.flatMap(({bundle}) => (bundle.broken > 0 ? ["broken" as const, bundle.look] : [bundle.look])));
  // The same sign on a line says the same.
  (["zero", "nan", "inf"] as const).filter((look) => looks.has(look)).forEach((look) => signs.delete(look));
  return {looks, signs};
}

function signsOf(box: PictureBox): readonly Sign[] {
  const signs: Sign[] = [];
  const add = (is: boolean, sign: Sign): void => {
    is && signs.push(sign);
  };
  const {kind, mark, magnitude} = box;
  add(box.missing, "missing");
  add(kind === "op" && mark === "blocking", "blocking");
  add(kind === "op" && mark === "aside", "aside");
  add(kind === "op" && mark === "warning", "warning");
  if (kind === "group") {
    add(box.named > 0, "blocking");
    add(box.named === 0 && box.without > 0, "without");
    add(box.named === 0 && box.without === 0 && box.warnings > 0, "warning");
    add(box.nan > 0, "nan");
    add(box.notFinite > box.nan && box.nan === 0, "inf");
    add(box.kin >= 0, "kin");
  }
  if (kind === "variable" && !box.missing && magnitude !== null) {
    add(magnitude.kind === "zero", "zero");
    add(magnitude.kind === "nan", "nan");
    add(magnitude.kind === "inf", "inf");
  }
  add(box.change !== null || box.changesInside > 0, "change");
  return signs;
}

/** Whether two drawings need the same explanation. */
export function isSame(one: Marks, other: Marks): boolean {
  return equal(one.looks, other.looks) && equal(one.signs, other.signs);
}

function equal(one: ReadonlySet<string>, other: ReadonlySet<string>): boolean {
  return one.size === other.size && [...one].every((each) => other.has(each));
}
