"""Pictures of the viewer for docs/causes: a finding, and beside it the graph in which it is selected.

Drawn by Chromium from the page that `save_html` makes. The same page gives the same bytes.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from PIL import Image, PngImagePlugin
from playwright.sync_api import Browser, FloatRect, Locator, Page, ViewportSize, expect, sync_playwright

WIDTH = 900
"""Pixels of a page that a picture is to fill; it has `SHARPNESS` times as many."""
SHARPNESS = 1.1
COLOURS = 16

# Beside the graph opens the panel of what is selected, which says little that the finding does not.
DETAILS = 310
# What stands above and below the graph.
AROUND = 190
LOWEST, HIGHEST = 330, 600
# A long finding goes on below the picture.
LONGEST = 1000
# Pixels above and below of a way; below a finding.
MARGIN, BELOW = 90, 20

# What is faded is lighter than this. A few pixels of the frames of groups are not.
DARK, SPECKS = 150, 30

IDENTITY = "Program"

EXTENT = """graph => {
  const lit = graph.renderRoot.querySelector('gf-mirror').litItems;
  const boxes = graph.scene.placed.filter(box => !box.open && (lit === null || lit.has(box.item)));
  const [top, bottom] = [Math.min(...boxes.map(b => b.y)), Math.max(...boxes.map(b => b.y + b.height))];
  return bottom - top;
}"""


UNFOLD = "card => { const folded = card.closest('details'); if (folded !== null) { folded.open = true; } }"
HIDE = "all => all.forEach(each => { each.style.display = 'none'; })"


def identity_of(program: str, report: str) -> str:
    """Changes with the program, and with what is found in it; not with the norms, which differ between machines."""
    found = report.partition("\nVariables:")[0]
    return hashlib.sha256(f"{program}\0{found}".encode()).hexdigest()[:16]


def identity_in(picture: Path) -> str:
    """What was given to `take` with it."""
    with Image.open(picture) as image:
        return str(image.info.get(IDENTITY, ""))


def take(pages: Mapping[str, Path], identities: Mapping[str, str], out: Path) -> None:
    """Writes `<cause>.png` for each page, with the finding of that cause selected."""
    program = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for cause, path in pages.items():
            image = _seen(browser, path, cause)
            chunks = PngImagePlugin.PngInfo()
            chunks.add_text(IDENTITY, identities[cause])
            packed = io.BytesIO()
            image.save(packed, "PNG", optimize=True, pnginfo=chunks)
            (out / f"{cause}.png").write_bytes(packed.getvalue())
        browser.close()


def _seen(browser: Browser, path: Path, cause: str) -> Image.Image:
    size: ViewportSize = {"width": WIDTH + DETAILS, "height": HIGHEST + AROUND}
    page = browser.new_page(
        viewport=size, device_scale_factor=SHARPNESS, color_scheme="light", reduced_motion="reduce", offline=True
    )
    # Nothing below the graph.
    page.goto(f"{path.as_uri()}#p.gradflow.tab=-")
    expect(page.get_by_role("list", name="Visible parts of the graph")).to_be_attached(timeout=30_000)
    page.get_by_role("button", name="Got it").click()
    card = _card(page, cause)
    _show(page, card)
    # The graph beside the card shows the same path.
    page.locator("article[aria-current=false], .follow").evaluate_all(HIDE)
    graph = page.locator("gf-graph")
    top, end = _box(graph)["y"], _box(card)["y"] + _box(card)["height"]
    _size_to(page, max(min(HIGHEST, graph.evaluate(EXTENT) + MARGIN), min(LONGEST, end - top + BELOW)))
    _show(page, card)
    graph.locator(".tools, gf-minimap").evaluate_all(HIDE)
    legend = page.locator("gf-legend")
    place = _box(legend)
    legend.evaluate_all("all => all.forEach(each => { each.style.visibility = 'hidden'; })")
    if not _holds_something(page, place):
        legend.evaluate_all("all => all.forEach(each => { each.style.visibility = ''; })")
    area = _box(graph)
    shot = page.screenshot(clip={"x": 0, "y": area["y"], "width": WIDTH, "height": area["height"]})
    page.close()
    return _few_colours(Image.open(io.BytesIO(shot)).convert("RGB"))


def _holds_something(page: Page, place: FloatRect) -> bool:
    """Whether a part of the graph is there that is not faded."""
    image = Image.open(io.BytesIO(page.screenshot(clip=place))).convert("L")
    return sum(image.histogram()[:DARK]) > SPECKS


def _box(part: Locator) -> FloatRect:
    box = part.bounding_box()
    assert box is not None, part
    return box


def _card(page: Page, cause: str) -> Locator:
    findings = page.get_by_role("complementary", name="Findings")
    about = page.locator(".cause").filter(has_text=cause.replace("_", " "))
    card = findings.locator("article").filter(has=about).first
    card.evaluate(UNFOLD)
    return card


def _show(page: Page, card: Locator) -> None:
    card.locator("button.head").click()
    expect(card).to_have_attribute("aria-current", "true")
    card.scroll_into_view_if_needed()
    page.mouse.move(0, 0)
    before = b""
    while before != (before := page.screenshot()):
        page.wait_for_timeout(120)


def _size_to(page: Page, height: float) -> None:
    page.set_viewport_size({"width": WIDTH + DETAILS, "height": max(LOWEST, round(height)) + AROUND})


def _few_colours(image: Image.Image) -> Image.Image:
    return image.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, kmeans=3, dither=Image.Dither.NONE)
