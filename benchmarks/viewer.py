"""How fast the page is with synthetic models of 1,800, 8,000 and 30,000 ops, a chain of 10,000, and recorded runs.

    python benchmarks/viewer.py [LOGDIR of recorded runs] [--repeats 5] [--switches 100]

Uses a real TensorBoard and a real, headless Chromium with software rendering. Prints medians, in milliseconds:

first picture   from the last response that it needs to the first frame with the graph on its canvas
open a group    from the click to the first frame that shows its content
open all        the same for all groups at once
a step          from moving the slider, with the statistics loaded, to the frame with the new colours
all open        a step again, when everything is open
work            CPU time of the main thread for such a step, including painting on the canvas
drawn           how many parts and edges are laid out when everything is open
"""

from __future__ import annotations

import argparse
import re
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, CDPSession, Frame, Page, Route, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.viewer_graphs import chain, transformer, write
from tests.serve.processes import TensorBoard, tensorboard

STEPS = 24
LONGEST_WAIT = 120_000
STEPS_TAKEN = 20
# Milliseconds after which the camera is where it flew to.
AFTER_FLIGHT = 1500

HEADINGS = "run                      first picture  open a group  open all  a step  all open  work  drawn"

# What the page offers to screen readers tells what is drawn; one frame later it is on the canvas.
TOOLS = """
window.__bench = {
  deep(root, selector) {
    const found = root.querySelector(selector);
    if (found !== null) return found;
    for (const each of root.querySelectorAll("*")) {
      const inner = each.shadowRoot === null ? null : this.deep(each.shadowRoot, selector);
      if (inner !== null) return inner;
    }
    return null;
  },
  frame: () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve))),
  graph() { return this.deep(document, "gf-graph"); },
  isDrawn() {
    const graph = this.graph();
    return graph !== null && graph.scene !== null && graph.condition !== null;
  },
  async until(condition) {
    while (!condition()) await this.frame();
    await this.frame();
    return performance.now();
  },
  async act(action, condition) {
    const begin = performance.now();
    action();
    return await this.until(condition) - begin;
  },
};
if (location.href.includes("plugin_entry.html")) {
  window.__bench.until(() => window.__bench.isDrawn()).then((now) => { window.firstPicture = now; });
}
"""

FIRST_PICTURE = """() => {
  const needed = /\\/(runs|overview|trace|report|gradients|variables)\\?/;
  const answers = performance.getEntriesByType("resource").filter(({name}) => needed.test(name));
  const ends = answers.filter(({responseEnd}) => responseEnd < window.firstPicture);
  return window.firstPicture - Math.max(...ends.map(({responseEnd}) => responseEnd));
}"""

OPEN_LARGEST = """async () => {
  const bench = window.__bench, graph = bench.graph(), {items} = graph.model.tree;
  const children = ({item}) => items[item].children.length;
  const groups = graph.scene.placed.filter((box) => !box.open && children(box) > 0);
  const closed = groups.sort((a, b) => children(b) - children(a));
  if (closed.length === 0) return null;
  const before = graph.scene;
  return bench.act(() => graph.toggle(closed[0].item), () => graph.scene !== before);
}"""

OPEN_ALL = """async () => {
  const bench = window.__bench, graph = bench.graph(), before = graph.scene;
  graph.closeAll(); await bench.until(() => true);
  const closed = graph.scene;
  const spent = await bench.act(() => graph.openAll(), () => graph.scene !== closed);
  return [spent, graph.scene.placed.length, graph.scene.routed.length];
}"""

STEP = """async () => {
  const bench = window.__bench, graph = bench.graph(), app = bench.deep(document, "gf-app"), store = app.store;
  const spent = [], recorded = store.state.overview.steps.length;
  for (let taken = 0; taken < 20; taken += 1) {
    const before = graph.condition;
    spent.push(await bench.act(() => void store.chooseStep(taken % recorded), () => graph.condition !== before));
  }
  return spent.sort((a, b) => a - b)[10];
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logdir", nargs="?", help="directory of recorded runs to measure as well")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--switches", type=int, default=100, help="how often to switch runs when looking for leaks")
    parser.add_argument("--chromium", default=shutil.which("chromium") or shutil.which("google-chrome"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made_up, sync_playwright() as playwright:
        for name, trace in (
            ("d-2k", transformer(1_800)),
            ("a-8k", transformer(8_000)),
            ("b-30k", transformer(30_000)),
            ("c-chain-10k", chain(10_000)),
        ):
            write(f"{made_up}/{name}", trace, STEPS)
        browser = playwright.chromium.launch(
            executable_path=options.chromium,
            args=["--no-sandbox", "--enable-precise-memory-info", "--js-flags=--expose-gc"],
        )
        print(HEADINGS)
        for logdir in filter(None, (made_up, options.logdir)):
            with tensorboard(f"--logdir={logdir}") as board:
                for entry in board.wait_for_runs(4 if logdir == made_up else 1):
                    measure(browser, board, entry, options.repeats)
                if logdir == made_up and options.switches > 0:
                    switch(browser, board, options.switches)
        browser.close()


def measure(browser: Browser, board: TensorBoard, entry: Any, repeats: int) -> None:
    rows = [look(browser, board, entry["run"]) for _ in range(repeats)]
    first, group, everything, step, open_step, work = (middle(each) for each in list(zip(*rows, strict=True))[:6])
    drawn = f"{rows[0][6]} parts, {rows[0][7]} edges"
    numbers = f"{first:>13}{group:>14}{everything:>10}{step:>8}{open_step:>10}{work:>6}"
    print(f"{entry['name']:<24}{numbers}  {drawn}", flush=True)


def middle(column: tuple[float | None, ...]) -> str:
    known = [value for value in column if value is not None]
    return f"{statistics.median(known):.0f}" if known else "-"


def look(browser: Browser, board: TensorBoard, run: str) -> tuple[Any, ...]:
    page, frame = opened(browser, f"{board.url}#gradflow&p.gradflow.run={run}&p.gradflow.tab=-")
    first = frame.evaluate(FIRST_PICTURE)
    group = frame.evaluate(OPEN_LARGEST)
    step = frame.evaluate(STEP)
    everything, parts, edges = frame.evaluate(OPEN_ALL)
    page.wait_for_timeout(AFTER_FLIGHT)
    session = page.context.new_cdp_session(page)
    # What other programs do on the machine is no work of the page.
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = busy(session)
    open_step = frame.evaluate(STEP)
    work = (busy(session) - before) / STEPS_TAKEN
    page.close()
    return first, group, everything, step, open_step, work, parts, edges


def busy(session: CDPSession) -> float:
    """Milliseconds of CPU time that the page's main thread has spent."""
    metrics = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    return 1000 * float(metrics["TaskDuration"])


def opened(browser: Browser, address: str) -> tuple[Page, Frame]:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.on("pageerror", lambda error: print(f"error in the page: {error}", file=sys.stderr))
    page.add_init_script(TOOLS)
    # How long the server takes to judge a model is not what is measured here.
    page.route(re.compile(r"/report\?run=[abcd]-"), healthy)
    page.goto(address)
    page.locator('iframe[src*="plugin_entry.html"]').wait_for()
    for _ in range(LONGEST_WAIT // 100):
        frames = [frame for frame in page.frames if "plugin_entry.html" in frame.url]
        if frames and frames[0].evaluate("window.firstPicture") is not None:
            return page, frames[0]
        page.wait_for_timeout(100)
    raise SystemExit(f"no graph was drawn within {LONGEST_WAIT} ms: {address}")


def healthy(route: Route) -> None:
    """Answers that nothing is wrong."""
    report = {"format": 1, "step": 0, "trace": 0, "summary": "", "variables": [], "findings": [], "unverified": []}
    route.fulfill(json=report)


def switch(browser: Browser, board: TensorBoard, times: int) -> None:
    """Prints what the page holds in memory after few and after many changes of the run."""
    runs = [entry["run"] for entry in board.ask("runs").json["runs"]]
    page, frame = opened(browser, f"{board.url}#gradflow&p.gradflow.run={runs[0]}")
    choose = """async (run) => {
      const bench = window.__bench, store = bench.deep(document, "gf-app").store;
      await store.chooseRun(run);
      await bench.until(() => bench.isDrawn());
    }"""
    held = []
    for number in range(1, times + 1):
        frame.evaluate(choose, runs[number % len(runs)])
        if number in (min(10, times), times):
            frame.evaluate("() => { gc(); gc(); }")
            held.append(frame.evaluate("performance.memory.usedJSHeapSize") / 2**20)
    print(f"memory after {min(10, times)} and after {times} changes of the run: {held[0]:.0f} and {held[-1]:.0f} MB")
    page.close()


if __name__ == "__main__":
    main()
