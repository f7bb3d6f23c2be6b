/** All other colours, in both themes. The panels take theirs from here too, as CSS variables. */

export interface Palette {
  readonly dark: boolean;
  readonly page: string;
  readonly raised: string;
  readonly canvas: string;
  readonly text: string;
  readonly muted: string;
  readonly line: string;
  readonly node: string;
  readonly nodeLine: string;
  readonly group: string;
  readonly groupLine: string;
  readonly inside: string;
  readonly variable: string;
  readonly variableLine: string;
  readonly loss: string;
  readonly lossText: string;
  readonly accent: string;
  readonly accentSoft: string;
  readonly bad: string;
  readonly badSoft: string;
  readonly onBad: string;
  readonly warn: string;
  readonly warnSoft: string;
  readonly good: string;
  readonly nan: string;
  readonly inf: string;
  readonly zero: string;
  readonly none: string;
  /** For the user's code: keywords, strings, numbers and comments. */
  readonly keyword: string;
  readonly string: string;
  readonly number: string;
  readonly comment: string;
  /** Backgrounds of removed and added lines of an edit, and of the changed pieces in them. */
  readonly gone: string;
  readonly goneMark: string;
  readonly come: string;
  readonly comeMark: string;
}

export const LIGHT: Palette = {
  dark: false,
  page: "#ffffff",
  raised: "#f6f7f9",
  canvas: "#fbfcfd",
  text: "#1d232b",
  muted: "#5d6875",
  line: "#dfe3e8",
  node: "#ffffff",
  nodeLine: "#b9c2cc",
  group: "#eef1f5",
  groupLine: "#aab5c1",
  inside: "rgb(110 130 155 / 7%)",
  variable: "#eaf1fb",
  variableLine: "#8fa9cc",
  loss: "#2b3440",
  lossText: "#ffffff",
  accent: "#1f6feb",
  accentSoft: "#e6effc",
  bad: "#d01f3c",
  badSoft: "#fdeef0",
  onBad: "#ffffff",
  warn: "#9a6200",
  warnSoft: "#fdf3dc",
  good: "#1a7f48",
  nan: "#b0199c",
  inf: "#c2570c",
  zero: "#5f7286",
  none: "#a3adb8",
  keyword: "#8a2bb0",
  string: "#0b5c8c",
  number: "#8f4400",
  comment: "#525d69",
  gone: "#fdeaec",
  goneMark: "#f9cdd3",
  come: "#e3f4e9",
  comeMark: "#bfe6cc",
};

export const DARK: Palette = {
  dark: true,
  page: "#1c1f24",
  raised: "#24282e",
  canvas: "#17191d",
  text: "#e7eaee",
  muted: "#9aa5b1",
  line: "#363c44",
  node: "#262b32",
  nodeLine: "#4d5763",
  group: "#2c323a",
  groupLine: "#5a6673",
  inside: "rgb(160 180 210 / 6%)",
  variable: "#22334a",
  variableLine: "#53739d",
  loss: "#e7eaee",
  lossText: "#17191d",
  accent: "#6ea8ff",
  accentSoft: "#21334d",
  bad: "#ff6577",
  badSoft: "#43242b",
  onBad: "#1c1013",
  warn: "#e8b341",
  warnSoft: "#3d3320",
  good: "#5cc98b",
  nan: "#f07be0",
  inf: "#ff9a52",
  zero: "#93a7bd",
  none: "#616c78",
  keyword: "#dcb0f7",
  string: "#8fd0ff",
  number: "#ffb787",
  comment: "#b6bfc9",
  gone: "#40242a",
  goneMark: "#62303a",
  come: "#1f3a2b",
  comeMark: "#24523a",
};

/**
 * Colours of lines in charts: those of Okabe and Ito, which colour-blind people can distinguish, adapted to the
 * background.
 */
export function lineColours({dark}: Palette): readonly string[] {
  return dark
    ? ["#56b4e9", "#e69f00", "#2bc79a", "#f0e442", "#cc79a7", "#ff8a4c", "#9db7ff", "#c9d1d9"]
    : ["#0072b2", "#d55e00", "#009e73", "#a97c00", "#b0508a", "#56a4d9", "#5b4bb5", "#3d4650"];
}

/** The palette as CSS custom properties: `--gf-text` and so on. */
export function cssVariables(palette: Palette): Record<string, string> {
  const names = Object.entries(palette).filter(([, value]) => typeof value === "string");
  return Object.fromEntries(names.map(([name, value]) => [`--gf-${name}`, String(value)]));
}
