"""Real TensorBoard processes, and questions to them."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]
WITHOUT_TENSORFLOW = Path(__file__).parent / "without_tensorflow"
"""On the `PYTHONPATH`, it makes every import of TensorFlow and Keras fail as if they were not installed."""


def environment(tensorflow: bool) -> dict[str, str]:
    """For a process that finds this checkout, and TensorFlow or not."""
    path = [str(REPOSITORY), os.environ.get("PYTHONPATH", "")]
    if not tensorflow:
        path.insert(0, str(WITHOUT_TENSORFLOW))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path)), "TF_CPP_MIN_LOG_LEVEL": "3"}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server said.

    Attributes:
        body: Unzipped if it came zipped.
    """

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class TensorBoard:
    """A running TensorBoard.

    Attributes:
        url: Ends with a slash.
        pid: Of its process, which may have others below it.
    """

    url: str
    pid: int

    def get(self, path: str) -> Answer:
        """The answer to a path below TensorBoard's address, whatever its status."""
        return ask_at(self.url, path)

    def ask(self, route: str, **parameters: object) -> Answer:
        """The answer of one of the plugin's routes."""
        return self.get(f"data/plugin/gradflow/{route}?{urllib.parse.urlencode(parameters)}")

    def wait_for_steps(self, run: str, count: int, seconds: float = 60) -> None:
        """Until TensorBoard has loaded that many steps of a run."""
        deadline = time.monotonic() + seconds
        while len(self.ask("overview", run=run).json["steps"]) < count:
            assert time.monotonic() < deadline, f"{run} has not {count} steps after {seconds} s"
            time.sleep(0.2)

    def wait_for_runs(self, count: int, seconds: float = 60) -> list[Any]:
        """The runs, once TensorBoard has loaded that many."""
        deadline = time.monotonic() + seconds
        while True:
            runs: list[Any] = self.ask("runs").json["runs"]
            if len(runs) >= count:
                return runs
            assert time.monotonic() < deadline, f"{count} runs expected, after {seconds} s there are {runs}"
            time.sleep(0.2)


def ask_at(url: str, path: str) -> Answer:
    """The answer to a path below an address, whatever its status."""
    request = urllib.request.Request(url + path, headers={"Accept-Encoding": "gzip"})
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            status, headers, body = response.status, dict(response.headers), response.read()
    except urllib.error.HTTPError as error:
        status, headers, body = error.code, dict(error.headers), error.read()
    if headers.get("Content-Encoding") == "gzip":
        body = gzip.decompress(body)
    return Answer(status, headers, body)


@contextlib.contextmanager
def tensorboard(*flags: str, tensorflow: bool = False) -> Iterator[TensorBoard]:
    """A TensorBoard of its own on a free port, ended when the block ends."""
    command = [sys.executable, "-m", "tensorboard.main", "--port=0", "--reload_interval=1", *flags]
    process = subprocess.Popen(
        command, env=environment(tensorflow), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        yield TensorBoard(address_of(process), process.pid)
    finally:
        process.terminate()
        process.communicate(timeout=30)


def address_of(process: subprocess.Popen[str]) -> str:
    """Where a TensorBoard that has just been started answers."""
    said = []
    assert process.stderr is not None
    for line in process.stderr:
        said.append(line)
        found = re.search(r"TensorBoard \S+ at (http://\S+)", line)
        if found:
            return found[1].rstrip("/") + "/"
    raise AssertionError(f"TensorBoard ended with status {process.wait()}:\n{''.join(said)}")
