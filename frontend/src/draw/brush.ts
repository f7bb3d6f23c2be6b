/** What painters need of a canvas: a picture is painted on one, or written as SVG, by the same hands. */

export type Brush = Pick<
  CanvasRenderingContext2D,
  | "arc"
  | "beginPath"
  | "bezierCurveTo"
  | "closePath"
  | "fill"
  | "fillRect"
  | "fillStyle"
  | "fillText"
  | "font"
  | "globalAlpha"
  | "lineTo"
  | "lineWidth"
  | "measureText"
  | "moveTo"
  | "roundRect"
  | "setLineDash"
  | "stroke"
  | "strokeStyle"
  | "textAlign"
  | "textBaseline"
>;
