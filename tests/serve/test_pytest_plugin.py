"""The fixture `gradflow`, in pytest processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.serve.processes import environment

PLUGIN = "tb_gradflow.pytest_plugin"

# A training that needs no TensorFlow: a log that somebody else has written.
WRITE = """
import pytest
import tb_gradflow.pytest_plugin
from tests.store.samples import open_writer, step, trace, write_log

def training(gradflow):
    return gradflow._begin()[1]
"""


def pytest_says(program: str, directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (directory / "test_it.py").write_text(WRITE + program)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", PLUGIN, *arguments, "test_it.py"],
        cwd=directory,
        env={**environment(tensorflow=False), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_test_fails_by_a_training_that_nobody_asserted_anything_about(tmp_path: Path) -> None:
    done = pytest_says("def test_it(gradflow): write_log(training(gradflow))", tmp_path)

    assert "1 failed" in done.stdout
    assert "ERROR  nondiff_comparison" in done.stdout
    assert "Look at it: tensorboard --logdir " in done.stdout
    assert "pytest_runtest_call" not in done.stdout, "the plugin's own frames are nobody's business"


def test_what_was_asserted_is_not_asserted_again(tmp_path: Path) -> None:
    done = pytest_says(
        """
def test_expected(gradflow):
    write_log(training(gradflow))
    gradflow.assert_healthy(expected=["step_filter/*"])
    assert gradflow.reports["training1"].variables["dense/kernel"].status == "connected"

def test_a_later_one(gradflow):
    write_log(training(gradflow))
    gradflow.assert_healthy(expected=["step_filter/*"])
    write_log(training(gradflow))

def test_asserted(gradflow):
    write_log(training(gradflow))
    gradflow.assert_healthy()
""",
        tmp_path,
    )

    assert "2 failed, 1 passed" in done.stdout
    assert "training2, step 2" in done.stdout
    assert "UnhealthyGradients" in done.stdout


def test_a_training_that_recorded_nothing_fails(tmp_path: Path) -> None:
    done = pytest_says("def test_it(gradflow): training(gradflow)", tmp_path)

    assert "1 failed" in done.stdout
    assert "training1 recorded no step" in done.stdout


def test_a_test_that_fails_by_itself_shows_the_report_too(tmp_path: Path) -> None:
    done = pytest_says(
        """
def test_it(gradflow):
    write_log(training(gradflow))
    raise ValueError("No gradients provided for any variable.")

def test_skipped(gradflow):
    write_log(training(gradflow))
    pytest.skip("not here")
""",
        tmp_path,
    )

    assert "1 failed, 1 skipped" in done.stdout
    assert "ValueError: No gradients provided" in done.stdout
    assert done.stdout.count("ERROR  nondiff_comparison") == 1


def test_it_loads_nothing_and_makes_no_directory_until_a_training_begins(tmp_path: Path) -> None:
    program = """
import sys

def test_unused():
    loaded = {"tensorflow", "keras", "tensorboard", "numpy", "tb_gradflow.api"} & set(sys.modules)
    assert not loaded, loaded

def test_used(gradflow):
    assert "numpy" not in sys.modules
"""
    (tmp_path / "test_it.py").write_text(program)
    base = tmp_path / "base"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", PLUGIN, f"--basetemp={base}", "test_it.py"],
        cwd=tmp_path,
        env={**environment(tensorflow=True), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout
    assert not base.exists() or os.listdir(base) == []


# Tests as people write them, and none of them says anything about gradients.
TRAININGS = """
import keras, numpy as np, pytest, tb_gradflow, tensorflow as tf
from tb_gradflow.errors import LogError
from keras import ops

x, y = np.ones((8, 2), "float32"), np.ones((8, 1), "float32")
threshold = tf.Variable(0.5, name="threshold")

class Step(keras.layers.Layer):
    def build(self, shape):
        self.threshold = self.add_weight(name="threshold")
    def call(self, x):
        return ops.cast(x > self.threshold, "float32")

def model(*layers, name):
    made = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3), *layers, keras.layers.Dense(1)], name=name)
    made.compile(keras.optimizers.SGD(0.01), "mse")
    return made

def soft(x):
    return tf.sigmoid(x - threshold) * x

def hard(x):
    return tf.cast(x > threshold, tf.float32) * x

def learn(activation):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(activation(tf.constant([0.1, 0.9])))
    gradient = tape.gradient(loss, threshold)
    if gradient is not None:
        threshold.assign_sub(0.1 * gradient)

def test_healthy_fit(gradflow):
    model(name="sound").fit(x, y, verbose=0)
    assert list(gradflow.reports) == ["sound"]

def test_broken_fit(gradflow):
    model(Step(), name="cut").fit(x, y, verbose=0)

def test_without_the_fixture():
    model(Step(), name="cut").fit(x, y, verbose=0)

def test_broken_batches(gradflow):
    model(Step(), name="cut").train_on_batch(x, y)

def test_healthy_loop(gradflow):
    for _ in range(3):
        learn(soft)
    [report] = gradflow.reports.values()
    assert report.step == 2

def test_broken_loop(gradflow):
    for _ in range(3):
        learn(hard)

def test_broken_function(gradflow):
    step = tf.function(learn)
    for _ in range(3):
        step(hard)

def test_expected(gradflow):
    learn(hard)
    gradflow.assert_healthy(expected=["threshold"])

def test_asserted_and_then_broken(gradflow):
    learn(soft)
    gradflow.assert_healthy()
    model(Step(), name="cut").fit(x, y, verbose=0)

def test_with_a_callback(gradflow):
    model(name="sound").fit(x, y, verbose=0, callbacks=[gradflow.callback()])
    assert list(gradflow.reports) == ["training1"]

def test_with_a_watched_step(gradflow):
    step = gradflow.watch()(lambda: learn(hard))
    step()

def test_explained(gradflow):
    assert not tb_gradflow.explain(model(Step(), name="cut"), x, y).healthy

def test_nothing_trained(gradflow):
    with pytest.raises(LogError, match="nothing was recorded"):
        gradflow.assert_healthy()

def test_no_optimizer_gets_a_gradient(gradflow):
    with tf.GradientTape() as tape:
        loss = hard(tf.constant(0.9))
    keras.optimizers.SGD().apply_gradients([(tape.gradient(loss, threshold), threshold)])
"""

BROKEN = {
    "test_broken_fit": "cut, step 0",
    "test_broken_batches": "cut, step 0",
    "test_broken_loop": "test_trainings_27, step 2",
    "test_broken_function": "learn, step 2",
    "test_asserted_and_then_broken": "cut, step 0",
    "test_with_a_watched_step": "training1, step 0",
    "test_no_optimizer_gets_a_gradient": "ValueError: No gradients provided",
}


def failures(tmp_path: Path, *command: str) -> tuple[set[str], str]:
    """The tests that fail, and what is printed."""
    (tmp_path / "test_trainings.py").write_text(TRAININGS)
    done = subprocess.run(
        [sys.executable, *command, "-q", "-p", "no:cacheprovider", "-p", PLUGIN, "test_trainings.py"],
        cwd=tmp_path,
        env={**environment(tensorflow=True), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    named = (line.partition("::")[2] for line in done.stdout.splitlines() if line.startswith("FAILED"))
    return {line.partition(" - ")[0] for line in named}, done.stdout


def test_whatever_trains_in_a_test_must_be_healthy(tmp_path: Path) -> None:
    failed, printed = failures(tmp_path, "-m", "pytest")

    assert failed == set(BROKEN), printed
    for name, said in BROKEN.items():
        section = printed.partition(f"_ {name} _")[2].partition("\n____")[0]
        assert said in section, section
        assert "nondiff_comparison" in section


def test_the_recording_of_a_whole_program_goes_on_between_such_tests(tmp_path: Path) -> None:
    run = ["-m", "tb_gradflow.cli.main", "run", "--logdir", "logs"]
    failed, printed = failures(tmp_path, *run, "-m", "pytest", "-k", "healthy_loop or without or broken_batches")

    assert failed == {"test_broken_batches"}, printed
    assert [each.name for each in (tmp_path / "logs").iterdir()] == ["cut"], "the test without the fixture"
