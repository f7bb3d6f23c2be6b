/** The target of an arrow key: the next box in a direction. */

export type Direction = "up" | "down" | "left" | "right";

interface Box {
  readonly item: number;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly open: boolean;
}

/** A box off to the side counts as this many times farther away. */
const ASIDE = 2.5;

/** Without a selection, the topmost box; -1 if there is no box in that direction. Open groups are passed through. */
export function steered(boxes: readonly Box[], from: number, direction: Direction): number {
  const solid = boxes.filter((box) => !box.open);
  const start = boxes.find((box) => box.item === from);
  if (start === undefined) {
    return solid.reduce<Box | null>((top, box) => (top === null || box.y < top.y ? box : top), null)?.item ?? -1;
  }
  const [x, y] = middle(start);
  const along = direction === "up" || direction === "down" ? 1 : 0;
  const sign = direction === "up" || direction === "left" ? -1 : 1;
  let best = -1;
  let least = Infinity;
  for (const box of solid) {
    const [dx, dy] = [middle(box)[0] - x, middle(box)[1] - y];
    const ahead = sign * (along === 1 ? dy : dx);
    const away = ahead + ASIDE * Math.abs(along === 1 ? dx : dy);
    if (box.item !== from && ahead > 1 && away < least) {
      least = away;
      best = box.item;
    }
  }
  return best;
}

function middle(box: Box): [number, number] {
  return [box.x + box.width / 2, box.y + box.height / 2];
}
