/** Unpacks the data of a saved page: base64 of gzipped JSON, and of arrays arranged to compress well. */

/** The format of `tb_gradflow/serve/reports/excerpt.py`. */
export interface PackedNumbers {
  /** Steps, rows, statistics. */
  readonly shape: readonly [number, number, number];
  readonly data: string;
}

export async function unpackJson<T>(packed: string): Promise<T> {
  return JSON.parse(new TextDecoder().decode(await gunzipped(packed))) as T;
}

/** Float32 `[steps, rows, statistics]`. */
export async function unpackNumbers({shape: [steps, rows, statistics], data}: PackedNumbers): Promise<Float32Array> {
  const planes = await gunzipped(data);
  const count = steps * rows * statistics;
  const bits = new Uint32Array(count);
  for (let plane = 0; plane < 4; plane += 1) {
    for (let at = 0; at < count; at += 1) {
      bits[at] = (bits[at] << 8) | planes[plane * count + at];
    }
  }
  const turned = new Float32Array(bits.buffer);
  const values = new Float32Array(count);
  let from = 0;
  for (let statistic = 0; statistic < statistics; statistic += 1) {
    for (let row = 0; row < rows; row += 1) {
      for (let step = 0; step < steps; step += 1) {
        values[(step * rows + row) * statistics + statistic] = turned[from];
        from += 1;
      }
    }
  }
  return values;
}

async function gunzipped(packed: string): Promise<Uint8Array> {
  if (typeof DecompressionStream === "undefined") {
    throw new Error("This browser is too old for this page: it needs Chrome 80, Edge 80, Firefox 113, Safari 16.4 or newer.");
  }
  const text = atob(packed);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at += 1) {
    bytes[at] = text.charCodeAt(at);
  }
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
