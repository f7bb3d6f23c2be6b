"""The hooks of `tb-gradflow run`: what they are installed on, and what remains if that fails."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.recorded import Recorded
from tb_gradflow.trace.program import hooks
from tb_gradflow.trace.program.recording import Recording
from tests.serve.processes import environment


def ran(program: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """A program in a process of its own, where nothing has been hooked yet; it must not fail."""
    done = subprocess.run(
        [sys.executable, "-c", program, str(directory)],
        env=environment(tensorflow=True),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done


def eager_steps() -> None:
    weight = tf.Variable([1.0, 2.0], name="weight")
    for _ in range(2):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(weight**2)
        weight.assign_sub(0.1 * tape.gradient(loss, weight))


def test_a_hook_that_cannot_be_installed_is_reported_and_the_others_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: Any) -> None:
        raise KeyError("train_on_batch")

    for name in hooks.HOOKS.keys() & sys.modules.keys():
        hooks.hook(name)  # once in a process
    monkeypatch.setattr(hooks, "HOOKS", {**hooks.HOOKS, "keras": fails})
    monkeypatch.setattr(hooks, "_hooked", set(hooks._hooked) - {"keras"})
    recorded = Recorded(lambda: str(tmp_path), {"update_freq": 1})

    with pytest.warns(RuntimeWarning, match="could not record part of this program"):
        recorded.start()
    eager_steps()
    recorded.stop()

    [name] = recorded.names
    assert tb_gradflow.open_log(tmp_path / name).report().healthy
    assert hooks.current() is None


def test_trainings_with_long_names_have_directories(tmp_path: Path) -> None:
    recording = Recording(str(tmp_path), {})

    places = [recording.begin(300 * "ü") for _ in range(2)]

    assert len({place.name for place in places if place is not None and Path(place.log_dir).is_dir()}) == 2


def test_an_eager_step_that_a_new_function_ends_is_recorded(tmp_path: Path) -> None:
    weight = tf.Variable(2.0)

    @tf.function
    def compiled() -> None:
        with tf.GradientTape() as tape:
            loss = weight**2
        weight.assign_sub(0.1 * tape.gradient(loss, weight))

    recorded = Recorded(lambda: str(tmp_path), {"update_freq": 1})
    recorded.start()
    eager_steps()
    compiled()
    recorded.stop()

    [eager, _] = recorded.names
    assert tuple(tb_gradflow.open_log(tmp_path / eager).steps) == (0, 1)


def test_nothing_stays_behind_a_recording_that_cannot_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(_: str) -> None:
        raise ValueError("by the test")

    monkeypatch.setattr(hooks, "hook", fails)
    recorded = Recorded(lambda: str(tmp_path))

    recorded.start()
    eager_steps()

    assert "are not recorded" in capsys.readouterr().err
    assert hooks.current() is None
    assert isinstance(np.sqrt, np.ufunc)
    recorded.stop()
    assert recorded.names == []


REPLACED = """
import sys
import threading
import keras, numpy as np
from tb_gradflow.recorded import Recorded
plain = keras.Model.fit
calls = []
def fit(self, *args, **kwargs):
    calls.append(self.name)
    return plain(self, *args, **kwargs)
keras.Model.fit = fit
def model(name):
    made = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)], name=name)
    made.compile("sgd", "mse")
    return made
x, y = np.ones((8, 3)), np.ones((8, 1))
recorded = Recorded(lambda: sys.argv[1])
recorded.start()
model("fitted").fit(x, y, verbose=0)
model("batched").train_on_batch(x, y)
recorded.stop()
print(calls, recorded.names)
"""


def test_a_fit_that_a_program_has_replaced_before_is_recorded(tmp_path: Path) -> None:
    """As libraries do that log every training: they assign to `keras.Model`, which inherits its methods."""
    done = ran(REPLACED, tmp_path)

    assert done.stdout.split("\n")[-2] == "['fitted'] ['fitted', 'batched']"
    assert "not recorded" not in done.stderr


FORKED = """
import faulthandler, os, sys, threading
import numpy as np, tensorflow as tf
from tensorflow.python import pywrap_tfe
from tb_gradflow.recorded import Recorded
faulthandler.dump_traceback_later(60, exit=True)
plain = pywrap_tfe.TFE_Py_FastPathExecute
recorded = Recorded(lambda: sys.argv[1], {"update_freq": 1})
def loop(then):
    weight = tf.Variable([1.0, 2.0])
    for number in range(2):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(weight**2)
            if number == 1:
                then()
        weight.assign_sub(0.1 * tape.gradient(loss, weight))
    return weight.numpy()
def forked():
    pid = os.fork()
    if pid:
        assert os.waitpid(pid, 0)[1] == 0
        return
    assert isinstance(np.sqrt, np.ufunc) and pywrap_tfe.TFE_Py_FastPathExecute is plain
    assert np.array_equal(loop(lambda: None), alone)
    sys.stdout.write("child ")
    sys.stdout.flush()
    os._exit(0)
def elsewhere():
    loop(lambda: None)
    entered, may_go_on = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: loop(lambda: (entered.set(), may_go_on.wait(60))))
    thread.start()
    assert entered.wait(60) and not isinstance(np.sqrt, np.ufunc)
    forked()
    may_go_on.set()
    thread.join()
alone = loop(lambda: None)
recorded.start()
assert np.array_equal(loop(forked), alone)
elsewhere()
recorded.stop()
import tb_gradflow
print(tb_gradflow.open_log(os.path.join(sys.argv[1], recorded.names[0])).steps)
"""


def test_a_fork_in_the_middle_of_an_eager_step_is_not_recorded_and_does_not_wait(tmp_path: Path) -> None:
    """In its own thread, which goes on with the step in both processes, and in another, which only the parent has."""
    done = ran(FORKED, tmp_path)

    assert done.stdout == "child child (0, 1, 2, 3, 4, 5)\n"
    assert "could not record" not in done.stderr


def test_what_a_library_replaces_in_the_middle_of_a_step_remains(tmp_path: Path) -> None:
    """As one does that is first imported, or turned on, when it is first used."""
    calls: list[str] = []
    plain = replaced = tf.GradientTape.gradient

    def gradient(self: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append("gradient")
        return 0.5 * replaced(self, *args, **kwargs)

    weight = tf.Variable([1.0, 2.0], name="weight")
    recorded = Recorded(lambda: str(tmp_path), {"update_freq": 1})
    recorded.start()
    try:
        for number in range(3):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(weight**2)
                if number == 0:
                    replaced, tf.GradientTape.gradient = tf.GradientTape.gradient, gradient
            weight.assign_sub(0.1 * tape.gradient(loss, weight))
    finally:
        recorded.stop()
        during = tf.GradientTape.gradient
        tf.GradientTape.gradient = replaced  # the library puts back what it has found
    eager_steps()
    after = tf.GradientTape.gradient
    tf.GradientTape.gradient = plain

    assert calls == ["gradient"] * 3
    assert during is gradient
    assert after is replaced
    assert np.allclose(weight.numpy(), np.array([1.0, 2.0]) * 0.9**3)
    [name] = recorded.names
    assert tb_gradflow.open_log(tmp_path / name).steps == (0, 1, 2)


def test_a_fit_while_a_tape_is_open_is_not_recorded_and_that_is_said(tmp_path: Path) -> None:
    """A generator that nobody resumes keeps its tape open."""

    def losses_of(weight: tf.Variable) -> Generator[tf.Tensor, None, None]:
        with tf.GradientTape():
            yield tf.reduce_sum(weight**2)

    def trained() -> list[float]:
        keras.utils.set_random_seed(1)
        model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        losses: list[float] = model.fit(np.ones((8, 3)), np.ones((8, 1)), verbose=0, epochs=2).history["loss"]
        return losses

    alone = trained()
    recorded = Recorded(lambda: str(tmp_path), {"update_freq": 1})
    recorded.start()
    left = losses_of(tf.Variable([1.0, 2.0]))
    try:
        next(left)
        with pytest.warns(RuntimeWarning, match=r"test_hooks.py:\d+ is open") as told:
            inside = [trained(), trained()]
        left.close()
        assert inside == [alone, alone]
        assert trained() == alone
    finally:
        recorded.stop()

    assert len([each for each in told if "tb_gradflow" in str(each.message)]) == 1
    assert len([name for name in recorded.names if name.startswith("sequential")]) == 1
