import {describe, expect, test} from "vitest";
import {EmbeddedSource, type Embedded, type EmbeddedRun} from "../src/api/embedded.ts";
import {gradientNorms, NO_GRADIENT, NOT_RECORDED, valuesOf} from "../src/api/heat.ts";
import {unpackNumbers, type PackedNumbers} from "../src/api/packed.ts";
import {FORMAT} from "../src/record.ts";
import {answered, diagnosis, read, trace} from "./build.ts";

const STEP = trace([read("a/read", "a"), read("b/read", "b"), {name: "loss", from: ["a/read", "b/read"]}]);
const TRACE = answered(STEP, {a: "value", b: "value"});

async function packed(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream("gzip"));
  return btoa(String.fromCharCode(...new Uint8Array(await new Response(stream).arrayBuffer())));
}

const packedJson = (value: unknown): Promise<string> => packed(new TextEncoder().encode(JSON.stringify(value)));

/** `values[step][row][statistic]`, as `tb_gradflow/serve/reports/excerpt.py` packs them, byte by byte. */
async function packedNumbers(values: readonly (readonly (readonly number[])[])[]): Promise<PackedNumbers> {
  const [steps, rows, statistics] = [values.length, values[0].length, values[0][0].length];
  const planes: number[][] = [[], [], [], []];
  for (let statistic = 0; statistic < statistics; statistic += 1) {
    for (let row = 0; row < rows; row += 1) {
      for (let step = 0; step < steps; step += 1) {
        const view = new DataView(new ArrayBuffer(4));
        view.setFloat32(0, values[step][row][statistic]);
        planes.forEach((plane, byte) => plane.push(view.getUint8(byte)));
      }
    }
  }
  return {shape: [steps, rows, statistics], data: await packed(Uint8Array.from(planes.flat()))};
}

const row = (norm: number): readonly number[] => [norm, 0, 0, 0, 0, 0];

async function embedded(kept: number, recorded: number): Promise<Embedded> {
  const {variables, findings, ...rest} = diagnosis(TRACE, {});
  const report = {...rest, step: 3, variables: variables.map((_, at) => at), findings: []};
  const session = {format: 1, id: "1", tool: "", tensorflow: "", keras: "", model: "", expected: []};
  const run: EmbeddedRun = {
    recorded,
    kept,
    looked_at: recorded,
    standing: {run: "r", name: "mine", health: "healthy", summary: "", cause: "", place: "", first: null, step: 7, steps: 2, loss: 1, recorded: 1, hyperparameters: {}},
    overview: {format: FORMAT, run: "r", name: "mine", session, earlier_sessions: 0, cost: null, traces: [0], chunks: [{id: 3, trace: 0, steps: [3, 7]}], steps: [3, 7], step_trace: [0, 0], wall_times: [0, 1], losses: [[1], [1]]},
    course: {format: FORMAT, steps: [3], findings: [], present: [[]], complete: true, damage: ""},
    traces: {0: await packedJson(TRACE)},
    reports: await packedJson({variables, findings, reports: [report, {...report, step: 7}]}),
    gradients: {3: await packedNumbers([[row(1), row(2)], [row(3), row(Infinity)]])},
    variables: {3: await packedNumbers([[[4, 2, 0, 0], [0, 1, 0, 0]], [[8, 2, 0, 1], [5, 0, 0, 0]]])},
  };
  return {format: FORMAT, version: "1.2.3", start: {run: "r", step: null}, runs: {r: run}};
}

describe("numbers in a page of their own", () => {
  test("come back in their order, whatever they are", async () => {
    const values = [[[1.5, -0], [1e-40, Infinity]], [[3, 4], [5, 6]], [[7, 8], [9, 10]]];

    const back = await unpackNumbers(await packedNumbers(values));

    expect([...back]).toEqual([...Float32Array.from(values.flat(2))]);
  });

  test("of one row over all steps", async () => {
    const source = new EmbeddedSource(await embedded(2, 2));

    const series = await source.series("r", 1);

    expect([series[0], series[6]]).toEqual([2, Infinity]);
    expect([...(await source.weights("r", 9))].every(Number.isNaN)).toBe(true);
  });

  test("make the same heat map as the server's", async () => {
    const source = new EmbeddedSource(await embedded(2, 2));

    expect([...(await source.heat("r", 0, 0, "weight"))]).toEqual([4, 0, NaN, 5]);
    expect([...(await source.heat("r", 0, 0, "ratio"))]).toEqual([0.5, NOT_RECORDED, NaN, 0]);
  });
});

describe("a page of its own", () => {
  test("has the report of each of its steps, and of the last where none is named", async () => {
    const source = new EmbeddedSource(await embedded(2, 2));

    expect((await source.report("r", 3)).step).toBe(3);
    expect((await source.report("r", -1)).step).toBe(7);
    expect((await source.report("r", 7)).variables.map(({name}) => name)).toEqual(diagnosis(TRACE, {}).variables.map(({name}) => name));
    await expect(source.report("r", 4)).rejects.toThrow("no report of step 4");
  });

  test("says who made it and which steps were left out", async () => {
    expect(new EmbeddedSource(await embedded(2, 2)).note).toBe("Made by tb-gradflow 1.2.3.");
    expect(new EmbeddedSource(await embedded(2, 900)).note).toContain("It contains 2 of 900 recorded steps of mine");
  });

  test("is refused by a viewer of another format", async () => {
    const data = {...(await embedded(2, 2)), format: FORMAT + 1};

    expect(() => new EmbeddedSource(data)).toThrow(`contains format ${FORMAT + 1}`);
  });
});

describe("a cell of the heat map", () => {
  test("tells absence and what is not finite apart", () => {
    const two = answered(STEP, {a: "none", b: "value"});
    const chunk = new Float32Array(12);
    chunk.set([1, 0, 0, 0, 1, 0], 6);

    expect([...gradientNorms(two, 0, chunk, 1)]).toEqual([NO_GRADIENT, NaN]);
    expect([...gradientNorms(two, 1, chunk, 1)]).toEqual([NOT_RECORDED, NOT_RECORDED]);
    expect([...valuesOf(Float32Array.from([2, 1, 0, 0]), "update")]).toEqual([1]);
  });
});
