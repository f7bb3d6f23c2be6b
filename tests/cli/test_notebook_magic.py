"""`%%gradflow` in IPython's own shell, in a process of its own: the hooks stay where they are once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tb_gradflow
from tests.serve.processes import environment

pytest.importorskip("IPython")

SHELL = """\
import json, os, sys
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
shell, said = InteractiveShell.instance(), []
for cell in json.load(sys.stdin):
    with capture_output() as captured:
        result = shell.run_cell(cell, store_history=True)
    said.append({
        "ok": result.success, "out": captured.stdout, "err": captured.stderr,
        "error": type(result.error_in_exec or result.error_before_exec).__name__,
        "html": [each.data["text/html"] for each in captured.outputs if "text/html" in each.data],
        "text": [each.data["text/plain"] for each in captured.outputs],
        "tensorflow": "tensorflow" in sys.modules,
    })
print("\\n" + json.dumps(said))
"""


def cells(directory: Path, *given: str) -> list[dict[str, Any]]:
    """What each cell of a notebook shows."""
    done = subprocess.run(
        [sys.executable, "-c", SHELL],
        cwd=directory,
        env={**environment(tensorflow=True), "IPYTHONDIR": str(directory / "ipython")},
        input=json.dumps(["%load_ext tb_gradflow", *given]),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    assert found[0]["ok"], found[0]
    assert not found[0]["tensorflow"], "the extension alone loads no TensorFlow"
    return found[1:]


STEP = """\
%%gradflow --logdir cut
import keras, numpy as np, tensorflow as tf
threshold = tf.Variable(0.5, name="threshold")
@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.cast(x > threshold, tf.float32) * x)
    return tape.gradient(loss, threshold)
for _ in range(3):
    train_step(tf.constant([0.1, 0.9]))
print("printed")
6 * 7
"""

FIT = """\
%%gradflow
model = keras.Sequential([keras.layers.Dense(1)], name="fitted")
model.compile("sgd", "mse")
history = model.fit(np.ones((8, 2)), np.ones((8, 1)), verbose=0, epochs=3)
for _ in range(3):
    with tf.GradientTape() as tape:
        loss = (threshold - 1.0) ** 2
    threshold.assign_sub(0.1 * tape.gradient(loss, threshold))
"""

AGAIN = """\
%%gradflow --logdir again
model.fit(np.ones((8, 2)), np.ones((8, 1)), verbose=0)
train_step(tf.constant([0.1, 0.9]))
"""

WATCHED = """\
%%gradflow --logdir doubly
import tb_gradflow, tensorflow as tf
threshold = tf.Variable(0.5)
@tb_gradflow.watch("own")
def watched(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(x * threshold)
    return tape.gradient(loss, threshold)
watched(tf.constant([0.1, 0.9]))
"""


def test_a_cell_is_recorded_and_its_report_shown(tmp_path: Path) -> None:
    watched, step, fit, again, plain, error, syntax, nothing, wrong, helped, given = cells(
        tmp_path,
        WATCHED,
        STEP,
        FIT,
        AGAIN,
        "train_step(tf.constant([0.1, 0.9])); history.history['loss'][-1] < 2",
        "%%gradflow\nmodel.fit(np.ones((8, 2)), np.ones((8, 1)), verbose=0)\n1 / 0",
        "%%gradflow\nx =",
        "%%gradflow\nx = 5",
        "%%gradflow --nonsense\nx = 6",
        "%%gradflow --help\nx = 7",
        AGAIN.replace("--logdir again", "--logdir thrice --update-freq 2 --no-source").replace(
            "verbose", "epochs=4, verbose"
        ),
    )

    assert "nothing was recorded" in watched["out"], "its author records it already"
    assert (tmp_path / "own" / "gradflow").is_dir()
    assert step["ok"], step
    assert step["out"].startswith("printed\nOut[3]: 42\n")
    assert len(step["html"]) == 1
    assert "<iframe" in step["html"][0]
    assert "nondiff_comparison" in step["text"][0]
    assert "In[3]:7" in step["text"][0], "the line that the notebook shows"
    assert tb_gradflow.open_log(tmp_path / "cut" / "train_step").steps == (0, 1, 2)
    assert fit["ok"], fit
    assert "2 runs: 2 healthy" in fit["out"]
    assert len(fit["html"]) == 2
    named, _ = sorted((tmp_path / "logs" / "notebook").glob("*/fitted"))
    assert tb_gradflow.open_log(named).steps == (0, 1, 2)
    assert sorted(each.name for each in (tmp_path / "again").iterdir()) == ["fitted", "train_step"]
    assert again["out"].startswith("2 runs: 1 error, 1 healthy")
    assert plain["ok"], plain
    assert plain["html"] == [], "without the magic nothing is recorded"
    assert (error["ok"], error["error"]) == (False, "ZeroDivisionError")
    assert len(error["html"]) == 1, "what trained before the error is shown"
    assert "ZeroDivisionError" in error["out"] + error["err"]
    assert (syntax["ok"], syntax["error"]) == (False, "SyntaxError")
    assert "nothing was recorded" in nothing["out"]
    assert wrong["ok"]
    assert "--nonsense" in wrong["out"] + wrong["err"]
    assert "--update-freq WHEN" in helped["out"]
    assert given["ok"], given
    assert len(tb_gradflow.open_log(tmp_path / "thrice" / "fitted").steps) == 2


PLAIN = """\
import keras, numpy as np, sys
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
finders = list(sys.meta_path)
shell = get_ipython()
own = sorted(vars(shell)), sorted(vars(shell.compile))
names = None
names = sorted(name for name in globals() if not name.startswith("_"))
"""

CHECKED = """\
now = sorted(name for name in globals() if not name.startswith("_"))
assert now == sorted([*names, "history"]), now
assert (sorted(vars(shell)), sorted(vars(shell.compile))) == own
assert list(sys.meta_path) == finders
assert len(history.epoch) == 2
model.fit(np.ones((8, 2)), np.ones((8, 1)), verbose=0)
"""


@pytest.mark.parametrize("end", ["6 * 7", "1 / 0"])
def test_nothing_is_left_behind_the_cell_but_what_the_cell_made(tmp_path: Path, end: str) -> None:
    fit = "%%gradflow --logdir kept\nhistory = model.fit(np.ones((8, 2)), np.ones((8, 1)), verbose=0, epochs=2)\n"

    plain, recorded, checked, last = cells(tmp_path, PLAIN, fit + end, CHECKED, "Out")

    assert plain["ok"], plain
    assert (recorded["ok"], recorded["error"]) == (
        (True, "NoneType") if end == "6 * 7" else (False, "ZeroDivisionError")
    )
    assert len(recorded["html"]) == 1
    assert checked["ok"], checked
    assert ("42" in last["out"]) == recorded["ok"]
    assert [each.name for each in (tmp_path / "kept").iterdir()] == ["sequential"]
