"""The time from opening the tab until the graph is drawn.

    tb-gradflow demo resnet50 --no-serve
    python benchmarks/first_picture.py [logs/demo/resnet50/broken] [--steps 1000] [--repeats 5]

Uses a real TensorBoard and a real Chromium. Prints two times, medians over fresh windows: from opening the tab (when
TensorBoard creates its frame) and from opening TensorBoard's address, both until the first frame with the graph on its
canvas. `--steps` first lengthens the log to that many recorded steps, by repeating them.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, Frame, Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.lengthened import repeated
from tb_gradflow.store.directory import find_runs
from tests.serve.processes import TensorBoard, tensorboard

# Runs in every frame; in ours it notes when the list that mirrors the drawn graph has entries, one frame later.
STOPWATCH = """
if (location.href.includes("plugin_entry.html")) {
  const isDrawn = (root) =>
    root.querySelector("[data-mirror] li") !== null ||
    [...root.querySelectorAll("*")].some((element) => element.shadowRoot !== null && isDrawn(element.shadowRoot));
  const look = () => {
    if (isDrawn(document)) {
      requestAnimationFrame(() => { window.firstPicture = performance.now(); });
    } else {
      requestAnimationFrame(look);
    }
  };
  look();
}
"""

SECONDS_AT_MOST = 60


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="?", default="logs/demo/resnet50/broken", help="directory of one recorded run")
    parser.add_argument("--steps", type=int, help="lengthen the log to this many recorded steps")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--chromium", default=shutil.which("chromium") or shutil.which("google-chrome"))
    options = parser.parse_args()
    [source] = find_runs(options.run).values()
    with tempfile.TemporaryDirectory() as logdir, sync_playwright() as playwright:
        steps = repeated(source, f"{logdir}/run", options.steps)
        browser = playwright.chromium.launch(executable_path=options.chromium, args=["--no-sandbox"])
        for loader in ("true", "false"):
            with tensorboard(f"--logdir={logdir}", f"--load_fast={loader}") as board:
                wait_until_loaded(board, steps)
                times = [measure(browser, board) for _ in range(options.repeats)]
            tab, address = (statistics.median(column) for column in zip(*times, strict=True))
            print(
                f"--load_fast={loader:<5}  {steps} steps: {tab:.0f} ms from the tab, {address:.0f} ms from the address"
            )
        browser.close()


def wait_until_loaded(board: TensorBoard, steps: int) -> None:
    [entry] = board.wait_for_runs(1)
    while len(board.ask("overview", run=entry["run"]).json["steps"]) < steps:
        time.sleep(0.2)


def measure(browser: Browser, board: TensorBoard) -> tuple[float, float]:
    """Milliseconds to the first picture, since the tab was opened and since the address was."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.add_init_script(STOPWATCH)
    page.goto(f"{board.url}#gradflow")
    frame = frame_of_tab(page)
    # Playwright's own waiting evaluates strings, which TensorBoard's content security policy forbids in the frame.
    deadline = time.monotonic() + SECONDS_AT_MOST
    while (tab := frame.evaluate("window.firstPicture")) is None:
        assert time.monotonic() < deadline, f"no graph was drawn within {SECONDS_AT_MOST} s"
        page.wait_for_timeout(50)
    began = frame.evaluate("performance.timeOrigin")
    address = began + tab - page.evaluate("performance.timeOrigin")
    page.close()
    return tab, address


def frame_of_tab(page: Page) -> Frame:
    """Once it has begun to load: TensorBoard makes it before."""
    deadline = time.monotonic() + SECONDS_AT_MOST
    while time.monotonic() < deadline:
        for frame in page.frames:
            if "plugin_entry.html" in frame.url:
                return frame
        page.wait_for_timeout(10)
    raise AssertionError(f"the tab did not open within {SECONDS_AT_MOST} s")


if __name__ == "__main__":
    main()
