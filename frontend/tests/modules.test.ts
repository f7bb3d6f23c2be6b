import {expect, test} from "vitest";

const SOURCES = import.meta.glob<string>("../src/**/*.ts", {query: "?raw", import: "default", eager: true});

/** The modules that each one imports; those of which it takes types alone left out. */
function importsOf(path: string): string[] {
  const found = [...SOURCES[path].matchAll(/^(?:import|export)\s(?!type\b)[^;"]*?(?:from\s*)?"(\.[^"]+)"/gm)];
  return found.map(([, name]) => new URL(name, `file:///root/${path.replace("../", "")}`).pathname.replace("/root/", "../"));
}

/** The first circle that is met from a module; empty if there is none. */
function circleFrom(path: string, way: readonly string[], done: Set<string>): string[] {
  if (way.includes(path)) {
    return [...way.slice(way.indexOf(path)), path];
  }
  if (done.has(path)) {
    return [];
  }
  done.add(path);
  for (const next of importsOf(path)) {
    const circle = circleFrom(next, [...way, path], done);
    if (circle.length > 0) {
      return circle;
    }
  }
  return [];
}

test("no module imports itself by way of others", () => {
  const done = new Set<string>();

  expect(Object.keys(SOURCES).flatMap((path) => circleFrom(path, [], done))).toEqual([]);
});

test("the imports are found", () => {
  expect(importsOf("../src/layout/layered.ts")).toContain("../src/layout/columns.ts");
  expect(Object.keys(SOURCES).flatMap(importsOf).filter((path) => SOURCES[path] === undefined)).toEqual([]);
});
