/** Finds items of a tree by name, type of op, cause of a finding, or line of code: every word must be in one of them. */

import type {Diagnosis} from "../record.ts";
import {fileName} from "./format.ts";
import type {FlowNode} from "./graph.ts";
import {isGroup, type Tree} from "./tree.ts";

/** What of an item the words were found in. */
export type Where = "name" | "type" | "cause" | "code";

export interface Hit {
  readonly item: number;
  readonly where: Where;
  /** What it says there. */
  readonly text: string;
}

/** Searched by all words: the better place comes first. */
const PLACES: readonly Where[] = ["name", "type", "cause", "code"];

interface Entry {
  readonly item: number;
  /** As they are shown, by place; an empty one is never found. */
  readonly texts: readonly string[];
  /** In small letters. */
  readonly folded: readonly string[];
  readonly label: string;
}

export type Index = readonly Entry[];

/** Everything that can be found in a tree. Causes are those of the step's findings. */
export function indexOf(tree: Tree, diagnosis: Diagnosis | null): Index {
  const causes = causesOf(tree, diagnosis);
  return tree.items
    .filter((item) => item.id !== tree.root)
    .map(({id, name, label, layer}) => {
      const node = isGroup(tree, id) ? null : tree.graph.nodes[id];
      const type = node === null ? (layer?.type ?? "") : typeOf(tree, node);
      const texts = [name || label, type, [...(causes.get(id) ?? [])].join(", "), node === null ? "" : codeOf(tree, node)];
      const folded = texts.map((text) => text.toLowerCase());
      // Whoever read a report knows the cause with underscores.
      folded[2] += ` ${folded[2].replaceAll(" ", "_")}`;
      return {item: id, texts, folded, label: label.toLowerCase()};
    });
}

function typeOf({graph: {trace}}: Tree, node: FlowNode): string {
  return node.kind === "op" ? trace.ops[node.index].type : node.kind;
}

function codeOf({graph: {trace}}: Tree, node: FlowNode): string {
  const op = node.kind === "op" ? trace.ops[node.index] : null;
  const source = op?.source === null || op === null ? null : trace.sources[op.source];
  return [op?.api ?? "", source === null ? "" : `${fileName(source.file)}:${source.line} ${source.code}`].filter(Boolean).join(" ");
}

function causesOf({graph}: Tree, diagnosis: Diagnosis | null): Map<number, Set<string>> {
  const variables = new Map(graph.trace.variables.map(({name}, index) => [name, graph.nodeOfVariable[index]]));
  const causes = new Map<number, Set<string>>();
  for (const {cause, culprit, variables: about} of diagnosis?.findings ?? []) {
    for (const node of [graph.nodeOfOp[culprit], ...about.map((name) => variables.get(name))]) {
      if (node !== undefined) {
        causes.set(node, (causes.get(node) ?? new Set()).add(cause.replaceAll("_", " ")));
      }
    }
  }
  return causes;
}

/**
 * Hits for a query, the best first: names before types before causes before code, exact labels before all. A word may
 * say where it wants to be found, as in `type:matmul`.
 */
export function search(index: Index, query: string): readonly Hit[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean).map(wordOf);
  if (words.length === 0) {
    return [];
  }
  const buckets: Hit[][] = Array.from({length: PLACES.length + 1}, () => []);
  for (const entry of index) {
    const place = placeOf(entry, words);
    if (place >= 0) {
      const exact = words.length === 1 && entry.label === words[0].text;
      buckets[exact ? 0 : place + 1].push({item: entry.item, where: PLACES[place], text: entry.texts[place]});
    }
  }
  return buckets.flat();
}

interface Word {
  readonly text: string;
  /** Position of the place it must be in; -1 for any. */
  readonly place: number;
}

function wordOf(word: string): Word {
  const cut = word.indexOf(":");
  const place = PLACES.indexOf(word.slice(0, cut) as Where);
  return cut > 0 && place >= 0 ? {text: word.slice(cut + 1), place} : {text: word, place: -1};
}

/** The worst of the places that the words are in; -1 if one is nowhere. */
function placeOf({folded}: Entry, words: readonly Word[]): number {
  let worst = 0;
  for (const {text, place} of words) {
    const at = folded.findIndex((each, index) => (place < 0 || place === index) && each.includes(text));
    if (at < 0) {
      return -1;
    }
    worst = Math.max(worst, at);
  }
  return worst;
}
