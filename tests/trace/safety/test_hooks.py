"""The hooks of `tb-gradflow run`: what they are installed on, and what remains if that fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.recorded import Recorded
from tb_gradflow.trace.program import hooks
from tests.serve.processes import environment


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
    done = subprocess.run(
        [sys.executable, "-c", REPLACED, str(tmp_path)],
        env=environment(tensorflow=True),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[-2] == "['fitted'] ['fitted', 'batched']"
    assert "not recorded" not in done.stderr
