/** The only module that fetches: the plugin's routes as promises of their responses. Immutable responses are cached. */

import {FORMAT, type Diagnosis, type Trace} from "../record.ts";
import type {Quantity} from "../model/heat.ts";
import type {Scalars} from "../model/scalars.ts";
import type {Course, Divergence, Overview, RunEntry, Standings} from "./routes.ts";

/** The source of a viewer's data. */
export interface Source {
  /** Whether there may be more data later. */
  readonly isLive: boolean;
  /** A note about the origin of the data; empty for none. */
  readonly note: string;
  /** The address of the page about a cause; null if there is none. */
  pageOf(cause: string): string | null;
  /** The address of a run as one file with this viewer; null if this is such a file. */
  fileOf(run: string, step: number): string | null;
  runs(): Promise<readonly RunEntry[]>;
  /** The state of all runs, as far as it is known. */
  standings(): Promise<Standings>;
  overview(run: string): Promise<Overview>;
  trace(run: string, session: string, trace: number): Promise<Trace>;
  /** Without a step, which is -1, the report of the last step. */
  report(run: string, step: number): Promise<Diagnosis>;
  /** `[steps, rows, 6]` of one chunk; with `at`, `[1, rows, 6]` of the step at that position in it. */
  gradients(run: string, session: string, chunk: number, at?: number): Promise<Float32Array>;
  /** `[steps, variables, 4]` of one chunk, or `[1, variables, 4]`. */
  variables(run: string, session: string, chunk: number, at?: number): Promise<Float32Array>;
  /** `[steps, 6]`: one row over all steps of the overview. */
  series(run: string, row: number): Promise<Float32Array>;
  /** `[steps, statistics]`: one variable over all steps of the overview. */
  weights(run: string, variable: number): Promise<Float32Array>;
  /** `[columns, variables]`: the variables of a trace over all steps, in at most this many columns. */
  heat(run: string, trace: number, target: number, quantity: Quantity, columns: number): Promise<Float32Array>;
  /** `[columns, terms + term gradients]`: the terms of a trace over all steps, in at most this many columns. */
  terms(run: string, trace: number, columns: number): Promise<Float32Array>;
  course(run: string): Promise<Course>;
  /** Where two runs differ first; null if nobody can find out. */
  divergence(before: string, now: string): Promise<Divergence> | null;
  /** The scalars that other plugins have written. */
  scalars(): Promise<Scalars>;
}

/** Number of cached responses, mostly chunks of 32 steps. */
const MOST_KEPT = 64;

type Parameters = Record<string, string | number>;

/** The routes of a server; `base` is their common address. */
export class HttpSource implements Source {
  readonly isLive = true;
  readonly note = "";
  readonly #base: string;
  readonly #kept = new Map<string, Promise<unknown>>();

  constructor(base: string) {
    this.#base = base;
  }

  pageOf(cause: string): string {
    return new URL(`static/causes/${encodeURIComponent(cause)}.html`, this.#base).href;
  }

  fileOf(run: string, step: number): string {
    return new URL(`page?${new URLSearchParams({run, step: String(step)})}`, this.#base).href;
  }

  async runs(): Promise<readonly RunEntry[]> {
    const body = await this.#json<{format: number; runs: readonly RunEntry[]}>("runs", {});
    checkFormat(body.format);
    return body.runs;
  }

  standings(): Promise<Standings> {
    return this.#json<Standings>("standings", {});
  }

  async overview(run: string): Promise<Overview> {
    const overview = await this.#json<Overview>("overview", {run});
    checkFormat(overview.format);
    return overview;
  }

  trace(run: string, session: string, trace: number): Promise<Trace> {
    return this.#keep(`trace ${run} ${session} ${trace}`, async () => checked(await this.#json<Trace>("trace", {run, session, trace})));
  }

  report(run: string, step: number): Promise<Diagnosis> {
    return this.#json<Diagnosis>("report", step < 0 ? {run} : {run, step});
  }

  gradients(run: string, session: string, chunk: number, at?: number): Promise<Float32Array> {
    return this.#chunk("gradients", run, session, chunk, at);
  }

  variables(run: string, session: string, chunk: number, at?: number): Promise<Float32Array> {
    return this.#chunk("variables", run, session, chunk, at);
  }

  #chunk(route: string, run: string, session: string, chunk: number, at?: number): Promise<Float32Array> {
    const part = at === undefined ? {} : {at};
    return this.#keep(`${route} ${run} ${session} ${chunk} ${at ?? ""}`, () => this.#floats(route, {run, session, chunk, ...part}));
  }

  series(run: string, row: number): Promise<Float32Array> {
    return this.#floats("series", {run, row});
  }

  weights(run: string, variable: number): Promise<Float32Array> {
    return this.#floats("weights", {run, variable});
  }

  heat(run: string, trace: number, target: number, quantity: Quantity, columns: number): Promise<Float32Array> {
    return this.#floats("heat", {run, trace, target, quantity, columns});
  }

  terms(run: string, trace: number, columns: number): Promise<Float32Array> {
    return this.#floats("terms", {run, trace, columns});
  }

  /** From TensorBoard's own plugin; none if it is not installed. */
  async scalars(): Promise<Scalars> {
    const answer = await fetch(new URL("../timeseries/tags", this.#base));
    const body = answer.ok ? ((await answer.json()) as {scalars?: {runTagInfo?: Record<string, string[]>}}) : {};
    return new Map(Object.entries(body.scalars?.runTagInfo ?? {}));
  }

  course(run: string): Promise<Course> {
    return this.#json<Course>("course", {run});
  }

  divergence(before: string, now: string): Promise<Divergence> {
    return this.#json<Divergence>("divergence", {run: before, with: now});
  }

  async #json<T>(route: string, parameters: Parameters): Promise<T> {
    const response = await this.#get(route, parameters);
    try {
      return (await response.json()) as T;
    } catch {
      throw new Error(unreadable(route));
    }
  }

  async #floats(route: string, parameters: Parameters): Promise<Float32Array> {
    const response = await this.#get(route, parameters);
    const body = await response.arrayBuffer().catch(() => Promise.reject(new Error(unreadable(route))));
    return littleEndianFloats(body);
  }

  async #get(route: string, parameters: Parameters): Promise<Response> {
    const query = new URLSearchParams(Object.entries(parameters).map(([name, value]) => [name, String(value)]));
    let response: Response;
    try {
      response = await fetch(new URL(`${route}?${query}`, this.#base));
    } catch {
      throw new Error("The server does not respond. Is it still running?");
    }
    if (!response.ok) {
      throw new Error(await serversWords(response, route));
    }
    return response;
  }

  /** Requests once; a failure is forgotten, so the next call requests again. */
  #keep<T>(key: string, ask: () => Promise<T>): Promise<T> {
    const kept = this.#kept.get(key);
    const asked = (kept as Promise<T> | undefined) ?? ask();
    // The most recently used entry is last; the least recently used one is removed.
    this.#kept.delete(key);
    this.#kept.set(key, asked);
    if (kept !== undefined) {
      return asked;
    }
    for (const oldest of [...this.#kept.keys()].slice(0, Math.max(0, this.#kept.size - MOST_KEPT))) {
      this.#kept.delete(oldest);
    }
    asked.catch(() => this.#kept.delete(key));
    return asked;
  }
}

function checkFormat(format: number): void {
  if (format !== FORMAT) {
    throw new Error(`The plugin speaks format ${format}, and this page format ${FORMAT}: reload the page.`);
  }
}

/** The lists of a trace, without which nothing can be drawn. */
const LISTS = ["ops", "variables", "targets", "variable_gradients", "tensor_gradients", "layers", "sources"] as const;

function checked(trace: Trace): Trace {
  if (LISTS.some((name) => !Array.isArray(trace?.[name]))) {
    throw new Error(unreadable("trace"));
  }
  return trace;
}

/** The content of the log, passed on as it is stored. */
function unreadable(route: string): string {
  return `The response to \`${route}\` cannot be read. Reload the page. If that does not help, the log is damaged: copy it again, or record a new run.`;
}

async function serversWords(response: Response, route: string): Promise<string> {
  const otherwise = `The server responded with ${response.status} ${response.statusText} to \`${route}\`.`;
  try {
    const body = (await response.json()) as {error?: unknown};
    return typeof body.error === "string" ? body.error : otherwise;
  } catch {
    return otherwise;
  }
}

function littleEndianFloats(buffer: ArrayBuffer): Float32Array {
  const whole = buffer.byteLength - (buffer.byteLength % 4);
  if (new Uint8Array(new Uint32Array([1]).buffer)[0] === 1) {
    return new Float32Array(buffer, 0, whole / 4);
  }
  const view = new DataView(buffer);
  return Float32Array.from({length: whole / 4}, (_, index) => view.getFloat32(index * 4, true));
}
