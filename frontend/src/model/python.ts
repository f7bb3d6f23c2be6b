/** Splits Python source into tokens for syntax colouring. Also handles lines without their context. */

export type Kind = "comment" | "string" | "number" | "keyword" | "plain";

export interface Piece {
  readonly kind: Kind;
  readonly text: string;
}

const KEYWORDS = new Set(
  ("False None True and as assert async await break case class continue def del elif else except finally for from global if import in is lambda " +
    "match nonlocal not or pass raise return try while with yield self").split(" "),
);

/** The meaning of a word that is a keyword only in some places: `match = 1` is a name. */
const SOFT = new Set(["match", "case"]);

const TRIPLE = String.raw`"""(?:\\[\s\S]|[^\\])*?(?:"""|$)|'''(?:\\[\s\S]|[^\\])*?(?:'''|$)`;
const SINGLE = String.raw`"(?:\\[\s\S]|[^"\\\n])*(?:"|(?=\n)|$)|'(?:\\[\s\S]|[^'\\\n])*(?:'|(?=\n)|$)`;
const TOKEN = new RegExp(
  [
    String.raw`(?<comment>#[^\n]*)`,
    String.raw`(?<string>(?<![\p{L}\p{N}_])(?:[rbfut]|[rf]b|b[r]|[ft]r|r[ft])?(?:${TRIPLE}|${SINGLE}))`,
    String.raw`(?<number>(?<![\p{L}\p{N}_])(?:0[xob][\da-f_]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:e[+-]?\d+)?j?))`,
    String.raw`(?<word>[\p{L}_][\p{L}\p{N}_]*)`,
    String.raw`(?<space>\s+)`,
    String.raw`[^\s]`,
  ].join("|"),
  "giu",
);

/** The tokens of a text; concatenated, they are the text. */
export function piecesOf(code: string): readonly Piece[] {
  return [...code.matchAll(TOKEN)].map(({0: text, index, groups}) => ({kind: kindOf(groups ?? {}, code.slice(index + text.length)), text}));
}

function kindOf({comment, string, number, word}: Record<string, string | undefined>, after: string): Kind {
  if (comment !== undefined) {
    return "comment";
  }
  if (string !== undefined) {
    return "string";
  }
  if (number !== undefined) {
    return "number";
  }
  const isKeyword = word !== undefined && KEYWORDS.has(word) && !(SOFT.has(word) && /^\s*([=.,)\]:(]|$)/.test(after));
  return isKeyword ? "keyword" : "plain";
}

/** The same line by line; a token over several lines is split into one for each line. */
export function linesOfPieces(code: string): readonly (readonly Piece[])[] {
  const lines: Piece[][] = [[]];
  for (const {kind, text} of piecesOf(code)) {
    text.split("\n").forEach((part, index) => {
      if (index > 0) {
        lines.push([]);
      }
      if (part !== "") {
        lines[lines.length - 1].push({kind, text: part});
      }
    });
  }
  return lines;
}

/** For two lines, the range of tokens of each that differs from the other. Common tokens at both ends are left out. */
export function differing(before: readonly Piece[], after: readonly Piece[]): readonly [from: number, endBefore: number, endAfter: number] {
  const least = Math.min(before.length, after.length);
  let from = 0;
  while (from < least && before[from].text === after[from].text) {
    from += 1;
  }
  let same = 0;
  while (same < least - from && before[before.length - 1 - same].text === after[after.length - 1 - same].text) {
    same += 1;
  }
  return [from, before.length - same, after.length - same];
}
