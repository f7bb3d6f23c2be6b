"""The plugin in real TensorBoard processes, with both of its loaders, with and without TensorFlow."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tb_gradflow.record.codec import decode, encode
from tb_gradflow.record.report import Diagnosis
from tb_gradflow.record.schema import FORMAT, Trace
from tb_gradflow.serve.routes import MIME_TYPES, STATIC
from tests.serve.processes import TensorBoard, tensorboard
from tests.store.samples import event_file, open_writer, session, step, trace, write_log

HOSTILE = "<img src=x onerror=alert(1)> & größe 'x'"
SESSION = session().id
LOADERS = ("true", "false")
HEAT = {"run": "good/gradflow", "trace": 0, "target": 0, "quantity": "weight", "columns": 9}


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("logs")
    write_log(root / "good", steps=100)
    write_log(root / HOSTILE, steps=2)
    write_log(root / "without steps", steps=0)
    open_writer(root / "newer", session(format=FORMAT + 98)).close()
    write_log(root / "cut off", steps=40)
    path = event_file(root / "cut off")
    path.write_bytes(path.read_bytes()[:-100])
    return root


@pytest.fixture(scope="module", params=LOADERS, ids=["rust", "python"])
def board(request: pytest.FixtureRequest, logs: Path) -> Iterator[TensorBoard]:
    with tensorboard(f"--logdir={logs}", f"--load_fast={request.param}") as running:
        running.wait_for_runs(5)
        wait_for_steps(running, "good/gradflow", 100)
        yield running


def wait_for_steps(board: TensorBoard, run: str, count: int) -> Any:
    deadline = time.monotonic() + 60
    while True:
        overview = board.ask("overview", run=run).json
        if len(overview.get("steps", ())) >= count:
            return overview
        assert time.monotonic() < deadline, f"{count} steps expected: {overview}"
        time.sleep(0.2)


def numbers(body: bytes, *shape: int) -> Any:
    return np.frombuffer(body, "<f4").reshape(shape)


def test_the_tab_is_active_because_there_is_data(board: TensorBoard) -> None:
    listing = board.get("data/plugins_listing").json["gradflow"]

    assert listing["enabled"] is True
    assert listing["tab_name"] == "Gradient flow"
    assert listing["loading_mechanism"] == {"type": "IFRAME", "module_path": "/data/plugin/gradflow/static/index.js"}


def test_runs_are_listed_and_those_that_cannot_be_read_say_why(board: TensorBoard) -> None:
    answer = board.ask("runs").json

    assert answer["format"] == FORMAT
    entries = {entry["run"]: entry for entry in answer["runs"]}
    assert list(entries) == sorted(f"{n}/gradflow" for n in ("good", HOSTILE, "without steps", "newer", "cut off"))
    assert entries["good/gradflow"] == {
        "run": "good/gradflow",
        "name": "good",
        "error": None,
        "began": 1_700_000_000.0,
        "health": "error",
    }
    assert entries[f"{HOSTILE}/gradflow"]["name"] == HOSTILE
    assert entries["newer/gradflow"]["error"].startswith(f"log has format {FORMAT + 98}, this tb-gradflow reads up to")


def test_each_run_says_how_it_is_once_all_are_judged(board: TensorBoard) -> None:
    while not (answer := board.ask("standings").json)["complete"]:
        time.sleep(0.1)

    standings = {standing["run"]: standing for standing in answer["runs"]}
    assert list(standings) == [entry["run"] for entry in board.ask("runs").json["runs"]]
    assert standings["good/gradflow"] == {
        "run": "good/gradflow",
        "name": "good",
        "health": "error",
        "summary": "1 of 2 trainable variables gets no gradient: < in model.py:17 blocks it.",
        "cause": "nondiff_comparison",
        "place": "model.py:17",
        "first": 0,
        "step": 99,
        "steps": 100,
        "loss": 0.5,
        "has_loss": True,
        "recorded": 1_700_000_099.0,
        "hyperparameters": {},
    }
    assert standings["newer/gradflow"]["health"] == "unknown"
    assert standings["newer/gradflow"]["summary"].startswith(f"log has format {FORMAT + 98}")
    assert (standings["without steps/gradflow"]["health"], standings["without steps/gradflow"]["step"]) == ("error", -1)


def test_an_overview_tells_what_there_is(board: TensorBoard) -> None:
    overview = board.ask("overview", run="good/gradflow").json

    assert overview["name"] == "good"
    assert overview["session"] == encode(session())
    assert overview["traces"] == [0]
    assert [chunk["id"] for chunk in overview["chunks"]] == [0, 1, 33, 65, 97]
    assert overview["chunks"][0] == {"id": 0, "trace": 0, "steps": [0]}
    assert overview["steps"] == list(range(100))
    assert overview["step_trace"] == [0] * 100
    assert overview["losses"] == [[0.5]] * 100
    assert len(overview["wall_times"]) == 100


def test_a_trace_is_handed_out_as_it_was_recorded(board: TensorBoard) -> None:
    answer = board.ask("trace", run="good/gradflow", session=SESSION, trace=0)

    assert decode(Trace, answer.json) == trace()
    assert answer.headers["Content-Type"] == "application/json"
    assert "max-age" in answer.headers["Cache-Control"]


def test_numbers_of_a_chunk_are_little_endian_floats(board: TensorBoard) -> None:
    gradients = board.ask("gradients", run="good/gradflow", session=SESSION, chunk=33)
    variables = board.ask("variables", run="good/gradflow", session=SESSION, chunk=33)

    assert gradients.headers["Content-Type"] == "application/octet-stream"
    assert gradients.headers["Content-Encoding"] == "gzip"
    assert "max-age" in gradients.headers["Cache-Control"]
    assert gradients.body == b"".join(step(number).gradients for number in range(33, 65))
    assert variables.body == b"".join(step(number).variables for number in range(33, 65))


def test_one_step_of_a_chunk_can_be_asked_for_alone(board: TensorBoard) -> None:
    gradients = board.ask("gradients", run="good/gradflow", session=SESSION, chunk=33, at=5)
    variables = board.ask("variables", run="good/gradflow", session=SESSION, chunk=33, at=31)

    assert gradients.body == step(38).gradients
    assert variables.body == step(64).variables


def test_a_series_spans_all_steps(board: TensorBoard) -> None:
    series = numbers(board.ask("series", run="good/gradflow", row=2).body, 100, 6)
    weights = numbers(board.ask("weights", run="good/gradflow", variable=1).body, 100, 4)

    assert series[:, 0].tolist() == [number + 2 for number in range(100)]
    assert weights[:, 0].tolist() == [number + 2 for number in range(100)]


def test_a_report_speaks_of_the_step_that_was_asked_for(board: TensorBoard) -> None:
    fiftieth = decode(Diagnosis, board.ask("report", run="good/gradflow", step=50).json)
    last = decode(Diagnosis, board.ask("report", run="good/gradflow").json)
    nothing_yet = decode(Diagnosis, board.ask("report", run="without steps/gradflow").json)

    assert (fiftieth.step, last.step, nothing_yet.step) == (50, 99, -1)
    assert [each.status for each in fiftieth.variables] == ["connected", "disconnected"]
    assert fiftieth.findings[0].culprit == 2


def test_a_file_that_was_cut_off_is_read_as_far_as_it_is_whole(board: TensorBoard) -> None:
    assert board.ask("overview", run="cut off/gradflow").json["steps"] == list(range(33))


def test_a_run_of_any_name_can_be_asked_for(board: TensorBoard) -> None:
    overview = board.ask("overview", run=f"{HOSTILE}/gradflow").json

    assert (overview["name"], overview["steps"]) == (HOSTILE, [0, 1])


@pytest.mark.parametrize(
    ("route", "parameters", "status", "words"),
    [
        ("overview", {}, 400, "the parameter `run` is missing"),
        ("report", {"run": "good/gradflow", "step": "first"}, 400, "must be a number from zero, got 'first'"),
        ("trace", {"run": "good/gradflow", "session": SESSION, "trace": "1e3"}, 400, "must be a number"),
        ("series", {"run": "good/gradflow", "row": -1}, 400, "must be a number from zero, got '-1'"),
        ("series", {"run": "good/gradflow", "row": 10**9}, 404, "no row 1000000000: it has 3, numbered from 0"),
        ("weights", {"run": "good/gradflow", "variable": 77}, 404, "no variable 77: it has 2, numbered from 0"),
        ("heat", HEAT | {"columns": 0}, 400, "must be a number from one, got '0'"),
        ("overview", {"run": "../../etc"}, 404, "no run '../../etc'"),
        ("report", {"run": "good/gradflow", "step": 5000}, 404, "100 steps from 0 to 99; the nearest is 99"),
        ("trace", {"run": "good/gradflow", "session": SESSION, "trace": 7}, 404, "no trace 7"),
        ("trace", {"run": "good/gradflow", "session": "1600000000000", "trace": 0}, 404, "no trace 0"),
        ("gradients", {"run": "good/gradflow", "session": SESSION, "chunk": 2}, 404, "no chunk 2"),
        ("gradients", {"run": "good/gradflow", "session": "x/y", "chunk": 1}, 404, "no chunk 1"),
        (
            "gradients",
            {"run": "good/gradflow", "session": SESSION, "chunk": 33, "at": 32},
            404,
            "has 32 steps, numbered from 0",
        ),
        ("overview", {"run": "newer/gradflow"}, 422, "upgrade with"),
    ],
)
def test_what_cannot_be_answered_is_said_in_words(
    board: TensorBoard, route: str, parameters: dict[str, object], status: int, words: str
) -> None:
    answer = board.ask(route, **parameters)

    assert answer.status == status
    assert words in answer.json["error"]


def test_the_page_is_served_with_the_right_type(board: TensorBoard) -> None:
    names = [path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*") if path.suffix in MIME_TYPES]
    assert "index.js" in names

    for name in names:
        answer = board.get(f"data/plugin/gradflow/static/{name}")

        assert answer.status == 200
        assert answer.headers["Content-Type"].startswith(MIME_TYPES[Path(name).suffix])
        assert answer.body == (STATIC / name).read_bytes()


@pytest.mark.parametrize("name", ["../plugin.py", "%2e%2e/plugin.py", "..%2fplugin.py", "/etc/passwd", "", "no.js"])
def test_nothing_but_the_page_is_served(board: TensorBoard, name: str) -> None:
    assert board.get(f"data/plugin/gradflow/static/{name}").status == 404


@pytest.mark.parametrize("loader", LOADERS)
def test_a_training_that_is_still_running_grows(tmp_path: Path, loader: str) -> None:
    writer = open_writer(tmp_path / "run")
    writer.write_trace(trace())
    writer.write_step(step(0))
    with tensorboard(f"--logdir={tmp_path}", f"--load_fast={loader}") as board:
        wait_for_steps(board, "run/gradflow", 1)

        for number in range(1, 41):
            writer.write_step(step(number))
        writer.flush()
        overview = wait_for_steps(board, "run/gradflow", 41)

        assert [chunk["id"] for chunk in overview["chunks"]] == [0, 1, 33]
        assert decode(Diagnosis, board.ask("report", run="run/gradflow").json).step == 40
        assert len(numbers(board.ask("series", run="run/gradflow", row=0).body, -1, 6)) == 41
        writer.close()


@pytest.mark.parametrize("loader", LOADERS)
def test_a_second_fit_takes_the_place_of_the_first(tmp_path: Path, loader: str) -> None:
    write_log(tmp_path / "run", steps=3)
    with tensorboard(f"--logdir={tmp_path}", f"--load_fast={loader}") as board:
        wait_for_steps(board, "run/gradflow", 3)

        second = session(1_800_000_000_000)
        write_log(tmp_path / "run", steps=5, of=second)
        overview = wait_for_steps(board, "run/gradflow", 5)

        assert overview["session"]["id"] == second.id


@pytest.mark.parametrize("loader", LOADERS)
def test_it_works_with_tensorflow_and_below_a_path_prefix(logs: Path, loader: str) -> None:
    flags = (f"--logdir={logs}", f"--load_fast={loader}", "--path_prefix=/static/a")
    with tensorboard(*flags, tensorflow=True) as board:
        assert board.url.endswith("/static/a/")
        board.wait_for_runs(5)
        overview = wait_for_steps(board, "good/gradflow", 100)

        assert overview["session"]["id"] == SESSION
        assert board.get("data/plugin/gradflow/static/index.js").status == 200


def test_it_works_with_named_log_directories(logs: Path) -> None:
    with tensorboard(f"--logdir_spec=one:{logs / 'good'},two:{logs / 'cut off'}") as board:
        names = [entry["name"] for entry in board.wait_for_runs(2)]

        assert names == ["one", "two"]
        assert wait_for_steps(board, "one/gradflow", 100)["name"] == "one"


@pytest.mark.parametrize("loader", LOADERS)
def test_a_log_directory_that_is_the_run_is_called_by_its_own_name(tmp_path: Path, loader: str) -> None:
    write_log(tmp_path / "mine", steps=3)
    with tensorboard(f"--logdir={tmp_path / 'mine'}", f"--load_fast={loader}") as board:
        assert [entry["name"] for entry in board.wait_for_runs(1)] == ["mine"]
        assert wait_for_steps(board, "gradflow", 3)["name"] == "mine"

        write_log(tmp_path / "mine" / "mine", steps=3)
        names = {entry["run"]: entry["name"] for entry in board.wait_for_runs(2)}

        assert names == {"gradflow": "mine (this directory)", "mine/gradflow": "mine"}
        assert board.ask("overview", run="gradflow").json["name"] == "mine (this directory)"


@pytest.mark.parametrize("loader", LOADERS, ids=["rust", "python"])
def test_a_run_with_a_name_that_a_loader_cannot_read_takes_no_other_with_it(tmp_path: Path, loader: str) -> None:
    for name in ('said "so"', "two\nlines", "good"):
        write_log(tmp_path / name)
    with tensorboard(f"--logdir={tmp_path}", f"--load_fast={loader}") as board:
        runs = {run["name"]: run["error"] for run in board.wait_for_runs(3)}
        told = board.ask("overview", run='said "so"/gradflow')

    assert runs["good"] is None
    for name in ('said "so"', "two\nlines"):
        assert (runs[name] is None) if loader == "false" else ("start TensorBoard with --load_fast=false" in runs[name])
    assert told.status == (200 if loader == "false" else 422)


@pytest.mark.parametrize("loader", LOADERS, ids=["rust", "python"])
def test_earlier_recordings_in_the_same_directory_are_counted(tmp_path: Path, loader: str) -> None:
    for began in (1_700_000_000_000, 1_700_000_900_000):
        write_log(tmp_path / "run", of=session(id=began))
    with tensorboard(f"--logdir={tmp_path}", f"--load_fast={loader}") as board:
        board.wait_for_runs(1)
        overview = wait_for_steps(board, "run/gradflow", 3)

    assert overview["earlier_sessions"] == 1


def test_without_any_data_there_are_no_runs(tmp_path: Path) -> None:
    with tensorboard(f"--logdir={tmp_path}") as board:
        assert board.ask("runs").json == {"format": FORMAT, "runs": []}
        assert board.get("data/plugins_listing").json["gradflow"]["enabled"] is False
