"""Everything that reads a log, as one function each: what it raises other than a LogError is a fault."""

from __future__ import annotations

import contextlib
import io
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
from tensorboard.plugins.base_plugin import TBContext
from werkzeug.test import Client

import tb_gradflow
from tb_gradflow.cli.main import main
from tb_gradflow.errors import LogError
from tb_gradflow.serve.plugin import GradFlowPlugin
from tests.hostile.mutations import SEEDS

WHOLE = SEEDS[0].parents[1]

ROUTES = (
    "runs",
    "standings",
    "overview",
    "trace",
    "report",
    "gradients",
    "variables",
    "series",
    "weights",
    "heat",
    "terms",
    "course",
    "page",
)
NAMES = ("run", "session", "trace", "step", "chunk", "at", "row", "variable", "quantity", "target", "columns")
ODD = (
    "",
    "0",
    "1",
    "-1",
    "999999999999999",
    "9" * 5000,
    "1e3",
    "NaN",
    "²",
    "../..",
    "%00",
    "\u202e",
    "gradient",
    "ratio",
    "x" * 10_000,
)


def report(log_dir: Path, chance: random.Random) -> None:
    with contextlib.suppress(LogError):
        log = tb_gradflow.open_log(log_dir)
        repr(log)
        found = log.report(chance.choice((None, None, *log.steps)))
        str(found)
        found.to_dict()


def history(log_dir: Path, chance: random.Random) -> None:
    with contextlib.suppress(LogError):
        log = tb_gradflow.open_log(log_dir)
        names = [variable.name for variable in log.report().diagnosis.variables]
        for name in names[:3]:
            arrays = log.history(name)
            assert {len(each) for each in arrays.values()} == {len(log.steps)}


def command(log_dir: Path, chance: random.Random) -> None:
    flags = chance.choice(
        (
            ["report"],
            ["report", "--json"],
            ["report", "--format", "sarif"],
            ["report", "--format", "github"],
            ["report", "--format", "junit"],
            ["report", "--format", "markdown"],
            ["fix"],
        )
    )
    run([flags[0], str(log_dir), *flags[1:]])


def compare(log_dir: Path, chance: random.Random) -> None:
    with contextlib.suppress(LogError):
        pair = [tb_gradflow.open_log(log_dir), tb_gradflow.open_log(WHOLE)]
        chance.shuffle(pair)
        comparison = tb_gradflow.compare(*pair)
        str(comparison)
        comparison.to_dict()


def html(log_dir: Path, chance: random.Random) -> None:
    run(["report", str(log_dir), "--html", str(log_dir / "page.html")])


def run(arguments: list[str]) -> None:
    said, complained = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
        status = main(arguments)
    assert status in (0, 2), complained.getvalue()
    assert "\x1b" not in said.getvalue() + complained.getvalue()
    assert "\u202e" not in said.getvalue() + complained.getvalue()
    (said.getvalue() + complained.getvalue()).encode("utf-8")


def served(log_dir: Path, chance: random.Random) -> None:
    """The page's questions, and some that it never asks."""
    client = Board(log_dir)
    overview = client.ask("overview", {"run": "gradflow"})
    for route in ("runs", "report", "course", "standings", *chance.choice(((), ("page",)))):
        client.ask(route, {"run": "gradflow"})
    if not isinstance(overview, dict) or "session" not in overview:
        return
    place = {"run": "gradflow", "session": overview["session"]["id"]}
    for chunk in overview["chunks"][:2]:
        client.ask("gradients", {**place, "chunk": chunk["id"]})
        client.ask("variables", {**place, "chunk": chunk["id"]})
    for trace in overview["traces"][:2]:
        client.ask("trace", {**place, "trace": trace})
        client.ask("terms", {**place, "trace": trace, "columns": 9})
        for quantity in ("gradient", "ratio"):
            client.ask("heat", {**place, "trace": trace, "target": 0, "quantity": quantity, "columns": 9})
    client.ask("series", {**place, "row": chance.choice((0, 3, 10**6))})
    client.ask("weights", {**place, "variable": chance.choice((0, 1, 10**6))})


def asked_oddly(log_dir: Path, chance: random.Random) -> None:
    client = Board(log_dir)
    for _ in range(20):
        names = [name for name in NAMES if chance.random() < 0.7]
        pairs = [(name, chance.choice(("gradflow", *ODD)) if name == "run" else chance.choice(ODD)) for name in names]
        if chance.random() < 0.7:
            pairs.insert(0, ("run", "gradflow"))
        client.ask(chance.choice(ROUTES), pairs)


class Board:
    """The plugin on TensorBoard's own loader, in this process."""

    def __init__(self, log_dir: Path) -> None:
        multiplexer = plugin_event_multiplexer.EventMultiplexer()
        with contextlib.suppress(Exception):  # TensorBoard logs what it cannot load, and goes on
            multiplexer.AddRunsFromDirectory(str(log_dir))
            multiplexer.Reload()
        provider = data_provider.MultiplexerDataProvider(multiplexer, str(log_dir))
        self._apps = GradFlowPlugin(TBContext(data_provider=provider, logdir=str(log_dir))).get_plugin_apps()

    def ask(self, route: str, parameters: Any) -> Any:
        """The answer's JSON, or its status."""
        response = Client(self._apps[f"/{route}"]).get("/", query_string=parameters)
        assert response.status_code in (200, 400, 404, 422), (route, parameters, response.status_code)
        if response.status_code != 200:
            assert [*(response.json or {})] == ["error"]
        # A trace is passed on as it lies there.
        return response.json if response.mimetype == "application/json" and route != "trace" else None


READERS: tuple[Callable[[Path, random.Random], None], ...] = (
    report,
    history,
    command,
    compare,
    html,
    served,
    asked_oddly,
)
WEIGHTS = (4, 1, 4, 2, 1, 3, 1)
