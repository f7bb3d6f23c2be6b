/** Numbers and names in readable form: at most three figures, a true minus sign, absence as absence. */

const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** In the place of the size of a gradient that there is not. A dash is a size that was not measured. */
export const NONE = "none";

/** A magnitude: `0`, `0.0123`, `12.3`, `1.23e−8`; a dash if there is none. */
export function formatNumber(value: number | null | undefined): string {
  if (value === null || value === undefined || Number.isNaN(value)) {
    return "–";
  }
  if (!Number.isFinite(value)) {
    return value > 0 ? "∞" : "−∞";
  }
  if (value === 0) {
    return "0";
  }
  const size = Math.abs(value);
  const text = size >= 1e-3 && size < 1e5 ? plain(value) : scientific(value);
  return text.replaceAll("-", "−");
}

function plain(value: number): string {
  return String(Number(value.toPrecision(3)));
}

function scientific(value: number): string {
  const [mantissa, exponent] = value.toExponential(2).split("e");
  return `${Number(mantissa)}e${Number(exponent)}`;
}

/** A power of ten: `10⁻⁴`. */
export function formatDecade(exponent: number): string {
  const digits = [...String(Math.abs(exponent))].map((digit) => SUPERSCRIPTS[Number(digit)]).join("");
  return `10${exponent < 0 ? "⁻" : ""}${digits}`;
}

/** A count with thin groups of thousands. */
export function formatCount(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/** `1 op`, `2 ops`. */
export function plural(count: number, word: string): string {
  return `${formatCount(count)} ${word}${count === 1 ? "" : "s"}`;
}

/** A shape as Python writes it, unknown sizes as `?`. */
export function formatShape(shape: readonly number[] | null): string {
  return shape === null ? "unknown shape" : `(${shape.map((size) => (size < 0 ? "?" : size)).join(", ")})`;
}

/** The end of a path, which distinguishes files. */
export function fileName(path: string): string {
  return path.split(/[/\\]/).at(-1) ?? path;
}
