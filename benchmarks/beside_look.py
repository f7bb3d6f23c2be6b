"""One view of one model in one viewer: everything that `viewer_beside.py` measures, in a separate browser."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser, Error, Frame, Playwright

from benchmarks.beside_tools import Viewer
from benchmarks.viewer import AFTER_FLIGHT, FIRST_PICTURE, TOOLS

ARGUMENTS = [
    "--no-sandbox",
    "--enable-precise-memory-info",
    "--js-flags=--expose-gc",
    # Fonts and counters from elsewhere: what takes its time on somebody's network is not measured here.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost",
]
DRAGGED = 3.0
"""Seconds."""
REACH = 220
"""Pixels that the graph is dragged to each side."""

FRAMES = """(seconds) => {
  const count = async () => {
    const begin = performance.now();
    let [last, frames, longest] = [begin, 0, 0];
    while (last - begin < 1000 * seconds) {
      const now = await new Promise((resolve) => requestAnimationFrame(() => resolve(performance.now())));
      [frames, longest, last] = [frames + 1, Math.max(longest, now - last), now];
    }
    return [1000 * frames / (last - begin), longest];
  };
  window.__frames = count();
}"""


ACT = """async () => {
  const state = () => %(state)s, before = state();
  return __bench.act(() => { %(action)s; }, () => state() !== before);
}"""

# Seen from outside of all frames, as are the clocks of different processes.
FIRST_SEEN = "() => performance.timeOrigin + window.firstPicture"


@dataclass
class Look:
    """What was measured, and what could not be, by column."""

    numbers: dict[str, float] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        numbers = [f"{column} {value:.0f}" for column, value in self.numbers.items()]
        return ", ".join(numbers + [f"{column}: {told}" for column, told in self.failures.items()])


class Watched:
    """A browser that is ended when it has not done something in time."""

    def __init__(self, browser: Browser, limit: float) -> None:
        self.browser = browser
        self.limit = limit
        self.has_ended = False
        self._session = browser.new_browser_cdp_session()
        [self._main] = self.processes("browser")

    def processes(self, kind: str) -> list[int]:
        found = self._session.send("SystemInfo.getProcessInfo")["processInfo"]
        return [each["id"] for each in found if each["type"] == kind]

    @contextlib.contextmanager
    def within_limit(self) -> Iterator[None]:
        """What is awaited inside raises an Error when the limit is over."""
        timer = threading.Timer(self.limit, self._end)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _end(self) -> None:
        self.has_ended = True
        os.kill(self._main, signal.SIGKILL)


def look_at(playwright: Playwright, chromium: str, viewer: Viewer, limit: float) -> Look:
    browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
    watched = Watched(browser, limit)
    looking = Looking(watched, viewer)
    try:
        looking.at_everything()
    except Error as error:
        told = f"nothing after {limit:.0f} s" if watched.has_ended else str(error).splitlines()[0]
        looking.look.failures[looking.doing] = told
    finally:
        with contextlib.suppress(Error):
            browser.close()
    return looking.look


class Looking:
    """A look in the making; `doing` is the column that is measured now."""

    def __init__(self, watched: Watched, viewer: Viewer) -> None:
        self.look = Look()
        self.doing = "first"
        self._watched = watched
        self._viewer = viewer
        self._page = watched.browser.new_page(viewport={"width": 1440, "height": 900})
        self._page.add_init_script(TOOLS + self._when_drawn())

    def _when_drawn(self) -> str:
        return f"""
            if (location.href.includes("{self._viewer.frame}") && window.firstPicture === undefined) {{
              __bench.until(() => {self._viewer.drawn}).then((now) => {{ window.firstPicture ??= now; }});
            }}"""

    def at_everything(self) -> None:
        frame = self._opened()
        frame.evaluate(f"() => {{ {self._viewer.begin}; }}")
        self._rest()
        self._change(frame, "group", self._viewer.open_group)
        self._used(frame, "")
        if self._viewer.open_all is None:
            self.look.failures["all"] = "cannot"
            return
        self._change(frame, "all", self._viewer.open_all)
        self.look.numbers["parts"] = frame.evaluate(f"() => {self._viewer.parts}")
        self._used(frame, "_all")

    def _opened(self) -> Frame:
        with self._watched.within_limit():
            asked = 1000 * time.time()
            self._page.goto(self._viewer.address, wait_until="commit")
            while True:
                frames = [frame for frame in self._page.frames if self._viewer.frame in frame.url]
                if frames and frames[0].evaluate("() => window.firstPicture !== undefined"):
                    break
                self._page.wait_for_timeout(50)
            self.look.numbers["first"] = frames[0].evaluate(FIRST_SEEN) - asked
        if self._viewer.is_ours:
            self.look.numbers["in_hand"] = frames[0].evaluate(FIRST_PICTURE)
        return frames[0]

    def _change(self, frame: Frame, column: str, action: str) -> None:
        self.doing = column
        with self._watched.within_limit():
            self.look.numbers[column] = frame.evaluate(ACT % {"state": self._viewer.state, "action": action})

    def _used(self, frame: Frame, when: str) -> None:
        """Drags the graph, and weighs the page."""
        self.doing = f"frames{when}"
        with self._watched.within_limit():
            self._rest()
            frames, longest = self._dragged(frame)
        self.doing = f"heap{when}"
        with self._watched.within_limit():
            frame.evaluate("() => { gc(); gc(); }")
            heap = frame.evaluate("() => performance.memory.usedJSHeapSize") / 2**20
            process = max(map(resident, self._watched.processes("renderer")))
        more = {"frames": frames, "longest": longest, "heap": heap, "process": process}
        self.look.numbers.update({column + when: value for column, value in more.items()})

    def _dragged(self, frame: Frame) -> tuple[float, float]:
        """Frames a second, and the longest wait for one, in milliseconds."""
        box = frame.locator(self._viewer.canvas).first.bounding_box()
        assert box is not None
        mouse, x, y = self._page.mouse, box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        mouse.move(x, y)
        mouse.down()
        frame.evaluate(FRAMES, DRAGGED)
        begin = time.monotonic()
        while (since := time.monotonic() - begin) < DRAGGED:
            mouse.move(x + REACH * math.sin(4 * since), y + REACH * math.sin(3 * since) / 2)
        mouse.up()
        [frames, longest] = frame.evaluate("() => window.__frames")
        return frames, longest

    def _rest(self) -> None:
        self._page.wait_for_timeout(AFTER_FLIGHT)


def resident(process: int) -> float:
    """MB of memory that a process has."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))) / 1024
