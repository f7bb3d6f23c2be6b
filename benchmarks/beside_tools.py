"""The viewers that `viewer_beside.py` compares, and how each is made to do the same things."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

STARTING = 60
"""Seconds that a server has to answer."""


class Viewer(Protocol):
    """One viewer on one model. The pieces of JavaScript run in the frame whose address holds `frame`.

    Attributes:
        canvas: Selector of what the graph is drawn on.
        drawn: Expression: whether the graph is on the screen, or is with the next frame.
        state: Expression: something that is no longer the same when the picture shows other parts.
        parts: Expression: how many parts are laid out.
        begin: Statement that closes what the viewer has opened by itself.
        open_group: Statement that does what a click on the largest group at the top does.
        open_all: Statement that does what a click on its button does; null where there is no such button.
    """

    @property
    def name(self) -> str: ...
    @property
    def address(self) -> str: ...
    @property
    def frame(self) -> str: ...
    @property
    def canvas(self) -> str: ...
    @property
    def drawn(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def parts(self) -> str: ...
    @property
    def begin(self) -> str: ...
    @property
    def open_group(self) -> str: ...
    @property
    def open_all(self) -> str | None: ...
    @property
    def is_ours(self) -> bool: ...


@dataclass(frozen=True)
class OurTab:
    address: str
    name: str = "Gradient flow"
    frame: str = "plugin_entry.html"
    canvas: str = "canvas.stage"
    drawn: str = "__bench.isDrawn()"
    state: str = "__bench.graph().scene"
    parts: str = "__bench.graph().scene.placed.length"
    begin: str = "__bench.graph().closeAll()"
    open_group: str = """
        const graph = __bench.graph(), {items} = graph.model.tree;
        const size = (item) => items[item].children.reduce((sum, child) => sum + size(child), 1);
        graph.toggle(graph.scene.placed.map(({item}) => item).sort((a, b) => size(b) - size(a))[0])"""
    open_all: str | None = "__bench.graph().openAll()"
    is_ours: bool = True


SCENE = "(window.__scene ??= __bench.deep(document, 'tf-graph-scene'))"


@dataclass(frozen=True)
class TheirTab:
    """TensorBoard's own. It opens one group at a time, and has no button for all."""

    address: str
    name: str = "TensorBoard's Graphs"
    frame: str = "#graphs"
    canvas: str = "tf-graph-scene svg#svg"
    drawn: str = f"""{SCENE} !== null && {SCENE}.$.svg.querySelector("g.node") !== null
        && !__bench.deep(document, "tf-graph-board").shadowRoot.querySelector(".container").matches(".loading")"""
    state: str = f'{SCENE}.$.svg.querySelectorAll("g.node").length'
    parts: str = f'{SCENE}.$.svg.querySelectorAll("g.node").length'
    begin: str = ""
    open_group: str = f"""
        const {{hierarchy}} = {SCENE}.renderHierarchy, tops = hierarchy.root.metagraph.nodes();
        const size = (name) => hierarchy.node(name).cardinality;
        {SCENE}.fire("node-toggle-expand", {{name: tops.sort((a, b) => size(b) - size(a))[0]}})"""
    open_all: str | None = None
    is_ours: bool = False


RENDERER = "window.me_test.renderers[0]"


@dataclass(frozen=True)
class ModelExplorer:
    """Google's, with its own adapter for GraphDef files."""

    server: str
    path: str
    name: str = "Model Explorer"
    frame: str = "?data="
    canvas: str = "webgl-renderer canvas"
    drawn: str = f"window.me_test?.renderers[0]?.nodesToRender?.length > 0 && !{RENDERER}.showBusySpinner"
    state: str = f"{RENDERER}.nodesToRender"
    parts: str = f"{RENDERER}.nodesToRender.length"
    begin: str = ""
    open_group: str = f"""
        const graph = {RENDERER}.curModelGraph, size = (node) => node.descendantsOpNodeIds?.length ?? 0;
        {RENDERER}.handleToggleExpandCollapse([...graph.rootNodes].sort((a, b) => size(b) - size(a))[0])"""
    open_all: str | None = """
        const icons = [...document.querySelectorAll("mat-icon")];
        icons.find((icon) => icon.textContent.trim() === "unfold_more_double").parentElement.click()"""
    is_ours: bool = False

    @property
    def address(self) -> str:
        models = {"models": [{"url": self.path, "adapterId": "builtin_graphdef"}]}
        return f"{self.server}?data={urllib.parse.quote(json.dumps(models))}"


@contextlib.contextmanager
def model_explorer(command: str) -> Iterator[str]:
    """The address of a server of its own, which ends when the block ends."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    flags = [f"--port={port}", "--no_open_in_browser", "--skip_health_check"]
    process = subprocess.Popen([command, *flags], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        address = f"http://localhost:{port}/"
        wait_for(address, process)
        yield address
    finally:
        process.terminate()
        process.communicate(timeout=30)


def wait_for(address: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + STARTING
    while True:
        with contextlib.suppress(urllib.error.URLError):
            urllib.request.urlopen(address, timeout=5).close()
            return
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"Model Explorer does not answer at {address}: does its command work?")
        time.sleep(0.2)
