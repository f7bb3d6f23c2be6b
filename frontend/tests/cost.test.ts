import {expect, test} from "vitest";
import {costInWords, percent} from "../src/model/cost.ts";

test("shares are told with two digits where they are small", () => {
  expect([0.0083, 0.0123, 0.31, 0].map(percent)).toEqual(["0.83%", "1.2%", "31%", "0.0%"]);
});

test("what recording took is told with what it is a part of", () => {
  const words = costInWords({steps: 500, recorded: 12, seconds: 61.24, extra: 0.512, set_up: 9.8, share: 0.008});

  expect(words).toContain("Recording took 0.80% of the time: 12 of 500 executions");
  expect(words).toContain("512 ms of");
  expect(words).toContain("of 61.2 s;");
  expect(words).toContain("another 9.80 s");
});
