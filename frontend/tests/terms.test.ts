/** Terms of a loss by layer. */

import {expect, test} from "vitest";
import {byLayer, losses, percent} from "../src/model/terms.ts";
import type {TermReport} from "../src/record.ts";

function term(name: string, norms: Readonly<Record<string, number>>, other: string, cosine: number, target = 0): TermReport {
  const variables = Object.entries(norms).map(([variable, norm]) => ({
    variable,
    norm,
    share: null,
    cosine: [{term: other, cosine}],
    broken: 0,
  }));
  return {name, source: null, value: 1, target, weight: 1, variables, kind: "term"};
}

test("a layer's share is that of the norms of all its variables", () => {
  const terms = [term("recon", {"a/kernel": 3, "a/bias": 4, "b/kernel": 1}, "kl", -1), term("kl", {"a/kernel": 15}, "recon", -1)];

  const [first, second] = byLayer(terms);

  expect(first?.shares).toEqual([0.25, 0.75]);
  expect(first?.conflict).toEqual({one: "recon", other: "kl", cosine: -1});
  expect(second?.shares).toEqual([1, null]);
  expect(second?.conflict).toEqual(null);
});

test("each loss has its own terms", () => {
  const terms = [term("real", {w: 1}, "fake", 1), term("fooling", {v: 1}, "", 1, 1), term("fake", {w: 1}, "real", 1)];

  expect(losses(terms).map((own) => own.map((each) => each.name))).toEqual([["real", "fake"], ["fooling"]]);
});

test("what is neither nothing nor all is not written so", () => {
  expect([0, 1e-9, 0.25, 1 - 1e-9, 1].map(percent)).toEqual(["0%", "<0.1%", "25%", ">99.9%", "100%"]);
});
