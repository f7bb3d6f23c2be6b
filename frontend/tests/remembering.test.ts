import {expect, test} from "vitest";
import {remembering, steady} from "../src/state/remembering.ts";

test("an answer is computed again when one of its arguments is another", () => {
  let count = 0;
  const sum = remembering((one: number, other: number) => {
    count += 1;
    return one + other;
  });

  expect([sum(1, 2), sum(1, 2), sum(1, 3), sum(1, 2)]).toEqual([3, 3, 4, 3]);
  expect(count).toBe(3);
});

test("arguments are told apart by identity, as what is made anew", () => {
  const same = remembering((list: readonly number[]) => [...list]);
  const list = [1];

  expect(same(list)).toBe(same(list));
  expect(same(list)).not.toBe(same([1]));
});

test("an answer that is nothing is remembered, too", () => {
  let count = 0;
  const nothing = remembering((_: number): null => {
    count += 1;
    return null;
  });

  expect([nothing(1), nothing(1)]).toEqual([null, null]);
  expect(count).toBe(1);
});

test("a value that says the same as the one before is not taken for another", () => {
  const first = {step: 1, said: "a"};
  const second = {step: 2, said: "a"};
  const third = {step: 3, said: "b"};
  const steadied = steady((value: {said: string}) => value.said);

  expect([steadied(first), steadied(second), steadied(third), steadied(second)]).toEqual([first, first, third, second]);
});
