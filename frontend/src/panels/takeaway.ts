/** The drawn graph as a file. */

import type {Palette} from "../draw/palette.ts";
import type {Focus, Picture} from "../draw/picture.ts";
import {svgOf} from "../draw/svg.ts";
import type {Size} from "../layout/sizes.ts";

/** Browsers refuse larger canvases. */
const MOST_PIXELS = 12_000;

export async function pictureAs(kind: "svg" | "png", picture: Picture, scene: Size, focus: Focus, palette: Palette): Promise<Blob | null> {
  const context = document.createElement("canvas").getContext("2d");
  if (context === null) {
    return null;
  }
  const still = {...focus, hovered: -1};
  const svg = svgOf(picture, scene, still, palette, (words, font) => {
    context.font = font;
    return context.measureText(words);
  });
  const blob = new Blob([svg], {type: "image/svg+xml"});
  return kind === "svg" ? blob : rasterised(blob);
}

async function rasterised(svg: Blob): Promise<Blob | null> {
  const image = new Image();
  const address = URL.createObjectURL(svg);
  try {
    image.src = address;
    await image.decode();
    const scale = Math.min(2, MOST_PIXELS / Math.max(image.width, image.height));
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [Math.ceil(image.width * scale), Math.ceil(image.height * scale)];
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  } finally {
    URL.revokeObjectURL(address);
  }
}
