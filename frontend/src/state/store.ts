/**
 * What is chosen and what was loaded for it. Every failure lands in `problems`, in words, and takes nothing else
 * with it; what was chosen meanwhile wins over what arrives late.
 */

import type {Course, Overview, RunEntry} from "../api/routes.ts";
import type {Source} from "../api/source.ts";
import {extentOf, mainTarget, StepNumbers} from "../model/gradients.ts";
import {widened, type Scale} from "../model/scale.ts";
import type {Diagnosis, Trace} from "../record.ts";

export interface State {
  /** Null until the server answered. */
  readonly runs: readonly RunEntry[] | null;
  readonly run: string | null;
  readonly overview: Overview | null;
  /** Position in the overview's steps; -1 while there is none. */
  readonly at: number;
  readonly trace: Trace | null;
  /** A trace whose numbers are on their way; null if there is none, or another is shown meanwhile. */
  readonly coming: Trace | null;
  /** -1 until there is a trace to choose from. */
  readonly target: number;
  readonly diagnosis: Diagnosis | null;
  readonly numbers: StepNumbers | null;
  /** Whether the report is long in coming, and nobody should wait for it. */
  readonly impatient: boolean;
  /** Where findings begin; null until anything is known. */
  readonly course: Course | null;
  /** The same for all steps of a run; null until there are numbers. */
  readonly scale: Scale | null;
  /** What could not be done, by what it was. */
  readonly problems: ReadonlyMap<string, string>;
}

const NOTHING_CHOSEN = {
  overview: null,
  at: -1,
  trace: null,
  coming: null,
  target: -1,
  diagnosis: null,
  numbers: null,
  impatient: false,
  course: null,
  scale: null,
} as const;

/** A report is asked for when the slider has rested this long, in milliseconds. */
const REST = 120;
/** Milliseconds to wait for a report before the graph is shown without it. */
const PATIENCE = 1500;
/** Milliseconds between two questions where findings begin. */
const BETWEEN_LOOKS = 700;
/** Reports that are kept. */
const MOST_REPORTS = 200;

export class Store extends EventTarget {
  readonly source: Source;
  #state: State = {runs: null, run: null, ...NOTHING_CHOSEN, problems: new Map()};
  readonly #reports = new Map<string, Diagnosis>();
  #asked = 0;

  constructor(source: Source) {
    super();
    this.source = source;
  }

  get state(): State {
    return this.#state;
  }

  /** The chosen optimizer step; -1 while there is none. */
  get step(): number {
    return this.#state.overview?.steps[this.#state.at] ?? -1;
  }

  /** Loads the runs and shows one: the preferred if it is there, else the first that can be read. */
  async start(run?: string, step?: number): Promise<void> {
    await this.#loadRuns();
    const runs = this.#state.runs ?? [];
    const first = runs.find((entry) => entry.run === run) ?? runs.find((entry) => entry.error === null) ?? runs[0];
    if (first !== undefined) {
      await this.chooseRun(first.run, step);
    }
  }

  async chooseRun(run: string, step?: number): Promise<void> {
    this.#set({run, ...NOTHING_CHOSEN, problems: new Map()});
    await this.#loadOverview(run, step);
  }

  chooseTarget(target: number): void {
    if (target !== this.#state.target) {
      this.#set({target});
    }
  }

  /** Shows the step at a position among the recorded ones. */
  async chooseStep(at: number): Promise<void> {
    const {overview} = this.#state;
    if (overview === null || at < 0 || at >= overview.steps.length) {
      return;
    }
    this.#set({at});
    const waited = setTimeout(() => this.#isChosen(overview, at) && this.#set({impatient: true}), PATIENCE);
    await Promise.all([this.#loadNumbers(overview, at), this.#loadReport(overview, at)]);
    clearTimeout(waited);
  }

  /** Looks for new runs and steps. Who stands at the last step follows. */
  async refresh(): Promise<void> {
    await this.#loadRuns();
    if (this.#state.run === null) {
      await this.start();
      return;
    }
    await this.#loadOverview(this.#state.run, undefined);
  }

  async #loadRuns(): Promise<void> {
    await this.#attempt("runs", async () => {
      const runs = await this.source.runs();
      return () => this.#set({runs});
    });
  }

  async #loadOverview(run: string, step: number | undefined): Promise<void> {
    let next: number | null = null;
    await this.#attempt("overview", async () => {
      const overview = await this.source.overview(run);
      return () => {
        if (this.#state.run !== run) {
          return;
        }
        const before = this.#state.overview;
        if (before !== null && before.session.id !== overview.session.id) {
          this.#set(NOTHING_CHOSEN);
        }
        next = nextPosition(this.#state, overview, step);
        this.#set({overview});
      };
    });
    const {overview, trace} = this.#state;
    if (next !== null) {
      await this.chooseStep(next);
      void this.#loadCourse(this.#state.overview as Overview);
    } else if (overview !== null && overview.steps.length === 0 && trace === null) {
      await this.#loadStructure(overview);
    }
  }

  /** Of a run whose first step was not completed, or not yet. */
  async #loadStructure(overview: Overview): Promise<void> {
    const last = overview.traces.at(-1);
    if (last === undefined) {
      return;
    }
    await this.#attempt("numbers", async () => {
      const trace = await this.source.trace(overview.run, overview.session.id, last);
      return () => this.#isChosen(overview, -1) && this.#set({trace, target: targetIn(this.#state, trace)});
    });
    await this.#attempt("report", async () => {
      const diagnosis = await this.source.report(overview.run, -1);
      return () => this.#isChosen(overview, -1) && this.#set({diagnosis});
    });
  }

  async #loadNumbers(overview: Overview, at: number): Promise<void> {
    const step = overview.steps[at];
    const chunk = overview.chunks.find((each) => each.steps.includes(step));
    if (chunk === undefined) {
      return;
    }
    const {run, session} = overview;
    await this.#attempt("numbers", async () => {
      const [trace, gradients, variables] = await Promise.all([
        this.source.trace(run, session.id, chunk.trace).then((trace) => this.#announce(trace, overview, at)),
        this.source.gradients(run, session.id, chunk.id),
        this.source.variables(run, session.id, chunk.id),
      ]);
      return () => {
        if (!this.#isChosen(overview, at)) {
          return;
        }
        const numbers = new StepNumbers(gradients, variables, chunk.steps.indexOf(step), chunk.steps.length);
        this.#set({trace, coming: null, target: targetIn(this.#state, trace), numbers, scale: scaleWith(this.#state.scale, gradients)});
      };
    });
  }

  #announce(trace: Trace, overview: Overview, at: number): Trace {
    if (this.#state.trace === null && this.#isChosen(overview, at)) {
      this.#set({coming: trace});
    }
    return trace;
  }

  async #loadReport(overview: Overview, at: number): Promise<void> {
    const step = overview.steps[at];
    const key = `${overview.run} ${overview.session.id} ${step}`;
    const known = this.#reports.get(key);
    if (known !== undefined) {
      this.#set({diagnosis: known});
      return;
    }
    if (this.#state.diagnosis !== null && !(await this.#rests())) {
      return;
    }
    await this.#attempt("report", async () => {
      const diagnosis = await this.source.report(overview.run, step);
      return () => {
        this.#reports.set(key, diagnosis);
        if (this.#reports.size > MOST_REPORTS) {
          this.#reports.delete(this.#reports.keys().next().value as string);
        }
        if (this.#isChosen(overview, at)) {
          this.#set({diagnosis});
        }
      };
    });
  }

  /** Asks as long as there is more to be known, and nobody chose another run. Nobody misses what does not come. */
  async #loadCourse(overview: Overview): Promise<void> {
    for (let complete = false; !complete && this.#state.overview === overview; ) {
      const course = await this.source.course(overview.run).catch(() => null);
      complete = course?.complete ?? true;
      if (course !== null && this.#state.run === overview.run) {
        this.#set({course});
      }
      await new Promise((resolve) => setTimeout(resolve, complete ? 0 : BETWEEN_LOOKS));
    }
  }

  /** Waits a while; false if somebody else asked meanwhile. */
  async #rests(): Promise<boolean> {
    this.#asked += 1;
    const asked = this.#asked;
    await new Promise((resolve) => setTimeout(resolve, REST));
    return asked === this.#asked;
  }

  #isChosen(overview: Overview, at: number): boolean {
    const {run, overview: current} = this.#state;
    const same = run === overview.run && current?.session.id === overview.session.id;
    return same && this.step === (overview.steps[at] ?? -1);
  }

  /** Runs `load`, then what it returns; a failure of either is told under `name`, a success takes that back. */
  async #attempt(name: string, load: () => Promise<() => unknown>): Promise<void> {
    const problems = new Map(this.#state.problems);
    try {
      const apply = await load();
      if (this.#state.problems.has(name)) {
        problems.delete(name);
        this.#set({problems});
      }
      apply();
    } catch (error) {
      problems.set(name, error instanceof Error ? error.message : String(error));
      this.#set({problems});
    }
  }

  #set(change: Partial<State>): void {
    this.#state = {...this.#state, ...change};
    this.dispatchEvent(new Event("change"));
  }
}

/** The position to go to in a new overview: the wanted step, or the last if that is where the reader was. */
function nextPosition({overview, at}: State, next: Overview, step: number | undefined): number | null {
  const last = next.steps.length - 1;
  if (overview === null) {
    const wanted = step === undefined ? -1 : next.steps.indexOf(step);
    return wanted >= 0 ? wanted : last < 0 ? null : last;
  }
  if (at === overview.steps.length - 1 || at < 0) {
    return last > at ? last : null;
  }
  return null;
}

/** The chosen target if the trace has it; else what it is trained for. */
function targetIn({target}: State, trace: Trace): number {
  return target >= 0 && target < trace.targets.length ? target : mainTarget(trace);
}

/** What the norms of each chunk span: all steps of one ask for it. */
const EXTENTS = new WeakMap<Float32Array, readonly [number, number]>();

/** The scale widened to hold the norms of a chunk; the same if it does. */
function scaleWith(scale: Scale | null, gradients: Float32Array): Scale {
  const extent = EXTENTS.get(gradients) ?? extentOf(gradients);
  EXTENTS.set(gradients, extent);
  const wider = widened(scale, ...extent);
  return scale !== null && wider.low === scale.low && wider.high === scale.high ? scale : wider;
}
