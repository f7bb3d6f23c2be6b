/** Finds items of a tree by name, op type, cause of a finding, or line of code: every word must be in one of them. */

import type {Diagnosis} from "../record.ts";
import {fileName} from "./format.ts";
import type {FlowNode} from "./graph.ts";
import {isGroup, type Tree} from "./tree.ts";

/** The field of an item in which the words were found. */
export type Where = "name" | "type" | "cause" | "code";

export interface Hit {
  readonly item: number;
  readonly where: Where;
  /** The text of that field. */
  readonly text: string;
}

/** Words are searched in all of these; the better field comes first. */
const PLACES: readonly Where[] = ["name", "type", "cause", "code"];

interface Entry {
  readonly item: number;
  /** The displayed texts, by field; an empty one never matches. */
  readonly texts: readonly string[];
  /** In lower case. */
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
      // Reports write causes with underscores.
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
 * Hits for a query, the best first: names before types before causes before code, exact matches first, and among equals
 * those with a problem. A word may name its field, as in `type:matmul`.
 */
export function search(index: Index, query: string, isTroubled: (item: number) => boolean = () => false): readonly Hit[] {
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
  return buckets.flatMap((bucket) => [true, false].flatMap((first) => bucket.filter(({item}) => isTroubled(item) === first)));
}

interface Word {
  readonly text: string;
  /** Index of the required field; -1 for any. */
  readonly place: number;
}

function wordOf(word: string): Word {
  const cut = word.indexOf(":");
  const place = PLACES.indexOf(word.slice(0, cut) as Where);
  return cut > 0 && place >= 0 ? {text: word.slice(cut + 1), place} : {text: word, place: -1};
}

/** The worst of the fields that contain the words; -1 if a word is in none. */
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
