/** What is lit in the graph while everything else steps back. */

import type {Focus} from "../draw/picture.ts";
import type {Model} from "../model/model.ts";
import {edgesAmong, itemsOnPath, type Path} from "../model/paths.ts";

/** What a search found, with what leads from one to the other; or else a way; or else nothing in particular. */
export function litIn(model: Model | null, found: ReadonlySet<number> | null, path: Path | null): Pick<Focus, "litItems" | "litEdges"> {
  if (found !== null && model !== null) {
    return {litItems: found, litEdges: edgesAmong(model.tree.graph, found)};
  }
  if (path !== null && model !== null) {
    return {litItems: itemsOnPath(model.tree, path), litEdges: path.edges};
  }
  return {litItems: null, litEdges: null};
}
