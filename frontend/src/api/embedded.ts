/** The runs embedded in a saved page. Makes no requests. */

import {FORMAT, GRADIENT_STATISTICS, VARIABLE_STATISTICS, type Diagnosis, type Finding, type Trace, type VariableReport} from "../record.ts";
import type {Quantity} from "../model/heat.ts";
import {gradientNorms, NOT_RECORDED, valuesOf} from "./heat.ts";
import {keysOfTerms, termNumbers} from "./terms.ts";
import {unpackJson, unpackNumbers, type PackedNumbers} from "./packed.ts";
import type {ChunkEntry, Course, Overview, RunEntry, Standing, Standings} from "./routes.ts";
import type {Scalars} from "../model/scalars.ts";
import type {Source} from "./source.ts";

/** As `tb_gradflow/serve/reports/page.py` writes it. */
export interface Embedded {
  readonly format: number;
  /** Version of tb-gradflow. */
  readonly version: string;
  readonly start: {readonly run: string; readonly step: number | null};
  readonly runs: Readonly<Record<string, EmbeddedRun>>;
}

export interface EmbeddedRun {
  /** Number of steps in the log. */
  readonly recorded: number;
  /** Number of these in the page. */
  readonly kept: number;
  /** Number of steps that were analysed. */
  readonly looked_at: number;
  readonly standing: Standing;
  readonly overview: Overview;
  readonly course: Course;
  readonly traces: Readonly<Record<string, string>>;
  readonly reports: string;
  readonly gradients: Readonly<Record<string, PackedNumbers>>;
  readonly variables: Readonly<Record<string, PackedNumbers>>;
}

/** Reports in which repeated texts are stored once. */
interface Interned {
  readonly variables: readonly VariableReport[];
  readonly findings: readonly Finding[];
  readonly reports: readonly (Omit<Diagnosis, "variables" | "findings"> & {readonly variables: readonly number[]; readonly findings: readonly number[]})[];
}

export class EmbeddedSource implements Source {
  readonly isLive = false;
  readonly #data: Embedded;
  readonly #kept = new Map<string, Promise<unknown>>();

  constructor(data: Embedded) {
    if (data.format !== FORMAT) {
      throw new Error(`The page contains format ${data.format}, but its viewer reads format ${FORMAT}.`);
    }
    this.#data = data;
  }

  /** The version that made the page, and what was left out of it. */
  get note(): string {
    const runs = Object.values(this.#data.runs);
    const thinned = runs.filter(({recorded, kept}) => kept < recorded).map(({overview, recorded, kept}) => `${kept} of ${recorded} recorded steps of ${overview.name}`);
    const sampled = runs.filter(({recorded, looked_at}) => looked_at < recorded).map(({overview, looked_at}) => `${looked_at} steps of ${overview.name}`);
    const holds = thinned.length === 0 ? "" : ` It contains ${thinned.join(", ")}: steps were left out to keep it small, but no findings.`;
    const looked = sampled.length === 0 ? "" : ` Only ${sampled.join(", ")} were analysed.`;
    return `Made by tb-gradflow ${this.#data.version}.${holds}${looked}`;
  }

  scalars(): Promise<Scalars> {
    return Promise.resolve(new Map());
  }

  pageOf(): null {
    return null;
  }

  fileOf(): null {
    return null;
  }

  async runs(): Promise<readonly RunEntry[]> {
    return Object.entries(this.#data.runs).map(([run, {overview, standing}]) => ({
      run,
      name: overview.name,
      error: null,
      began: Number(overview.session.id) / 1000,
      health: standing.health,
    }));
  }

  async standings(): Promise<Standings> {
    return {runs: Object.values(this.#data.runs).map(({standing}) => standing), shared: [], hyperparameters: [], complete: true};
  }

  async overview(run: string): Promise<Overview> {
    return this.#run(run).overview;
  }

  trace(run: string, _: string, trace: number): Promise<Trace> {
    return this.#once(`trace ${run} ${trace}`, () => unpackJson<Trace>(this.#run(run).traces[trace]));
  }

  async report(run: string, step: number): Promise<Diagnosis> {
    const {reports, findings, variables} = await this.#once(`reports ${run}`, () => unpackJson<Interned>(this.#run(run).reports));
    const found = step < 0 ? reports.at(-1) : reports.find((each) => each.step === step);
    if (found === undefined) {
      throw new Error(`This page contains no report of step ${step}.`);
    }
    return {...found, findings: found.findings.map((at) => findings[at]), variables: found.variables.map((at) => variables[at])};
  }

  async gradients(run: string, _: string, chunk: number, at?: number): Promise<Float32Array> {
    const packed = this.#run(run).gradients[chunk];
    return stepAt(await this.#once(`gradients ${run} ${chunk}`, () => unpackNumbers(packed)), packed, at);
  }

  async variables(run: string, _: string, chunk: number, at?: number): Promise<Float32Array> {
    const packed = this.#run(run).variables[chunk];
    return stepAt(await this.#once(`variables ${run} ${chunk}`, () => unpackNumbers(packed)), packed, at);
  }

  series(run: string, row: number): Promise<Float32Array> {
    return this.#overSteps(run, row, GRADIENT_STATISTICS.length, this.#run(run).gradients, (chunk) => this.gradients(run, "", chunk));
  }

  weights(run: string, variable: number): Promise<Float32Array> {
    return this.#overSteps(run, variable, VARIABLE_STATISTICS.length, this.#run(run).variables, (chunk) => this.variables(run, "", chunk));
  }

  /** There are never more steps than columns. */
  async heat(run: string, trace: number, target: number, quantity: Quantity): Promise<Float32Array> {
    const {variables} = await this.trace(run, "", trace);
    const parts = await Promise.all(this.#chunks(run).map((chunk) => this.#heatPart(run, chunk, target, quantity)));
    const steps = parts.flatMap(({names, values}) => {
      const place = new Map(names.map((name, at) => [name, at]));
      const places = variables.map(({name}) => place.get(name) ?? -1);
      return Array.from({length: names.length === 0 ? 0 : values.length / names.length}, (_, step) =>
        places.map((at) => (at < 0 ? NOT_RECORDED : values[step * names.length + at])),
      );
    });
    return Float32Array.from(steps.flat());
  }

  /** There are never more steps than columns. */
  async terms(run: string, trace: number): Promise<Float32Array> {
    const wanted = keysOfTerms(await this.trace(run, "", trace));
    const parts = await Promise.all(
      this.#chunks(run).map(async (chunk) => {
        const own = await this.trace(run, "", chunk.trace);
        return termNumbers(own, wanted, await this.gradients(run, "", chunk.id), chunk.steps.length);
      }),
    );
    return Float32Array.from(parts.flatMap((part) => [...part]));
  }

  async course(run: string): Promise<Course> {
    return this.#run(run).course;
  }

  async #heatPart(run: string, chunk: ChunkEntry, target: number, quantity: Quantity): Promise<{names: readonly string[]; values: Float32Array}> {
    const trace = await this.trace(run, "", chunk.trace);
    const values =
      quantity === "gradient"
        ? gradientNorms(trace, target, await this.gradients(run, "", chunk.id), chunk.steps.length)
        : valuesOf(await this.variables(run, "", chunk.id), quantity);
    return {names: trace.variables.map(({name}) => name), values};
  }

  /** One row over all chunks; NaN where a chunk has no such row. */
  async #overSteps(run: string, row: number, columns: number, packed: EmbeddedRun["gradients"], chunk: (id: number) => Promise<Float32Array>): Promise<Float32Array> {
    const parts = await Promise.all(
      this.#chunks(run).map(async ({id, steps}) => {
        const values = await chunk(id);
        const rows = packed[id].shape[1];
        return steps.flatMap((_, step) => Array.from({length: columns}, (_, column) => (row < rows ? values[(step * rows + row) * columns + column] : NaN)));
      }),
    );
    return Float32Array.from(parts.flat());
  }

  #chunks(run: string): readonly ChunkEntry[] {
    return this.#run(run).overview.chunks;
  }

  #run(run: string): EmbeddedRun {
    const found = this.#data.runs[run];
    if (found === undefined) {
      throw new Error(`This page contains no run ${run}.`);
    }
    return found;
  }

  #once<T>(key: string, make: () => Promise<T>): Promise<T> {
    const known = this.#kept.get(key) as Promise<T> | undefined;
    const made = known ?? make();
    this.#kept.set(key, made);
    return made;
  }
}

/** The statistics of all steps of a chunk, or of one of them. */
function stepAt(numbers: Float32Array, {shape: [steps]}: PackedNumbers, at: number | undefined): Float32Array {
  const size = numbers.length / steps;
  return at === undefined ? numbers : numbers.subarray(at * size, (at + 1) * size);
}
