"""The command `tb-gradflow demo`, as a process of its own."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import pytest

from tb_gradflow.demo.gallery import DEMOS
from tests.serve.processes import environment

COMMAND = (sys.executable, "-m", "tb_gradflow.cli.main", "demo")


def run(arguments: Sequence[str], directory: Path, tensorflow: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=directory,
        env=environment(tensorflow),
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def test_it_trains_the_named_ones_and_says_what_is_wrong_with_them(tmp_path: Path) -> None:
    done = run(["bump_with_where", "--logdir", "here", "--no-serve"], tmp_path)

    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == ["bump_with_where"]
    broken, fixed = done.stdout.split("bump_with_where/fixed, step ")
    assert "recorded in " in broken
    # Of the step in which the weights became NaN, and not of the last, to which they came as NaN.
    assert "ERROR  where_inactive_branch" in broken
    assert "return tf.exp(-squared / (squared - tf.square(x)))" in broken
    assert fixed.partition("\n")[0].endswith("Healthy: the gradient reaches the trainable variable.")
    assert "tensorboard --logdir here" in fixed


def test_it_lists_what_there_is_without_tensorflow(tmp_path: Path) -> None:
    done = run(["--list"], tmp_path, tensorflow=False)

    assert done.returncode == 0
    rows = [re.split(r" {2,}", line) for line in done.stdout.splitlines()]
    assert rows == [[demo.name, demo.cause, demo.title] for demo in DEMOS]
    assert max(map(len, done.stdout.splitlines())) <= 120
    assert list(tmp_path.iterdir()) == []


def test_without_tensorflow_it_says_what_to_install(tmp_path: Path) -> None:
    done = run([], tmp_path, tensorflow=False)

    assert done.returncode == 2
    assert re.match(r"tb-gradflow: .* needs \w+, which is not installed: `pip install tensorflow`", done.stderr)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="looks into processes the way Linux shows them")
def test_tensorflow_gives_its_memory_back_before_tensorboard_serves(tmp_path: Path) -> None:
    code = (
        "import tb_gradflow.cli.demo as demo; from tb_gradflow.cli.main import main; "
        "demo.serve = lambda command: print(open('/proc/self/maps').read()) or 0; "
        "main(['demo', 'floor_detour', '--logdir', 'here'])"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment(True), capture_output=True, text=True, check=True
    )

    assert "floor_detour/broken: compiling and training" in done.stdout
    assert "numpy" in done.stdout
    assert "tensorflow" not in done.stdout.partition("[heap]")[2]


def test_a_terminated_command_ends_the_training_too(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "resnet50", "--logdir", "here", "--no-serve"],
        cwd=tmp_path,
        env=environment(True),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout is not None
    said = read_until(process.stdout.fileno(), "resnet50/broken: compiling and training")
    assert "compiling" in said

    process.terminate()

    assert process.wait(timeout=30) == 128 + signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def test_an_unknown_name_is_answered_with_those_that_there_are(tmp_path: Path) -> None:
    done = run(["bert"], tmp_path)

    assert done.returncode == 2
    assert done.stderr.startswith("tb-gradflow: there is no demonstration 'bert': there are step_filter, resnet50, ")


@pytest.mark.parametrize(
    ("by", "status"), [("Ctrl-C", 0), ("SIGTERM", 128 + signal.SIGTERM)], ids=["Ctrl-C", "SIGTERM"]
)
def test_tensorboard_is_served_until_it_is_interrupted(tmp_path: Path, by: str, status: int) -> None:
    code = (
        "import sys; from tb_gradflow.cli.demo import TensorBoard, end_children_with_us, serve\n"
        "end_children_with_us()\n"
        f"with TensorBoard([sys.executable, '-m', 'tensorboard.main', '--logdir={tmp_path}', '--port=0']) as board:\n"
        "    sys.exit(serve(board))"
    )
    terminal, inside = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env=environment(tensorflow=False),
        stdin=inside,
        stdout=inside,
        stderr=inside,
        preexec_fn=take_terminal,
    )
    os.close(inside)
    said = read_until(terminal, r"Open (http://\S+)#gradflow")
    address = re.findall(r"Open (http://\S+)#gradflow", said)[0]
    assert urllib.request.urlopen(f"{address}data/plugin/gradflow/runs", timeout=30).status == 200

    if by == "Ctrl-C":
        os.write(terminal, b"\x03")
    else:
        process.terminate()

    assert process.wait(timeout=30) == status
    assert "Traceback" not in read_until(terminal, "$.", seconds=1)
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(address, timeout=5)


def take_terminal() -> None:
    """Makes the process the one that Ctrl-C in the terminal reaches, with its children."""
    import fcntl
    import termios

    # A shell that starts the tests in the background has them ignore it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def read_until(terminal: int, pattern: str, seconds: float = 60) -> str:
    """What appears on a terminal until it matches `pattern`, nobody writes to it any more, or the time is over."""
    said = ""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not re.search(pattern, said):
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                said += os.read(terminal, 4096).decode(errors="replace")
            except OSError:
                break
    return said
