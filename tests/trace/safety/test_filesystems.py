"""Logs wherever `tf.io.gfile` can write: a filesystem of TensorFlow's own, addresses of local files, odd names."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow import GradFlowCallback
from tb_gradflow.errors import LogError, SetupError
from tests.serve.processes import environment
from tests.trace.recording import data, read


@pytest.fixture
def address() -> str:
    """A directory of the filesystem that TensorFlow keeps in this process's memory."""
    return f"ram://logs-{time.time_ns()}/größe 1"


def fit(log_dir: Any) -> None:
    keras.utils.set_random_seed(7)
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(2, name="d")], name="net")
    model.compile("sgd", "mse")
    model.fit(*data(rows=64), batch_size=16, verbose=0, callbacks=[GradFlowCallback(log_dir, update_freq=1)])


def loop(log_dir: Any) -> Any:
    weight = tf.Variable([1.0, 2.0], name="weight")

    @tb_gradflow.watch(log_dir, update_freq=1)
    def step() -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(weight))
        weight.assign_sub(0.1 * tape.gradient(loss, weight))
        return loss

    for _ in range(3):
        step()
    step.flush()
    return step


def test_a_log_of_another_filesystem_says_what_a_local_one_says(address: str, tmp_path: Path) -> None:
    fit(address)
    fit(tmp_path / "local")

    there, here = (tb_gradflow.open_log(path) for path in (address, tmp_path / "local"))

    assert there.steps == here.steps == (0, 1, 2, 3)
    assert there.history("net/d/kernel")["norm"].tolist() == here.history("net/d/kernel")["norm"].tolist()
    assert there.report().variables == here.report().variables


def test_a_log_of_another_filesystem_is_read_while_it_grows(address: str) -> None:
    step = loop(address)
    log = tb_gradflow.open_log(address)
    before = log.steps

    step()
    step.flush()

    assert before == (0, 1, 2)
    assert log.steps == (0, 1, 2, 3)


def test_records_beside_those_of_a_summary_writer_are_found_there_too(address: str) -> None:
    writer = tf.summary.create_file_writer(address)
    weight = tf.Variable([1.0, 2.0], name="weight")
    with writer.as_default(step=4):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(weight))
        gradients = tape.gradient(loss, [weight])
        tb_gradflow.summary.gradients(loss, [weight], gradients)
        tf.summary.scalar("loss", loss)
    writer.flush()

    assert tb_gradflow.open_log(address).steps == (4,)


@pytest.mark.parametrize("record", [fit, loop])
@pytest.mark.parametrize("name", ["mit leer/größe ü", "slash/", "日本語", "a%20b#c?d"])
def test_local_directories_of_any_name(name: str, record: Callable[[Any], Any], tmp_path: Path) -> None:
    record(f"{tmp_path}/{name}")

    assert read(tmp_path / name).steps[0] == 0
    assert tb_gradflow.open_log(f"{tmp_path}/{name}").steps == tb_gradflow.open_log(tmp_path / name).steps


@pytest.mark.parametrize("record", [fit, loop])
def test_the_address_of_a_local_file_is_its_path(record: Callable[[Any], Any], tmp_path: Path) -> None:
    record(f"file://{tmp_path}/a run")

    assert read(tmp_path / "a run").steps[0] == 0
    assert tb_gradflow.open_log(f"file://{tmp_path}/a run").steps == tb_gradflow.open_log(tmp_path / "a run").steps
    assert tb_gradflow.open_log(f"file://{tmp_path}").name == "a run"


@pytest.mark.parametrize("record", [fit, loop])
def test_a_program_may_have_deleted_its_working_directory(
    record: Callable[[Any], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    monkeypatch.syspath_prepend("relative")
    gone.rmdir()

    record(tmp_path / "log")

    assert len(read(tmp_path / "log").steps) >= 3


def test_a_path_object_that_has_lost_a_slash_of_an_address_is_told(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"give the string 'gs://bucket/run'"):
        GradFlowCallback(Path("gs://bucket/run"))


def test_an_address_where_nothing_lies_is_told(address: str) -> None:
    with pytest.raises(LogError, match=r"ram://.* does not exist"):
        tb_gradflow.open_log(address)


def test_the_address_of_a_file_is_told(address: str) -> None:
    fit(address)
    [file] = tf.io.gfile.glob(f"{address}/gradflow/*")

    with pytest.raises(LogError, match=r"ram://.* is a file: expected the directory"):
        tb_gradflow.open_log(file)


def test_a_scheme_that_nobody_knows_is_told_when_it_is_read_and_before_it_is_written() -> None:
    with pytest.raises(LogError, match=r"nowhere://run cannot be read .* copy the log to this machine"):
        tb_gradflow.open_log("nowhere://run")
    with pytest.raises(SetupError, match="cannot write to log_dir 'nowhere://run'"):
        GradFlowCallback("nowhere://run")


def test_without_tensorflow_its_own_filesystems_cannot_be_read_and_the_reader_says_so() -> None:
    code = "import tb_gradflow\ntry: tb_gradflow.open_log('ram://run')\nexcept Exception as error: print(repr(error))"

    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(False), capture_output=True, text=True, check=True
    )

    assert done.stdout.startswith("LogError")
    assert "ram:// needs TensorFlow" in done.stdout
