"""`tb-gradflow view` in a process: the plugin's answers at the same addresses, without TensorBoard."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tb_gradflow.record.schema import FORMAT
from tb_gradflow.serve.routes import STATIC
from tb_gradflow.serve.server import server
from tests.recordings.logs import opened
from tests.serve.processes import TensorBoard, environment
from tests.serve.test_routes import Board, body, told
from tests.store.samples import open_writer, session, step, trace, write_log

SESSION = session().id
PREFIX = "data/plugin/gradflow"


def start(logdir: Path, *options: str, without: Path | None = None) -> subprocess.Popen[str]:
    """`without` is a directory of modules that take the place of installed ones."""
    variables = environment(tensorflow=False)
    if without is not None:
        variables["PYTHONPATH"] = os.pathsep.join((str(without), variables["PYTHONPATH"]))
    command = [sys.executable, "-m", "tb_gradflow", "view", str(logdir), *options]
    # A shell that starts the tests in the background lets them ignore Ctrl-C, and what they start.
    listening = functools.partial(signal.signal, signal.SIGINT, signal.default_int_handler)
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=variables, stdout=pipe, stderr=pipe, text=True, preexec_fn=listening)


@contextlib.contextmanager
def view(logdir: Path, without: Path | None = None) -> Iterator[TensorBoard]:
    process = start(logdir, without=without)
    try:
        assert process.stdout is not None
        address = re.search(r"http://\S+", process.stdout.readline())
        assert address is not None, process.communicate(timeout=30)
        yield TensorBoard(address[0], process.pid)
    finally:
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (0, "")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("logs")
    write_log(root / "good", steps=100)
    write_log(root / "without steps", steps=0)
    open_writer(root / "newer", session(format=FORMAT + 98)).close()
    opened("trainings/1_masked_weight_and_adam", root / "trained")
    return root


@pytest.fixture(scope="module")
def viewer(logs: Path) -> Iterator[TensorBoard]:
    with view(logs) as running:
        yield running


@pytest.fixture(scope="module")
def board(logs: Path) -> Board:
    return Board(logs)


QUESTIONS: tuple[tuple[str, dict[str, object]], ...] = (
    ("runs", {}),
    ("overview", {"run": "good/gradflow"}),
    ("overview", {"run": "without steps/gradflow"}),
    ("overview", {"run": "newer/gradflow"}),
    ("overview", {"run": "../../etc"}),
    ("trace", {"run": "good/gradflow", "session": SESSION, "trace": 0}),
    ("report", {"run": "good/gradflow"}),
    ("report", {"run": "trained/gradflow", "step": 0}),
    ("report", {"run": "good/gradflow", "step": 5000}),
    ("gradients", {"run": "good/gradflow", "session": SESSION, "chunk": 33}),
    ("variables", {"run": "good/gradflow", "session": SESSION, "chunk": 33, "at": 31}),
    ("series", {"run": "good/gradflow", "row": 0}),
    ("weights", {"run": "good/gradflow", "variable": 1}),
    ("heat", {"run": "good/gradflow", "trace": 0, "target": 0, "quantity": "ratio", "columns": 7}),
    ("page", {"run": "good/gradflow"}),
    ("gradients", {}),
)


@pytest.mark.parametrize(("route", "parameters"), QUESTIONS)
def test_a_route_answers_as_in_tensorboard(
    viewer: TensorBoard, board: Board, route: str, parameters: dict[str, object]
) -> None:
    theirs = board.ask(route, None, **parameters)

    ours = viewer.ask(route, **parameters)

    assert (ours.status, ours.headers["Content-Type"]) == (theirs.status_code, theirs.headers["Content-Type"])
    assert ours.body == body(theirs)


def test_all_runs_are_judged_as_in_tensorboard(viewer: TensorBoard, board: Board) -> None:
    while not (theirs := told(board.ask("standings")))["complete"]:
        pass

    while not (ours := viewer.ask("standings").json)["complete"]:
        pass

    assert ours == theirs


def test_the_page_starts_the_script_that_tensorboard_starts(viewer: TensorBoard) -> None:
    page = viewer.get("")

    assert page.status == 200
    assert page.headers["Content-Type"].startswith("text/html")
    assert b'import("./static/index.js")' in page.body
    assert "default-src 'self'" in page.headers["Content-Security-Policy"]
    assert viewer.get(f"{PREFIX}/static/index.js").body == (STATIC / "index.js").read_bytes()


def test_there_are_no_scalars_to_link_and_that_is_no_error(viewer: TensorBoard) -> None:
    answer = viewer.get("data/plugin/timeseries/tags")

    assert (answer.status, answer.json) == (200, {})


@pytest.mark.parametrize("path", ["runs", "data", PREFIX, f"{PREFIX}/static", f"{PREFIX}/static/../x.py"])
def test_nothing_is_at_other_addresses(viewer: TensorBoard, path: str) -> None:
    assert viewer.get(path).status == 404


def test_a_page_that_comes_by_another_name_reads_nothing(viewer: TensorBoard) -> None:
    """A name that somebody else makes lead to this machine makes their page and ours one origin."""
    request = urllib.request.Request(f"{viewer.url}{PREFIX}/runs", headers={"Host": "example.com"})

    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=30)

    assert refused.value.code == 403


def test_only_this_machine_can_connect(viewer: TensorBoard) -> None:
    port = int(viewer.url.rstrip("/").rpartition(":")[2])

    # All of 127.0.0.0/8 is this machine: a server on all addresses would answer here too.
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", port), timeout=30).close()


def test_steps_appear_while_a_training_writes_them(tmp_path: Path) -> None:
    writer = open_writer(tmp_path / "run")
    writer.write_trace(trace())
    writer.write_step(step(0))
    with view(tmp_path) as viewer:
        before = viewer.ask("overview", run="run/gradflow").json["steps"]
        for number in range(1, 41):
            writer.write_step(step(number))
        writer.flush()
        write_log(tmp_path / "second")

        viewer.wait_for_steps("run/gradflow", 41)
        names = [run["name"] for run in viewer.wait_for_runs(2)]

    writer.close()
    assert before == [0]
    assert names == ["run", "second"]


def test_it_starts_where_tensorboard_does_not(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "grpc.py").write_text("raise ImportError('grpc is broken here')\n")
    command = [sys.executable, "-m", "tensorboard.main", f"--logdir={logs}", "--port=0"]
    path = os.pathsep.join((str(tmp_path), environment(tensorflow=False)["PYTHONPATH"]))
    board = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False, timeout=60
    )
    assert board.returncode != 0
    assert "grpc is broken here" in board.stderr

    with view(logs, without=tmp_path) as viewer:
        assert len(viewer.wait_for_runs(4)) == 4


def ended(logdir: Path, *options: str) -> tuple[int, str]:
    process = start(logdir, *options)
    out, err = process.communicate(timeout=60)
    assert out == ""
    return process.returncode, err


def test_a_port_that_is_in_use_is_an_error_in_words(logs: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status, said = ended(logs, "--port", str(port))

    assert status == 2
    assert said == (
        f"tb-gradflow: port {port} cannot be used (Address already in use): give another one, or 0 for any free one\n"
    )


def test_a_wrong_port_or_directory_is_an_error_in_words(logs: Path, tmp_path: Path) -> None:
    of_port, of_directory = ended(logs, "--port", "70000"), ended(tmp_path)

    assert (of_port[0], of_directory[0]) == (2, 2)
    assert "port must be 0-65535" in of_port[1]
    assert "holds no event files: expected a log of tb-gradflow" in of_directory[1]


def test_a_request_that_the_end_of_the_process_interrupts_is_no_error(
    logs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    serving = server(str(logs), 0)

    def failing() -> str:
        try:
            raise RuntimeError("cannot schedule new futures")
        except RuntimeError:
            serving.handle_error(None, ("127.0.0.1", 1))
        return capsys.readouterr().err

    while_running = failing()
    serving.server_close()

    assert "RuntimeError: cannot schedule new futures" in while_running
    assert failing() == ""
