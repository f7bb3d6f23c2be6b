/** The lit part of the graph while everything else is dimmed. */

import type {Focus} from "../draw/picture.ts";
import type {Model} from "../model/model.ts";
import {edgesAmong, itemsOnPath, type Path} from "../model/paths.ts";

/** The results of a search with the links between them; otherwise a path; otherwise nothing. */
export function litIn(model: Model | null, found: ReadonlySet<number> | null, path: Path | null): Pick<Focus, "litItems" | "litEdges"> {
  if (found !== null && model !== null) {
    return {litItems: found, litEdges: edgesAmong(model.tree.graph, found)};
  }
  if (path !== null && model !== null) {
    return {litItems: itemsOnPath(model.tree, path), litEdges: path.edges};
  }
  return {litItems: null, litEdges: null};
}
