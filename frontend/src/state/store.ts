/**
 * The selections and the data loaded for them. Every failure becomes a message in `problems`, and affects nothing else;
 * a newer selection wins over data that arrives late.
 */

import type {Overview} from "../api/routes.ts";
import type {Source} from "../api/source.ts";
import {StepNumbers} from "../model/gradients.ts";
import type {Diagnosis, Trace} from "../record.ts";
import {beganIn} from "../model/findings.ts";
import {runToOpen} from "../model/runs.ts";
import {isLarge, nextPosition, scaleWith, targetIn} from "./next.ts";
import {NOTHING_CHOSEN, type State} from "./state.ts";

/** A report is requested when the slider has rested this long, in milliseconds. */
const REST = 120;
/** Milliseconds to wait for a report, when everything else is there, before the graph is shown without it. */
const PATIENCE = 250;
/** Milliseconds between two requests for where findings begin. */
const BETWEEN_LOOKS = 700;
/** Number of cached reports. */
const MOST_REPORTS = 200;

export class Store extends EventTarget {
  readonly source: Source;
  #state: State = {runs: null, standings: null, run: null, missing: null, ...NOTHING_CHOSEN, problems: new Map()};
  readonly #reports = new Map<string, Diagnosis>();
  #asked = 0;
  /** Number of times that a run was chosen: what was requested before the last choice has nothing to say any more. */
  #choices = 0;
  /** The step that was chosen with the run, until that run's steps are known. */
  #wanted: number | undefined;
  /** Whether nobody has chosen a step of the run: then the first report decides which one is shown. */
  #free = true;
  /** Whether the states of all runs are being requested. */
  #judging = false;

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

  /** Whether the statistics, or the report, on display are those of the step before. */
  get late(): {readonly numbers: boolean; readonly report: boolean} {
    const {at, numbers, numbersAt, diagnosis} = this.#state;
    return {numbers: numbers !== null && numbersAt !== at, report: diagnosis !== null && diagnosis.step !== this.step};
  }

  /**
   * Loads the runs and shows one: the preferred run if it exists, otherwise the one that needs attention, or the
   * newest. A preferred run that does not exist is shown as soon as it does, unless the reader chooses another first.
   */
  async start(run?: string, step?: number): Promise<void> {
    const choices = this.#choices;
    await this.#loadRuns();
    if (choices === this.#choices) {
      await this.open(run, step);
    }
  }

  /** The same for runs that are loaded. */
  async open(run?: string, step?: number): Promise<void> {
    const runs = this.#state.runs ?? [];
    const isThere = runs.some((entry) => entry.run === run);
    const shown = isThere ? run : (this.#state.run ?? runToOpen(runs)?.run);
    const missing = isThere || run === undefined ? null : {run, step};
    if (shown === undefined || shown === this.#state.run) {
      this.#set({missing});
    } else {
      await this.#show(shown, missing === null ? step : undefined, missing);
      void this.#loadStandings();
    }
  }

  async chooseRun(run: string, step?: number): Promise<void> {
    await this.#show(run, step, null);
  }

  async #show(run: string, step: number | undefined, missing: State["missing"]): Promise<void> {
    this.#choices += 1;
    this.#wanted = step;
    this.#free = step === undefined;
    this.#set({run, ...NOTHING_CHOSEN, missing, problems: new Map()});
    await this.#loadOverview(run);
  }

  chooseTarget(target: number): void {
    if (target !== this.#state.target) {
      this.#set({target});
    }
  }

  /** Shows the step at an index among the recorded ones. */
  async chooseStep(at: number): Promise<void> {
    const {overview} = this.#state;
    if (overview === null || at < 0 || at >= overview.steps.length) {
      return;
    }
    this.#free &&= this.#state.at < 0;
    this.#set({at});
    const first = this.#state.numbers === null;
    const numbers = this.#loadNumbers(overview, at);
    const report = this.#loadReport(overview, at, first ? numbers : null);
    await numbers;
    const patience = isLarge(this.#state.trace) ? 0 : PATIENCE;
    const waited = setTimeout(() => this.#isChosen(overview, at) && this.#set({impatient: true}), patience);
    await report;
    clearTimeout(waited);
    if (first) {
      await this.#loadOtherSteps(overview, at);
    }
  }

  /** Looks for new runs and steps, and retries what failed. A reader at the last step follows. */
  async refresh(): Promise<void> {
    await this.#loadRuns();
    const {missing, runs} = this.#state;
    if (this.#state.run === null) {
      await this.start(missing?.run, missing?.step);
      return;
    }
    if (missing !== null && (runs ?? []).some((entry) => entry.run === missing.run)) {
      await this.open(missing.run, missing.step);
      return;
    }
    await this.#loadOverview(this.#state.run);
    void this.#loadStandings();
    const {problems, at} = this.#state;
    if (problems.has("numbers") || problems.has("report")) {
      await this.chooseStep(at);
    }
  }

  async #loadRuns(): Promise<void> {
    await this.#attempt("runs", async () => {
      const runs = await this.source.runs();
      return () => this.#set({runs});
    });
  }

  async #loadOverview(run: string): Promise<void> {
    const choices = this.#choices;
    let next: number | null = null;
    await this.#attempt("overview", async () => {
      const overview = await this.source.overview(run);
      return () => {
        const before = this.#state.overview;
        if (before !== null && before.session.id !== overview.session.id) {
          this.#set(NOTHING_CHOSEN);
        }
        next = nextPosition(this.#state, overview, this.#wanted);
        this.#wanted = undefined;
        this.#set({overview});
      };
    });
    const {overview, trace} = this.#state;
    if (choices !== this.#choices || overview === null) {
      return;
    }
    if (next !== null) {
      await this.chooseStep(next);
    } else if (overview.steps.length === 0 && trace === null) {
      await this.#loadStructure(overview);
    }
    if (overview.steps.length > 0) {
      void this.#loadCourse(overview);
    }
  }

  /** For a run whose first step was not completed, or not yet. */
  async #loadStructure(overview: Overview): Promise<void> {
    const last = overview.traces.at(-1);
    if (last === undefined) {
      return;
    }
    await this.#attempt("numbers", async () => {
      const trace = await this.source.trace(overview.run, overview.session.id, last);
      return () => this.#isChosen(overview, -1) && this.#set({trace, target: targetIn(this.#state.target, trace)});
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
    // The first picture waits only for its own step: all steps of a chunk may be thirty times as much data.
    const [part, position, steps] = this.#state.numbers === null ? [chunk.steps.indexOf(step), 0, 1] : [undefined, chunk.steps.indexOf(step), chunk.steps.length];
    await this.#attempt("numbers", async () => {
      const [trace, gradients, variables] = await Promise.all([
        this.source.trace(run, session.id, chunk.trace).then((trace) => this.#announce(trace, overview, at)),
        this.source.gradients(run, session.id, chunk.id, part),
        this.source.variables(run, session.id, chunk.id, part),
      ]);
      return () => {
        if (!this.#isChosen(overview, at)) {
          return;
        }
        const numbers = new StepNumbers(gradients, variables, position, steps);
        this.#set({trace, coming: null, target: targetIn(this.#state.target, trace), numbers, numbersAt: at, scale: scaleWith(this.#state.scale, gradients)});
      };
    });
  }

  /** The steps around the first shown one: the slider will need them, and the colour scale is common to all. */
  async #loadOtherSteps(overview: Overview, at: number): Promise<void> {
    const chunk = overview.chunks.find((each) => each.steps.includes(overview.steps[at]));
    const {run, session} = overview;
    if (chunk === undefined || this.#state.numbers === null || !this.#isChosen(overview, at)) {
      return;
    }
    await this.#attempt("other steps", async () => {
      const [gradients] = await Promise.all([this.source.gradients(run, session.id, chunk.id), this.source.variables(run, session.id, chunk.id)]);
      return () => this.#isShown(overview) && this.#set({scale: scaleWith(this.#state.scale, gradients)});
    });
  }

  #announce(trace: Trace, overview: Overview, at: number): Trace {
    if (this.#state.trace === null && this.#isChosen(overview, at)) {
      this.#set({coming: trace});
    }
    return trace;
  }

  /** `numbers`: the statistics of a first picture, on their way; null if there is a picture. */
  async #loadReport(overview: Overview, at: number, numbers: Promise<void> | null): Promise<void> {
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
      if (numbers !== null) {
        await this.#untilServed(overview, at, numbers);
      }
      const diagnosis = await this.source.report(overview.run, step);
      return () => {
        this.#reports.set(key, diagnosis);
        if (this.#reports.size > MOST_REPORTS) {
          this.#reports.delete(this.#reports.keys().next().value as string);
        }
        if (!this.#isChosen(overview, at)) {
          return;
        }
        const began = this.#free ? overview.steps.indexOf(beganIn(diagnosis)) : -1;
        this.#free = false;
        if (began >= 0) {
          void this.chooseStep(began);
        } else {
          this.#set({diagnosis});
        }
      };
    });
  }

  /**
   * The server analyses a large model for seconds, and answers everything else slowly in the meantime: so that comes
   * first. The last step of a run whose health is known was analysed already.
   */
  async #untilServed({run, session, step_trace}: Overview, at: number, numbers: Promise<void>): Promise<void> {
    const isAnalysed = at === step_trace.length - 1 && (this.#state.runs ?? []).some((entry) => entry.run === run && entry.health !== null);
    if (!isAnalysed && isLarge(await this.source.trace(run, session.id, step_trace[at]).catch(() => null))) {
      await numbers;
    }
  }

  /** Requests repeatedly while more can be known and the same run is chosen. Failures are not reported. */
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

  /** Requests the state of all runs until it is complete, after the picture of the open run. */
  async #loadStandings(): Promise<void> {
    if (this.#judging || (this.#state.runs?.length ?? 0) < 2) {
      return;
    }
    this.#judging = true;
    for (let complete = false; !complete; ) {
      const standings = await this.source.standings().catch(() => null);
      complete = standings?.complete ?? true;
      if (standings !== null) {
        this.#set({standings});
      }
      await new Promise((resolve) => setTimeout(resolve, complete ? 0 : BETWEEN_LOOKS));
    }
    this.#judging = false;
  }

  /** Waits a while; returns false if another request was made in the meantime. */
  async #rests(): Promise<boolean> {
    this.#asked += 1;
    const asked = this.#asked;
    await new Promise((resolve) => setTimeout(resolve, REST));
    return asked === this.#asked;
  }

  #isChosen(overview: Overview, at: number): boolean {
    return this.#isShown(overview) && this.step === (overview.steps[at] ?? -1);
  }

  #isShown({run, session}: Overview): boolean {
    return this.#state.run === run && this.#state.overview?.session.id === session.id;
  }

  /**
   * Runs `load`, then what it returns; a failure of either is reported under `name`, and a success removes that. If a
   * run was chosen in the meantime, nothing is done: the answer is about another.
   */
  async #attempt(name: string, load: () => Promise<() => unknown>): Promise<void> {
    const choices = this.#choices;
    const isLate = (): boolean => name !== "runs" && choices !== this.#choices;
    try {
      const apply = await load();
      if (isLate()) {
        return;
      }
      if (this.#state.problems.has(name)) {
        const problems = new Map(this.#state.problems);
        problems.delete(name);
        this.#set({problems});
      }
      apply();
    } catch (error) {
      if (isLate()) {
        return;
      }
      // Not a copy from before: failures in the meantime must be reported as well.
      const problems = new Map(this.#state.problems);
      problems.set(name, error instanceof Error ? error.message : String(error));
      this.#set({problems});
    }
  }

  #set(change: Partial<State>): void {
    this.#state = {...this.#state, ...change};
    this.dispatchEvent(new Event("change"));
  }
}
