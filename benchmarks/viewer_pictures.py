"""Takes pictures of every view of the page.

    tb-gradflow demo step_filter masked_lstm resnet50 --no-serve
    python benchmarks/viewer_pictures.py [logs/demo] [--to docs/pictures/views]

Uses a real TensorBoard and a real Chromium. Look at each picture before you commit it.
"""

from __future__ import annotations

import argparse
import io
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.serve.processes import TensorBoard, tensorboard

# Milliseconds until flights, late answers and fonts have come to rest.
REST = 2500


@dataclass(frozen=True)
class View:
    """One picture: what the address says, beside the run, and what is pressed."""

    name: str
    run: str
    place: str = ""
    keys: str = ""
    width: int = 1440
    height: int = 900
    dark: bool = False


VIEWS = (
    # The picture that the README begins with lies beside the others' directory.
    View("../tab", "resnet50/broken", "tab=-", keys="n", width=1280, height=760),
    View("graph_small", "step_filter/broken", "tab=-"),
    View("graph_zero", "masked_lstm/broken", "tab=-"),
    View("graph_resnet50", "resnet50/broken", "tab=-"),
    View("findings", "step_filter/broken", "tab=-", keys="n"),
    View("table", "resnet50/broken", "tab=variables"),
    View("heat_map", "resnet50/broken", "tab=heat"),
    View("series", "resnet50/broken", "tab=series", keys="n"),
    View("compare", "step_filter/fixed", "tab=changes&with=step_filter/broken"),
    View("dark", "step_filter/broken", "tab=variables", keys="n", dark=True),
    View("narrow_800", "resnet50/broken", "tab=-", width=800, height=700),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logdir", nargs="?", default="logs/demo")
    parser.add_argument("--only", nargs="*", help="names of the views to take")
    parser.add_argument("--to", type=Path, default=Path("docs/pictures/views"))
    parser.add_argument("--chromium", default=shutil.which("chromium") or shutil.which("google-chrome"))
    options = parser.parse_args()
    options.to.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright, tensorboard(f"--logdir={options.logdir}") as board:
        browser = playwright.chromium.launch(executable_path=options.chromium, args=["--no-sandbox"])
        runs = {entry["name"]: entry["run"] for entry in board.wait_for_runs(len({view.run for view in VIEWS}))}
        for view in VIEWS:
            if options.only and view.name not in options.only:
                continue
            path = options.to / f"{view.name}.png"
            path.write_bytes(squeezed(taken(browser, board, view, runs)))
            print(f"{path}  {path.stat().st_size // 1024} KB", flush=True)
        browser.close()


def taken(browser: Browser, board: TensorBoard, view: View, runs: dict[str, str]) -> bytes:
    """A picture of the whole page, PNG."""
    page = browser.new_page(
        viewport={"width": view.width, "height": view.height}, color_scheme="dark" if view.dark else "light"
    )
    place = "&".join(f"p.gradflow.{part}" for part in address(view, runs))
    page.goto(f"{board.url}#gradflow&{place}")
    frame = page.frame_locator('iframe[src*="plugin_entry.html?name=gradflow"]')
    expect(frame.locator("[data-mirror] li").first).to_be_attached(timeout=60_000)
    if view.keys:
        frame.locator("canvas.stage").focus()
        page.wait_for_timeout(500)
        page.keyboard.type(view.keys)
    rest(page)
    picture = page.screenshot()
    page.close()
    return picture


def address(view: View, runs: dict[str, str]) -> list[str]:
    """What is shown, with the runs by their keys."""
    parts = [f"run={runs[view.run]}", *filter(None, view.place.split("&"))]
    return [f"with={runs[part.removeprefix('with=')]}" if part.startswith("with=") else part for part in parts]


def rest(page: Page) -> None:
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(REST)


def squeezed(picture: bytes) -> bytes:
    """The same in fewer bytes; every colour is as it was."""
    out = io.BytesIO()
    Image.open(io.BytesIO(picture)).convert("RGB").save(out, "PNG", optimize=True)
    return out.getvalue()


if __name__ == "__main__":
    main()
