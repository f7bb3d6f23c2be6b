"""What each route answers, asked of the plugin in this process: the same as Python does of the same log.

In real TensorBoards: test_tensorboard.py.
"""

from __future__ import annotations

import argparse
import gzip
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorboard.backend.event_processing.data_provider import MultiplexerDataProvider
from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
from tensorboard.plugins.base_plugin import TBContext
from werkzeug.test import Client, TestResponse

import tb_gradflow
from tb_gradflow.api import diverge
from tb_gradflow.record.codec import decode, encode
from tb_gradflow.record.schema import FORMAT, Trace
from tb_gradflow.serve.loader import GradFlowLoader
from tb_gradflow.serve.plugin import GradFlowPlugin
from tb_gradflow.serve.routes import STATIC
from tb_gradflow.serve.runs.finite import finite
from tb_gradflow.serve.runs.heat import QUANTITIES, heat
from tb_gradflow.serve.runs.history import History
from tb_gradflow.serve.turns import Pace
from tests.recordings.logs import opened
from tests.store.samples import open_writer, session, write_log

PREFIX = "/data/plugin/gradflow"
SESSION = session().id
TRAINED = "trainings/1_masked_weight_and_adam"
WITH_TERMS = "cases/actor_with_a_single_action"


class Board:
    """The plugin on a directory of logs, as TensorBoard's Python loader reads them."""

    def __init__(self, logdir: Path, static: Path = STATIC) -> None:
        multiplexer = EventMultiplexer()
        multiplexer.AddRunsFromDirectory(str(logdir))
        multiplexer.Reload()
        context = TBContext(data_provider=MultiplexerDataProvider(multiplexer, str(logdir)), logdir=str(logdir))
        self.plugin = GradFlowPlugin(context, static)
        self._apps = {path: Client(app) for path, app in self.plugin.get_plugin_apps().items()}

    def ask(self, route: str, environ: dict[str, Any] | None = None, /, **parameters: object) -> TestResponse:
        asked = {name: str(value) for name, value in parameters.items()}
        return self._apps[f"/{route}"].get(f"{PREFIX}/{route}", query_string=asked, environ_overrides=environ)

    def file(self, name: str) -> TestResponse:
        return self._apps["/static/*"].get(f"{PREFIX}/static/{name}")


def body(answer: TestResponse) -> bytes:
    return gzip.decompress(answer.data) if answer.headers.get("Content-Encoding") == "gzip" else answer.data


def told(answer: TestResponse, status: int = 200) -> Any:
    assert answer.status_code == status, body(answer)
    return json.loads(body(answer))


def numbers(answer: TestResponse) -> Any:
    assert answer.status_code == 200, body(answer)
    return np.frombuffer(body(answer), "<f4")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("logs")
    write_log(root / "good", steps=100)
    write_log(root / "without steps", steps=0)
    open_writer(root / "newer", session(format=FORMAT + 98)).close()
    opened(TRAINED, root / "trained")
    opened(WITH_TERMS, root / "terms")
    return root


@pytest.fixture(scope="module")
def board(logs: Path) -> Board:
    return Board(logs)


@pytest.fixture
def history(logs: Path) -> History:
    return tb_gradflow.open_log(logs / "good").recorded


def test_runs_are_listed_with_what_cannot_be_read(board: Board) -> None:
    answer = told(board.ask("runs"))

    assert answer["format"] == FORMAT
    errors = {entry["name"]: entry["error"] for entry in answer["runs"]}
    assert list(errors) == ["good", "newer", "terms", "trained", "without steps"]
    assert [name for name, error in errors.items() if error] == ["newer"]
    assert f"log has format {FORMAT + 98}" in errors["newer"]


def test_all_runs_are_judged_after_a_while(board: Board) -> None:
    deadline = time.monotonic() + 60
    while not (answer := told(board.ask("standings")))["complete"]:
        assert time.monotonic() < deadline

    health = {run["name"]: (run["health"], run["cause"]) for run in answer["runs"]}
    assert health["good"] == ("error", "nondiff_comparison")
    assert health["newer"][0] == "unknown"
    assert health["trained"][0] == "healthy"


@pytest.mark.parametrize("run", ["good", "trained", "terms"])
def test_an_overview_tells_what_there_is(board: Board, logs: Path, run: str) -> None:
    index = tb_gradflow.open_log(logs / run).recorded.index()

    answer = told(board.ask("overview", run=f"{run}/gradflow"))

    assert (answer["name"], answer["session"]) == (run, encode(index.session))
    assert answer["steps"] == list(index.steps)
    assert answer["traces"] == list(index.traces)
    assert [chunk["id"] for chunk in answer["chunks"]] == [head.id for head in index.chunks]
    assert len(answer["step_trace"]) == len(answer["wall_times"]) == len(answer["losses"]) == len(index.steps)


def test_a_trace_is_handed_out_as_it_was_recorded(board: Board, history: History) -> None:
    answer = board.ask("trace", run="good/gradflow", session=SESSION, trace=0)

    assert decode(Trace, told(answer)) == history.trace(SESSION, 0)
    assert "max-age=86400" in answer.headers["Cache-Control"]


@pytest.mark.parametrize("step", [0, 50, 99, None])
def test_a_report_is_the_diagnosis_of_that_step(board: Board, history: History, step: int | None) -> None:
    asked = {} if step is None else {"step": step}

    answer = told(board.ask("report", run="good/gradflow", **asked))

    assert answer == finite(encode(history.diagnose(step)))
    assert answer["step"] == (99 if step is None else step)


def test_a_report_without_a_step_speaks_of_the_structure(board: Board) -> None:
    answer = told(board.ask("report", run="without steps/gradflow", step=-1))

    assert answer["step"] == -1
    assert [finding["cause"] for finding in answer["findings"]] == ["nondiff_comparison"]


def test_numbers_of_a_chunk_are_those_of_the_log(board: Board, history: History) -> None:
    place = {"run": "good/gradflow", "session": SESSION, "chunk": 33}

    gradients, variables = (numbers(board.ask(route, **place)) for route in ("gradients", "variables"))

    assert (gradients == history.gradients(SESSION, 33).ravel()).all()
    assert (variables == history.variables(SESSION, 33).ravel()).all()
    assert (numbers(board.ask("gradients", **place, at=4)) == history.gradients(SESSION, 33)[4].ravel()).all()


def test_series_span_all_steps(board: Board, history: History) -> None:
    assert (numbers(board.ask("series", run="good/gradflow", row=1)) == history.series(1).ravel()).all()
    assert (numbers(board.ask("weights", run="good/gradflow", variable=1)) == history.weights(1).ravel()).all()


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_a_heat_map_has_no_more_columns_than_there_is_room(board: Board, history: History, quantity: str) -> None:
    asked = {"run": "good/gradflow", "trace": 0, "target": 0, "quantity": quantity}

    found = numbers(board.ask("heat", **asked, columns=9))

    assert found.size == 9 * 2
    np.testing.assert_array_equal(found, heat(history, 0, 0, quantity, 9).ravel())


def test_terms_are_given_with_what_each_contributes_and_its_gradients(board: Board, logs: Path) -> None:
    log = tb_gradflow.open_log(logs / "terms")
    trace = log.recorded.trace(SESSION, 0)
    [step] = log.steps

    found = numbers(board.ask("terms", run="terms/gradflow", trace=0, columns=9))

    assert len(found) == len(trace.terms) + len(trace.term_gradients) > 3
    values = {term.name: term.value for term in log.report(step).terms}
    assert found[: len(trace.terms)] == pytest.approx([values[term.name] for term in trace.terms], rel=1e-5)
    assert (found[len(trace.terms) :] >= 0).all()


def test_the_course_of_findings_is_known_after_a_while(board: Board) -> None:
    deadline = time.monotonic() + 60
    while not (answer := told(board.ask("course", run="good/gradflow")))["complete"]:
        assert time.monotonic() < deadline

    assert {0, 99} <= set(answer["steps"])
    assert [finding["cause"] for finding in answer["findings"]] == ["nondiff_comparison"]
    assert answer["present"] == [[0]] * len(answer["steps"])
    assert answer["damage"] == ""


def test_two_runs_are_compared_as_the_command_does(board: Board, logs: Path) -> None:
    logged = [tb_gradflow.open_log(logs / run) for run in ("good", "terms")]

    answer = told(board.ask("divergence", run="good/gradflow", **{"with": "good/gradflow"}))
    assert (answer["differs"], answer["agreed"]) == (False, "All values are equal.")

    answer = told(board.ask("divergence", run="good/gradflow", **{"with": "terms/gradflow"}))
    told_by_command = diverge(*logged).to_dict()
    names = {"a": {**told_by_command["a"], "run": "good"}, "b": {**told_by_command["b"], "run": "terms"}}
    assert answer == {**told_by_command, **names}


@pytest.mark.parametrize("step", [None, 0])
def test_a_page_for_saving_holds_the_report(board: Board, step: int | None) -> None:
    answer = board.ask("page", run="trained/gradflow", **({} if step is None else {"step": step}))

    assert answer.headers["Content-Type"].startswith("application/octet-stream")
    assert answer.data.startswith(b"<!DOCTYPE html>")
    assert b"trained" in answer.data


@pytest.mark.parametrize(
    ("route", "parameters", "status", "words"),
    [
        ("overview", {}, 400, "the parameter `run` is missing"),
        ("report", {"run": "good/gradflow", "step": "first"}, 400, "must be a number from zero, got 'first'"),
        ("report", {"run": "good/gradflow", "step": -2}, 400, "must be a number from zero, got '-2'"),
        ("report", {"run": "good/gradflow", "step": "9" * 16}, 400, "must be a number"),
        ("series", {"run": "good/gradflow", "row": "\u0661"}, 400, "must be a number from zero"),
        ("series", {"run": "good/gradflow", "row": 3}, 404, "no row 3: it has 3, numbered from 0"),
        ("heat", {"run": "good/gradflow", "quantity": "size"}, 400, "must be one of gradient, weight, update, ratio"),
        ("terms", {"run": "good/gradflow", "trace": 0, "columns": 0}, 400, "must be a number from one, got '0'"),
        ("overview", {"run": "../../etc"}, 404, "no run '../../etc'"),
        ("report", {"run": "good/gradflow", "step": 5000}, 404, "the nearest is 99"),
        ("gradients", {"run": "good/gradflow", "session": SESSION, "chunk": 33, "at": 32}, 404, "it has no step 32"),
        ("overview", {"run": "newer/gradflow"}, 422, "upgrade with"),
        ("divergence", {"run": "good/gradflow"}, 400, "the parameter `with` is missing"),
        ("divergence", {"run": "good/gradflow", "with": "bad/gradflow"}, 404, "no run 'bad/gradflow'"),
        ("divergence", {"run": "good/gradflow", "with": "without steps/gradflow"}, 422, "no step has been recorded"),
    ],
)
def test_what_cannot_be_answered_is_said_in_words(
    board: Board, route: str, parameters: dict[str, object], status: int, words: str
) -> None:
    assert words in told(board.ask(route, **parameters), status)["error"]


def test_who_asks_for_too_much_is_told_to_wait(logs: Path) -> None:
    board = Board(logs)
    board.plugin._routes._pace = Pace(burst=0, per_second=0.1, longest=1.0)

    assert "try again in a moment" in told(board.ask("runs"), 503)["error"]


@pytest.fixture
def connection() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    yield ours, theirs
    ours.close()
    theirs.close()


def test_nothing_is_worked_out_for_a_client_that_is_gone(
    board: Board, connection: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = connection
    asked = {"run": "good/gradflow", "session": SESSION, "chunk": 65}

    told_to_one_who_waits = board.ask("gradients", {"werkzeug.socket": ours}, **asked)
    theirs.close()
    told_to_one_who_left = board.ask("variables", {"werkzeug.socket": ours}, **asked)

    assert told_to_one_who_waits.status_code == 200
    assert "closed its connection" in told(told_to_one_who_left, 503)["error"]


def test_a_connection_that_is_no_more_has_no_client(
    board: Board, connection: tuple[socket.socket, socket.socket]
) -> None:
    ours, _ = connection
    ours.close()

    answer = board.ask("gradients", {"werkzeug.socket": ours}, run="good/gradflow", session=SESSION, chunk=1)

    assert "closed its connection" in told(answer, 503)["error"]


def test_only_files_of_the_page_are_served(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "index.js").write_text("export function render() {}", encoding="utf-8")
    (tmp_path / "notes.txt").write_text("not for the page", encoding="utf-8")
    board = Board(logs, tmp_path)

    answer = board.file("index.js")

    assert answer.headers["Content-Type"].startswith("text/javascript")
    assert body(answer) == b"export function render() {}"
    for name in ("notes.txt", "../index.js", "%2e%2e/index.js", ""):
        assert "no file" in told(board.file(name), 404)["error"]


def test_a_page_that_was_not_built_says_how(logs: Path, tmp_path: Path) -> None:
    assert "the page was not built" in told(Board(logs, tmp_path).file("index.js"), 404)["error"]


def test_tensorboard_is_told_the_name_of_the_tab(board: Board) -> None:
    metadata = board.plugin.frontend_metadata()

    assert (metadata.tab_name, metadata.es_module_path) == ("Gradient flow", "/static/index.js")
    assert not board.plugin.is_active()  # as long as there are no data of ours, which TensorBoard itself knows


def test_the_loader_makes_the_plugin_where_there_are_data(logs: Path) -> None:
    multiplexer = EventMultiplexer()
    provider = MultiplexerDataProvider(multiplexer, str(logs))

    assert isinstance(GradFlowLoader().load(TBContext(data_provider=provider)), GradFlowPlugin)
    assert GradFlowLoader().load(TBContext()) is None


def test_the_loader_asks_for_all_samples_unless_the_user_said_how_many() -> None:
    chosen, default, without = (
        argparse.Namespace(samples_per_plugin=each) for each in ({"gradflow": 7}, {"images": 3}, None)
    )
    for flags in (chosen, default, without):
        GradFlowLoader().fix_flags(flags)

    assert chosen.samples_per_plugin == {"gradflow": 7}
    assert default.samples_per_plugin == {"images": 3, "gradflow": 5000}
    assert without.samples_per_plugin is None
