/** The colours of magnitudes: viridis, dark on light and light on dark, so that large values stand out. */

const VIRIDIS: readonly (readonly [number, number, number])[] = [
  [68, 1, 84],
  [72, 36, 117],
  [65, 68, 135],
  [53, 95, 141],
  [42, 120, 142],
  [33, 145, 140],
  [34, 168, 132],
  [68, 191, 112],
  [122, 209, 81],
  [189, 223, 38],
  [253, 231, 37],
];

/** Number of distinct colours; also how finely edges are grouped for drawing. */
export const SHADES = 32;

/** The colour of a position on the scale, from 0, the low end, to 1. */
export function magnitudeColour(place: number, dark: boolean): string {
  const at = dark ? 0.25 + 0.72 * place : 0.86 - 0.84 * place;
  const scaled = Math.min(1, Math.max(0, at)) * (VIRIDIS.length - 1);
  const low = Math.min(VIRIDIS.length - 2, Math.floor(scaled));
  const mixed = VIRIDIS[low].map((value, channel) =>
    Math.round(value + (VIRIDIS[low + 1][channel] - value) * (scaled - low)),
  );
  return `rgb(${mixed.join(" ")})`;
}

/** The shade, from 0 to SHADES - 1, of a position on the scale. */
export function shadeOf(place: number): number {
  return Math.round(place * (SHADES - 1));
}

/** Width in screen pixels of an edge at a position on the scale. */
export function magnitudeWidth(place: number): number {
  return 1.4 + 3.6 * place;
}
