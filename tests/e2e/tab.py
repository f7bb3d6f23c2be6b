"""The tab "Gradient flow" as a person meets it: what it says, what it draws, what can be done in it."""

from __future__ import annotations

import base64
import io
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image
from playwright.sync_api import FrameLocator, Locator, Page, expect

from tb_gradflow.serve.routes import STATIC
from tests.serve.processes import TensorBoard

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"

THRESHOLD = "sensors/step_filter/threshold"
KERNEL = "sensors/hidden/kernel"
LESS = "sensors_1/step_filter_1/SequenceMask/Less"
"""Two variables and an op of the demonstration `step_filter`."""

Pixels = npt.NDArray[np.uint8]

RED = {"light": (0xD0, 0x1F, 0x3C), "dark": (0xFF, 0x65, 0x77)}
"""What is disconnected is drawn in."""


@dataclass(frozen=True, slots=True)
class Item:
    """A part of the graph that is drawn, as the list beside the canvas says it in words."""

    name: str
    kind: str
    state: str

    @property
    def is_lit(self) -> bool:
        return "on the highlighted path" in self.state


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table of variables, as it stands there."""

    name: str
    status: str
    gradient_norm: str
    weight_norm: str


class Tab:
    """The page of TensorBoard with our tab in front."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.frame: Page | FrameLocator = page.frame_locator('iframe[src*="plugin_entry.html?name=gradflow"]')

    @property
    def summary(self) -> Locator:
        return self.frame.locator("[role=status]")

    @property
    def findings(self) -> Locator:
        return self.frame.get_by_role("complementary", name="Findings").get_by_role("article")

    @property
    def runs(self) -> Locator:
        return self.frame.get_by_label("Run", exact=True)

    @property
    def slider(self) -> Locator:
        return self.frame.get_by_role("slider", name="Recorded step")

    @property
    def details(self) -> Locator:
        return self.frame.get_by_role("complementary", name="Details")

    def choose_run(self, name: str) -> None:
        self.runs.select_option(label=name)
        expect(self.slider).to_be_enabled()

    def show(self, finding: Locator) -> None:
        """Clicks a finding, and waits until its path is lit and the flight there is over."""
        finding.get_by_role("button", name="Show in the graph").click()
        expect(self.frame.locator('li[data-state*="on the highlighted path"]').first).to_be_attached()
        self.rest()

    def wait_for_numbers(self) -> None:
        """Until the numbers are those of the chosen step."""
        expect(self.frame.get_by_role("main")).to_have_attribute("aria-busy", "false")

    def rest(self) -> None:
        """Waits until the picture no longer moves."""
        before = b""
        while before != (before := self.picture().tobytes()):
            self.page.wait_for_timeout(150)

    def open_table(self) -> Locator:
        """The table of variables; the drawer is closed until somebody wants it."""
        handle = self.frame.get_by_role("tab", name="Variables")
        if handle.get_attribute("aria-selected") != "true":
            handle.click()
        table = self.frame.get_by_role("table", name="Variables")
        expect(table).to_be_visible()
        return table

    def rows(self) -> dict[str, Row]:
        self.open_table()
        rows = self.frame.get_by_role("table", name="Variables").get_by_role("row").all()
        cells = [row.get_by_role("cell").all_inner_texts() for row in rows]
        # A symbol stands before the word of the status.
        shown = [Row(name, status[1:], norm, weight) for name, status, norm, _, weight, *_ in filter(None, cells)]
        return {row.name: row for row in shown}

    def items(self) -> dict[str, Item]:
        found = self.frame.get_by_role("list", name="Visible parts of the graph").get_by_role("listitem")
        said = found.evaluate_all("all => all.map(e => [e.dataset.name, e.dataset.kind, e.dataset.state])")
        return {name: Item(name, kind, state) for name, kind, state in said}

    def disconnected(self) -> list[str]:
        """The disconnected edges that are drawn, each with what is said of it."""
        return self.frame.get_by_role("list", name="Disconnected edges").get_by_role("listitem").all_inner_texts()

    def picture(self) -> Pixels:
        """The graph as it is drawn now, `[height, width, 3]`; without what lies over it."""
        address: str = self.frame.locator("canvas[role=img]").evaluate("canvas => canvas.toDataURL('image/png')")
        image = Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2]))).convert("RGBA")
        ground = Image.new("RGBA", image.size, "white")
        ground.alpha_composite(image)
        return np.asarray(ground.convert("RGB"))

    def screenshot(self, name: str) -> None:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png")


def open_tab(page: Page, board: TensorBoard, runs: int) -> Tab:
    """The tab once it shows a run. Waits until TensorBoard knows as many as there are."""
    assert (STATIC / "index.js").is_file(), f"{STATIC} holds no page: build it with `make page`"
    board.wait_for_runs(runs)
    page.goto(f"{board.url}#gradflow")
    tab = Tab(page)
    expect(tab.slider).to_be_visible(timeout=30_000)
    expect(tab.frame.get_by_role("list", name="Visible parts of the graph")).to_be_attached(timeout=30_000)
    tab.rest()
    return tab


def is_near(picture: Pixels, colour: tuple[int, int, int], tolerance: int = 24) -> npt.NDArray[np.bool_]:
    """Where a picture has a colour, give or take the smoothing of lines."""
    return np.asarray(np.abs(picture.astype(int) - colour).max(axis=-1) <= tolerance)


def dashes(picture: Pixels, colour: tuple[int, int, int]) -> int:
    """Pieces of the longest vertical dashed line of a colour: strokes of one length with gaps between them."""
    is_colour = is_near(picture, colour)
    return max((_strokes(is_colour[:, column]) for column in np.flatnonzero(is_colour.any(axis=0))), default=0)


def _strokes(column: npt.NDArray[np.bool_]) -> int:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], column, [False]]).astype(int)))
    lengths = edges[1::2] - edges[::2]
    # Letters and borders are thinner, the sides of boxes longer.
    strokes = lengths[(lengths >= 4) & (lengths <= 40)]
    return int(np.unique(strokes, return_counts=True)[1].max(initial=0))


def number(text: str) -> float:
    """The value of a number as the page writes it."""
    return float(re.sub(r"\s", "", text).replace("\u2212", "-"))


def part_of(tab: Tab, name: str) -> Locator:
    """What is said of a drawn part of the graph."""
    return tab.frame.locator(f'[data-mirror] li[data-name="{name}"]')
