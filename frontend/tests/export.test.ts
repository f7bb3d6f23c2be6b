import {expect, test} from "vitest";
import {fileStem} from "../src/host/download.ts";
import {SvgBrush} from "../src/draw/svg.ts";
import {csvOf, tsvOf} from "../src/model/csv.ts";
import type {Row} from "../src/model/rows.ts";

function row(name: string): Row {
  return {variable: 0, name, status: "disconnected", explained: false, without: false, norm: null, maxAbs: 0.5, weight: 1e-9, update: 0, ratio: 0};
}

test("a table as CSV has a head, full numbers and empty cells where there is none", () => {
  expect(csvOf([row("dense/kernel")])).toBe(
    "variable,status,gradient_norm,max_abs,weight_norm,update_norm,update_ratio\r\ndense/kernel,disconnected,,0.5,1e-9,0,0\r\n",
  );
});

test.each([
  ['a "b", c', '"a ""b"", c"'],
  ["=1+1", "'=1+1"],
  ["a\nb", '"a\nb"'],
])("a variable called %j is %j in CSV", (name, cell) => {
  expect(csvOf([row(name)]).split("\r\n").slice(1).join("\r\n")).toBe(`${cell},disconnected,,0.5,1e-9,0,0\r\n`);
});

test("the clipboard's table keeps a name in its cell", () => {
  expect(tsvOf([row("a\tb")]).split("\n")[1]).toBe("a b\tdisconnected\t\t0.5\t1e-9\t0\t0");
});

test("what is painted is written down as SVG, text as text", () => {
  const brush = new SvgBrush(() => ({width: 10}) as TextMetrics);

  brush.globalAlpha = 0.5;
  brush.fillText('<img src="x">', 1, 2.345);
  brush.globalAlpha = 1;
  brush.setLineDash([7, 4]);
  brush.beginPath();
  brush.moveTo(0, 0);
  brush.lineTo(10, 20);
  brush.stroke();

  expect(brush.elements[0]).toContain('>&lt;img src=&quot;x&quot;&gt;</text>');
  expect(brush.elements[0]).toContain('opacity="0.5"');
  expect(brush.elements[0]).toContain('y="2.35"');
  expect(brush.elements[1]).toContain('d="M0 0L10 20"');
  expect(brush.elements[1]).toContain('stroke-dasharray="7 4"');
});

test("a file is named after its run and step", () => {
  expect(fileStem("demo/broken", 20)).toBe("demo-broken-step-20");
  expect(fileStem("../<x>", -1)).toBe("..-x");
});
