"""Edits that are tried in a recorded step when the program has ended: see `trace.log.findings`."""

from __future__ import annotations

import gc
import importlib
import logging
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import tb_gradflow
from tb_gradflow.trace.explain.trials import silent
from tb_gradflow.trace.log import findings as ends
from tb_gradflow.trace.observed import kept_step
from tests.trace import edited_programs
from tests.trace.edited_programs import X, Y, rounding


@pytest.fixture
def program() -> Any:
    """Functions that the garbage collector knows: the tests freeze what was imported before."""
    return importlib.reload(edited_programs)


def report(log_dir: Path) -> Any:
    return tb_gradflow.open_log(log_dir).report()


def test_a_fix_is_tried_in_the_first_step_with_the_finding_and_nothing_changes(tmp_path: Path, program: Any) -> None:
    model = program.rounding()
    model.fit(X, Y, epochs=5, verbose=0, callbacks=[tb_gradflow.GradFlowCallback(tmp_path, try_fixes=True)])
    before = [each.numpy() for each in (*model.variables, *model.optimizer.variables)]
    tf.random.set_seed(1)
    np.random.seed(1)

    ends.try_fixes()

    drawn = tf.random.uniform([]), np.random.rand()
    tf.random.set_seed(1)
    np.random.seed(1)
    assert (tf.random.uniform([]), np.random.rand()) == drawn
    for was, now in zip(before, (*model.variables, *model.optimizer.variables), strict=True):
        np.testing.assert_array_equal(was, now.numpy())
    [finding] = report(tmp_path).findings
    assert finding.tried is not None
    assert (finding.tried.works, finding.tried.step) == (True, 0)
    assert finding.tried.trained is not None
    first, last = finding.tried.trained.loss
    assert first is not None
    assert last is not None
    assert last < first
    recorded = tb_gradflow.open_log(tmp_path).recorded
    index = recorded.index()
    # The weights and the batch of that step: its loss was 12.0 before its update, and is a little smaller after it.
    assert finding.tried.loss[0] == pytest.approx(recorded.losses(index.session.id, index.chunks[0], 0)[0], rel=0.05)


@pytest.mark.parametrize("dropout", [0.0, 0.25])
def test_a_fit_that_runs_eagerly_is_tried_through_its_graph(tmp_path: Path, program: Any, dropout: float) -> None:
    """From the weights, the batch and the random numbers of the recorded step."""
    model = program.rounding(keras.layers.Dropout(dropout), run_eagerly=True)
    model.fit(X, Y, epochs=3, verbose=0, callbacks=[tb_gradflow.GradFlowCallback(tmp_path, try_fixes=True)])
    before = [each.numpy() for each in (*model.variables, *model.optimizer.variables)]

    ends.try_fixes()

    for was, now in zip(before, (*model.variables, *model.optimizer.variables), strict=True):
        np.testing.assert_array_equal(was, now.numpy())
    assert model.run_eagerly
    [finding] = report(tmp_path).findings
    assert finding.tried is not None
    assert (finding.tried.works, finding.tried.step) == (True, 0)
    assert finding.tried.trained is not None
    recorded = tb_gradflow.open_log(tmp_path).recorded
    index = recorded.index()
    [loss] = recorded.losses(index.session.id, index.chunks[0], 0)
    assert finding.tried.loss[0] == pytest.approx(loss, rel=1e-3)


def test_a_step_in_the_thread_of_a_replica_is_tried(tmp_path: Path, program: Any) -> None:
    with tf.distribute.MirroredStrategy(["/cpu:0"]).scope():
        model = program.rounding()
    model.fit(X, Y, verbose=0, callbacks=[tb_gradflow.GradFlowCallback(tmp_path, try_fixes=True)])

    ends.try_fixes()

    [finding] = report(tmp_path).findings
    assert finding.tried is not None
    assert finding.tried.works
    assert threading.getprofile() is None


def test_the_step_that_is_not_finite_is_tried_as_it_was(tmp_path: Path, program: Any) -> None:
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((4,)), program.Lengths()])
    model.compile(keras.optimizers.SGD(0.1), "mse")
    x = X.copy()
    x[40] = 0.0
    recorder = tb_gradflow.GradFlowCallback(tmp_path, try_fixes=True)
    model.fit(x, Y, batch_size=32, epochs=3, shuffle=False, verbose=0, callbacks=[recorder])
    assert not np.isfinite(model.weights[0].numpy()).any()

    ends.try_fixes()

    [tried] = [each.tried for each in report(tmp_path).findings if each.tried is not None]
    assert (tried.works, tried.step) == (True, 1)
    assert not np.isfinite(model.weights[0].numpy()).any()


def test_a_method_that_takes_its_batch_out_of_an_iterator(tmp_path: Path, program: Any) -> None:
    def trained() -> None:
        trainer = program.Trainer()
        step = tb_gradflow.watch(tmp_path, try_fixes=True)(trainer.step)
        batches = iter(tf.data.Dataset.from_tensor_slices((X, Y)).batch(16))
        for _ in range(4):
            step(batches)

    trained()
    gc.collect()
    ends.try_fixes()

    [finding] = report(tmp_path).findings
    assert finding.tried is not None
    assert finding.tried.works
    assert finding.tried.trained is not None


@pytest.mark.parametrize("is_built", [True, False])
def test_a_fit_that_raises_in_its_first_step(tmp_path: Path, program: Any, is_built: bool) -> None:
    """Its weights may have no values yet, and nothing was taken out of its data set."""
    model = program.stepped(is_built=is_built)
    recorder = tb_gradflow.GradFlowCallback(tmp_path, try_fixes=True)
    with pytest.raises(ValueError, match="No gradients provided"):
        model.fit(X, Y, epochs=2, verbose=0, callbacks=[recorder])
    before = [each.numpy() for each in model.variables] if is_built else []

    ends.try_fixes()

    for was, now in zip(before, model.variables if is_built else (), strict=True):
        np.testing.assert_array_equal(was, now.numpy())
    [finding] = report(tmp_path).findings
    assert finding.tried is not None
    assert (finding.tried.works, finding.tried.step) == (True, 0)
    assert {each.variable for each in finding.tried.gradient_norm} == set(finding.variables)
    assert finding.tried.trained is not None
    first, last = finding.tried.trained.loss
    assert first is not None
    assert last is not None
    assert last < first


def test_a_watched_step_that_raises_when_it_is_traced(tmp_path: Path, program: Any) -> None:
    trainer = program.Fit()
    step = tb_gradflow.watch(tmp_path, try_fixes=True)(trainer.step)
    with pytest.raises(ValueError, match="No gradients provided"):
        step(tf.constant(X), tf.constant(Y))

    ends.try_fixes()

    [finding] = report(tmp_path).findings
    assert finding.tried is not None
    assert finding.tried.works
    assert finding.tried.trained is not None


def test_no_batch_is_taken_from_python_code(tmp_path: Path, program: Any) -> None:
    """It might wait forever for something."""
    taken: list[int] = []

    def batches() -> Any:
        while True:
            taken.append(1)
            yield X[:8], Y[:8]

    given = tf.data.Dataset.from_generator(
        batches, output_signature=(tf.TensorSpec((8, 4)), tf.TensorSpec((8, 1)))
    ).map(lambda x, y: (x * 1.0, y))
    recorder = tb_gradflow.GradFlowCallback(tmp_path, try_fixes=True)
    with (
        pytest.warns(RuntimeWarning, match="not tried: its batch comes from Python code, which may wait"),
        pytest.raises(ValueError, match="No gradients provided"),
    ):
        program.stepped(is_built=True).fit(given, steps_per_epoch=2, verbose=0, callbacks=[recorder])
    before = len(taken)

    ends.try_fixes()

    assert len(taken) == before
    [finding] = report(tmp_path).findings
    assert finding.tried is None
    assert finding.not_tried == (
        "It was not tried in this step: its batch comes from Python code, which may wait for something."
    )


def _writes(x: Any, path: str) -> Any:
    tf.io.write_file(path, "again")
    return x


def _calls_python(x: Any, path: str) -> Any:
    return tf.ensure_shape(tf.numpy_function(lambda value: value, [x], tf.float32), x.shape)


def _prints_into_a_file(x: Any, path: str) -> Any:
    tf.print(x, output_stream=f"file://{path}")
    return x


@pytest.mark.parametrize(
    ("effect", "op"), [(_writes, "WriteFile"), (_calls_python, "PyFunc"), (_prints_into_a_file, "PrintV2")]
)
def test_a_step_that_does_something_lasting_is_not_run_again(
    tmp_path: Path, effect: Callable[[Any, str], Any], op: str
) -> None:
    weight = tf.Variable(2.0, name="weight")
    written = tmp_path / "written"

    @tb_gradflow.watch(tmp_path / "log", try_fixes=True)
    def step(x: Any) -> Any:
        x = effect(x, str(written))
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.round(x * weight))
        gradient = tape.gradient(loss, weight)
        weight.assign_sub(0.1 * (0.0 if gradient is None else gradient))
        return loss

    with pytest.warns(RuntimeWarning, match=f"the fixes for this step are not tried: it contains {op}"):
        step(tf.constant(X))
    written.unlink(missing_ok=True)
    ends.try_fixes()

    assert not written.exists()
    assert report(tmp_path / "log").findings[0].tried is None


def test_what_was_asked_for_is_not_crowded_out(tmp_path: Path, program: Any) -> None:
    for number in range(ends.MOST_KEPT):
        recorder = tb_gradflow.GradFlowCallback(tmp_path / f"auto_{number}")
        program.rounding().fit(X, Y, epochs=1, verbose=0, callbacks=[recorder])
    recorder = tb_gradflow.GradFlowCallback(tmp_path / "asked", try_fixes=True)
    program.rounding().fit(X, Y, epochs=1, verbose=0, callbacks=[recorder])

    ends.try_fixes()

    [finding] = report(tmp_path / "asked").findings
    assert finding.tried is not None


def test_without_time_for_it_nothing_is_tried(tmp_path: Path) -> None:
    model = rounding()
    recorder = tb_gradflow.GradFlowCallback(tmp_path, overhead=1e-6)
    model.fit(X, Y, epochs=2, verbose=0, callbacks=[recorder])

    ends.try_fixes()

    [finding] = report(tmp_path).findings
    assert finding.tried is None


def test_while_another_thread_of_the_program_runs_nothing_is_tried(tmp_path: Path, program: Any) -> None:
    """It would see other weights. Python does not wait for the end of such a thread."""
    over = threading.Event()
    model = program.rounding()
    model.fit(X, Y, verbose=0, callbacks=[tb_gradflow.GradFlowCallback(tmp_path, try_fixes=True)])
    thread = threading.Thread(target=lambda: over.wait(), daemon=True)
    thread.start()

    try:
        with pytest.warns(RuntimeWarning, match="the fixes are not tried: another thread of the program runs"):
            ends.try_fixes()
    finally:
        over.set()
        thread.join()

    assert report(tmp_path).findings[0].tried is None


def test_a_large_batch_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_step, "MOST_BYTES", X[:32].nbytes)
    recorder = tb_gradflow.GradFlowCallback(tmp_path, try_fixes=True)

    with pytest.warns(RuntimeWarning, match="the fixes for this step are not tried: its batch and variables take"):
        rounding().fit(X, Y, verbose=0, callbacks=[recorder])


def test_the_edits_of_a_fit_of_keras_2_say_that_it_is_one(tmp_path: Path) -> None:
    model = tf_keras.Sequential([tf_keras.layers.Dense(1), tf_keras.layers.Lambda(lambda x: tf.round(x))])
    model.compile("sgd", "mse")
    recorder = tb_gradflow.GradFlowCallback(tmp_path, try_fixes=True)

    with (
        pytest.warns(RuntimeWarning, match="the fixes for this step are not tried: it is one of `fit` of tf_keras"),
        pytest.raises(ValueError, match="No gradients provided"),
    ):
        model.fit(X, Y, verbose=0, callbacks=[recorder])
    ends.try_fixes()

    [finding] = report(tmp_path).findings
    assert finding.edit is not None
    assert finding.not_tried == "It was not tried in this step: it is one of `fit` of tf_keras."


class _Both:
    """A standard output that also goes to a file, and cannot be flushed."""

    def __init__(self, file: Any) -> None:
        self.file = file

    def write(self, text: str) -> None:
        self.file.write(text)


def test_nothing_is_printed_or_logged_and_no_temporary_file_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    logged = logging.FileHandler(tmp_path / "logged")
    logging.getLogger().addHandler(logged)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    with open(tmp_path / "both", "w", encoding="utf-8") as file:
        monkeypatch.setattr(sys, "stdout", _Both(file))
        with silent():
            sys.stdout.write("printed\n")
            tf.print("printed")
            logging.getLogger("program").error("logged")
            with tempfile.NamedTemporaryFile(delete=False) as made:
                pass
        sys.stdout.write("afterwards\n")
        logging.getLogger("program").error("afterwards")

    logging.getLogger().removeHandler(logged)
    assert (tmp_path / "both").read_text(encoding="utf-8") == "afterwards\n"
    assert (tmp_path / "logged").read_text(encoding="utf-8") == "afterwards\n"
    assert "printed" not in "".join(capfd.readouterr())
    assert not Path(made.name).exists()


def test_everybody_is_told_once_and_no_fault_reaches_the_training(tmp_path: Path) -> None:
    seen: list[str] = []

    def on_finding(finding: Any) -> None:
        seen.append(finding.cause)
        raise RuntimeError("no connection")

    recorder = tb_gradflow.GradFlowCallback(tmp_path, update_freq=1, on_finding=on_finding)
    plain = rounding()
    plain.fit(X, Y, epochs=3, verbose=0)
    model = rounding()
    with pytest.warns(RuntimeWarning, match="on_finding raised RuntimeError: no connection"):
        model.fit(X, Y, epochs=3, verbose=0, callbacks=[recorder])

    assert seen == ["nondiff_rounding"]
    for one, other in zip(plain.weights, model.weights, strict=True):
        np.testing.assert_array_equal(one, other)
