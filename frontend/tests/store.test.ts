import {afterEach, describe, expect, test, vi} from "vitest";
import type {Course, Overview, RunEntry, Standings} from "../src/api/routes.ts";
import type {Source} from "../src/api/source.ts";
import {Store} from "../src/state/store.ts";
import type {Diagnosis, Trace} from "../src/record.ts";
import {answered, diagnosis, finding, trace} from "./build.ts";

const TRACE = answered(trace([{name: "a"}, {name: "b", from: ["a"]}]), {a: "value", b: "value"});

/** A log in memory: two rows, chunks of two steps; the norm of a row is its step. It may grow, and fail. */
class Log implements Source {
  scalars = () => Promise.resolve(new Map<string, string[]>());
  readonly isLive = true;
  readonly note = "";

  pageOf(): null {
    return null;
  }

  fileOf(): null {
    return null;
  }

  divergence(): null {
    return null;
  }

  steps = [0, 5, 10];
  session = "1";
  /** The step in which the finding of the last one began. */
  began: number | null = null;
  more: readonly string[] = [];
  failing = new Set<string>();
  asked: string[] = [];

  async runs(): Promise<readonly RunEntry[]> {
    this.#ask("runs");
    return [
      {run: "bad", name: "bad", error: "The log has format 99.", began: 9, health: "unknown"},
      {run: "good", name: "good", error: null, began: 2, health: "healthy"},
      {run: "other", name: "other", error: null, began: 1, health: "healthy"},
      ...this.more.map((run) => ({run, name: run, error: null, began: 3, health: "healthy" as const})),
    ];
  }

  async standings(): Promise<Standings> {
    this.#ask("standings");
    return {runs: [], shared: [], hyperparameters: [], complete: true};
  }

  async overview(run: string): Promise<Overview> {
    this.#ask("overview");
    const chunks = [];
    for (let at = 0; at < this.steps.length; at += 2) {
      chunks.push({id: this.steps[at], trace: 0, steps: this.steps.slice(at, at + 2)});
    }
    const session = {format: 1, id: this.session, tool: "", tensorflow: "", keras: "", model: "", expected: [], seed: null};
    return {
      format: 1,
      run,
      name: run,
      session,
      earlier_sessions: 0,
      cost: null,
      traces: [0],
      chunks,
      steps: this.steps,
      step_trace: this.steps.map(() => 0),
      wall_times: this.steps,
      losses: this.steps.map(() => [1]),
    };
  }

  async trace(): Promise<Trace> {
    this.#ask("trace");
    return TRACE;
  }

  async report(_: string, step: number): Promise<Diagnosis> {
    this.#ask(`report ${step}`);
    const findings = this.began === null || step <= this.began ? [] : [{...finding(TRACE, "error", ["v"], "a"), began: this.began}];
    return {...diagnosis(TRACE, {}, findings), step};
  }

  async gradients(_: string, __: string, chunk: number, only?: number): Promise<Float32Array> {
    this.#ask(only === undefined ? `gradients ${chunk}` : `gradients ${chunk} at ${only}`);
    const at = this.steps.indexOf(chunk);
    const steps = this.steps.slice(at, at + 2);
    return Float32Array.from((only === undefined ? steps : [steps[only]]).flatMap((step) => [step, 0, 0, 0, 0, 0, step, 0, 0, 0, 0, 0]));
  }

  async variables(): Promise<Float32Array> {
    return new Float32Array(0);
  }

  async series(): Promise<Float32Array> {
    return new Float32Array(0);
  }

  async weights(): Promise<Float32Array> {
    return new Float32Array(0);
  }

  async heat(): Promise<Float32Array> {
    return new Float32Array(0);
  }

  async terms(): Promise<Float32Array> {
    this.#ask("terms");
    return new Float32Array();
  }

  async course(): Promise<Course> {
    return {format: 1, steps: [], findings: [], present: [], complete: true, damage: ""};
  }

  #ask(what: string): void {
    this.asked.push(what);
    if (this.failing.has(what)) {
      throw new Error(`no ${what} today`);
    }
  }
}

describe("the store", () => {
  test("shows the last step of the first run that can be read", async () => {
    const store = new Store(new Log());

    await store.start();

    expect(store.state.run).toBe("good");
    expect(store.step).toBe(10);
    expect(store.state.numbers?.magnitude(0).norm).toBe(10);
    expect(store.state.diagnosis?.step).toBe(10);
  });

  test("begins where the address says", async () => {
    const store = new Store(new Log());

    await store.start("other", 5);

    expect([store.state.run, store.step]).toEqual(["other", 5]);
    expect(store.state.numbers?.magnitude(1).norm).toBe(5);
  });

  test("begins at the closest step, if the one of the address is not recorded", async () => {
    const store = new Store(new Log());

    await store.start("other", 6);

    expect([store.state.run, store.step]).toEqual(["other", 5]);
  });

  test("begins where the worst of the last step began, unless the address names a step", async () => {
    const [log, free, bound] = [new Log(), new Store(new Log()), new Store(new Log())];
    log.began = 5;
    [free, bound].forEach(({source}) => ((source as Log).began = log.began));

    await free.start("good");
    await bound.start("good", 10);

    await vi.waitFor(() => expect(free.state.diagnosis?.step).toBe(5));
    expect(free.state.numbers?.magnitude(0).norm).toBe(5);
    expect(bound.step).toBe(10);
    expect(bound.state.diagnosis?.findings).toHaveLength(1);
  });

  test("says which run of the address does not exist, and opens it as soon as it does", async () => {
    const log = new Log();
    const store = new Store(log);

    await store.start("late", 5);
    expect([store.state.run, store.step, store.state.missing?.run]).toEqual(["good", 10, "late"]);

    log.more = ["late"];
    await store.refresh();
    expect([store.state.run, store.step, store.state.missing]).toEqual(["late", 5, null]);
  });

  test("leaves a reader who has chosen another run in the meantime", async () => {
    const log = new Log();
    const store = new Store(log);
    await store.start("late");
    await store.chooseRun("other");

    log.more = ["late"];
    await store.refresh();

    expect([store.state.run, store.state.missing]).toEqual(["other", null]);
  });

  test("follows a training that goes on, if it showed the last step", async () => {
    const log = new Log();
    const store = new Store(log);
    await store.start();

    log.steps = [0, 5, 10, 15];
    await store.refresh();

    expect(store.step).toBe(15);
    expect(store.state.numbers?.magnitude(0).norm).toBe(15);
  });

  test("stays at the step that somebody looks at", async () => {
    const log = new Log();
    const store = new Store(log);
    await store.start();
    await store.chooseStep(1);

    log.steps = [0, 5, 10, 15];
    await store.refresh();

    expect(store.step).toBe(5);
    expect(store.state.overview?.steps).toHaveLength(4);
  });

  test("begins anew when the run is recorded anew", async () => {
    const log = new Log();
    const store = new Store(log);
    await store.start("good", 5);

    log.session = "2";
    log.steps = [0, 1];
    await store.refresh();

    expect(store.step).toBe(1);
  });

  test("a failure is told in its words, takes nothing away, and goes when it is over", async () => {
    const log = new Log();
    const store = new Store(log);
    await store.start();

    log.failing = new Set(["runs", "overview"]);
    await store.refresh();
    expect([...store.state.problems.values()]).toEqual(["no runs today", "no overview today"]);
    expect(store.state.numbers).not.toBeNull();

    log.failing.clear();
    await store.refresh();
    expect(store.state.problems.size).toBe(0);
  });

  test("a report that fails leaves the numbers", async () => {
    const log = new Log();
    log.failing.add("report 10");
    const store = new Store(log);

    await store.start();

    expect(store.state.problems.get("report")).toBe("no report 10 today");
    expect(store.state.trace).toBe(TRACE);
    expect(store.state.numbers).not.toBeNull();
  });

  test.each(["trace", "report 10", "gradients 10 at 0"])("what failed at first is asked for again at the next look (%s)", async (what) => {
    const log = new Log();
    log.failing.add(what);
    const store = new Store(log);
    await store.start();
    expect(store.state.problems.size).toBe(1);

    log.failing.clear();
    await store.refresh();

    expect(store.state.problems.size).toBe(0);
    expect(store.state.trace).toBe(TRACE);
    expect(store.state.numbers).not.toBeNull();
    expect(store.state.diagnosis?.step).toBe(10);
  });

  test("the first picture waits for the numbers of its own step alone, and the others come after it", async () => {
    const log = new Log();
    const store = new Store(log);

    await store.start("good", 5);

    const asked = log.asked.filter((what) => /gradients|report/.test(what));
    expect(asked).toEqual(["gradients 0 at 1", "report 5", "gradients 0"]);
    expect(store.state.numbers?.magnitude(0).norm).toBe(5);
    await store.chooseStep(0);
    expect(store.state.numbers?.magnitude(0).norm).toBe(0);
  });

  test.each([
    ["of a large model the report is asked for when the numbers are here", null, false],
    ["of a large model that was analysed already it is asked for at once", "healthy" as const, true],
  ])("%s", async (_, health, atOnce) => {
    const large = trace(Array.from({length: 5001}, (_, at) => ({name: `op${at}`})));
    let give = (_: Float32Array): void => undefined;
    class Slow extends Log {
      override async runs(): Promise<readonly RunEntry[]> {
        return (await super.runs()).map((entry) => ({...entry, health}));
      }

      override async trace(): Promise<Trace> {
        return large;
      }

      override gradients(): Promise<Float32Array> {
        return new Promise((resolve) => (give = resolve));
      }
    }
    const [log, soon] = [new Slow(), () => new Promise((resolve) => setTimeout(resolve, 20))];
    const store = new Store(log);

    void store.start();
    await soon();
    expect(log.asked.includes("report 10")).toBe(atOnce);
    give(new Float32Array(12));
    await soon();

    expect(log.asked).toContain("report 10");
    expect(store.state.diagnosis?.step).toBe(10);
  });

  test("while the slider moves, only where it rests is a report asked for", async () => {
    const log = new Log();
    const store = new Store(log);
    await store.start();
    log.asked = [];

    await Promise.all([store.chooseStep(1), store.chooseStep(0)]);

    expect(log.asked.filter((what) => what.startsWith("report"))).toEqual(["report 0"]);
    expect(store.state.diagnosis?.step).toBe(0);
  });

  test("what is shown of the step before is said to be late, until the answers arrive", async () => {
    const store = new Store(new Log());
    await store.start();

    const chosen = store.chooseStep(0);
    expect(store.late).toEqual({numbers: true, report: true});
    await chosen;

    expect(store.late).toEqual({numbers: false, report: false});
  });

  test("a run without a step yet shows its structure", async () => {
    const log = new Log();
    log.steps = [];
    const store = new Store(log);

    await store.start();

    expect(store.step).toBe(-1);
    expect(store.state.trace).toBe(TRACE);
    expect(store.state.diagnosis?.step).toBe(-1);
  });
});

/** Answers when it is told to, in any order. */
class Slow extends Log {
  readonly #waiting: (() => void)[] = [];

  override runs = () => this.#later(() => super.runs());
  override standings = () => this.#later(() => super.standings());
  override overview = (run: string) => this.#later(async () => (run === "bad" ? this.#refuse() : super.overview(run)));
  override trace = () => this.#later(() => super.trace());
  override report = (run: string, step: number) => this.#later(async () => ({...(await super.report(run, step)), summary: run}));
  override gradients = (run: string, id: string, chunk: number, only?: number) => this.#later(() => super.gradients(run, id, chunk, only));
  override course = () => this.#later(() => super.course());

  /** Gives one of the answers, if any is due. */
  answer(random: () => number): boolean {
    const [given] = this.#waiting.splice(Math.floor(random() * this.#waiting.length), 1);
    given?.();
    return given !== undefined;
  }

  #later<T>(answered: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => this.#waiting.push(() => void answered().then(resolve, reject)));
  }

  #refuse(): never {
    throw new Error("damaged");
  }
}

/** A sequence that depends on the seed alone (mulberry32). */
function sequence(seed: number): () => number {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

describe("answers that arrive late, in any order", () => {
  afterEach(() => void vi.useRealTimers());

  test.each(Array.from({length: 300}, (_, seed) => seed))("what was chosen last is shown, and nothing of another run (%s)", async (seed) => {
    vi.useFakeTimers();
    const random = sequence(seed);
    const [log, failures] = [new Slow(), [] as unknown[]];
    const store = new Store(log);
    const acted = (action: Promise<void>): void => void action.catch((error: unknown) => failures.push(error));
    acted(store.start());
    for (let turn = 0; turn < 40; turn += 1) {
      const drawn = random();
      if (drawn < 0.1) {
        acted(store.chooseRun(["good", "other", "bad"][Math.floor(random() * 3)]));
      } else if (drawn < 0.2) {
        acted(store.chooseStep(Math.floor(random() * 3)));
      } else if (drawn < 0.25) {
        acted(store.refresh());
      } else {
        log.answer(random);
      }
      await vi.advanceTimersByTimeAsync(Math.floor(random() * 200));
    }
    const run = ["good", "other", "bad"][seed % 3];
    acted(store.chooseRun(run, 5));
    for (let quiet = 0; quiet < 20; ) {
      quiet = log.answer(random) ? 0 : quiet + 1;
      await vi.advanceTimersByTimeAsync(100);
    }

    expect(failures).toEqual([]);
    expect(store.state.run).toBe(run);
    expect([...store.state.problems.values()]).toEqual(run === "bad" ? ["damaged"] : []);
    const {overview, numbers, diagnosis} = store.state;
    const shown = [overview?.run, store.step, numbers?.magnitude(0).norm, diagnosis?.step];
    expect(shown).toEqual(run === "bad" ? [undefined, -1, undefined, undefined] : [run, 5, 5, 5]);
    expect(store.late).toEqual({numbers: false, report: false});
    expect(store.state.course?.complete).toBe(run === "bad" ? undefined : true);
  });
});
