"""Wrong arguments are told before training; once training runs, nothing in the recorder stops or alters it."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import warnings
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow import GradFlowCallback
from tb_gradflow.errors import SetupError
from tb_gradflow.store.writer import LogWriter
from tests.trace import models
from tests.trace.recording import data, read, train

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"update_freq": 0}, "update_freq must be at least 1 step, got 0"),
        ({"update_freq": "batch"}, "update_freq must be 'auto', 'epoch' or a number of steps, got 'batch'"),
        ({"update_freq": 2.5}, "got 2.5"),
        ({"tensors": "some"}, "tensors must be 'all', 'layers' or 'variables', got 'some'"),
        ({"expected": "dense/*"}, "expected must be a sequence of name patterns, got 'dense/*'"),
    ],
)
def test_wrong_arguments_are_told_at_construction(options: dict[str, Any], told: str, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=told.replace("*", r"\*")):
        GradFlowCallback(str(tmp_path), **options)


@pytest.mark.parametrize("nowhere", ["", None])
def test_a_directory_without_a_name_is_told_at_construction(nowhere: Any) -> None:
    with pytest.raises(SetupError, match="log_dir must name a directory, got"):
        GradFlowCallback(nowhere)


def test_a_directory_that_cannot_be_written_is_told_at_construction(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")

    with pytest.raises(SetupError, match=r"cannot write to log_dir .*file.*give a directory"):
        GradFlowCallback(str(tmp_path / "file" / "run"))


def test_a_model_that_is_not_compiled_is_told_by_keras_in_its_words(tmp_path: Path) -> None:
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(2)])

    with pytest.raises(ValueError, match="compile"):
        model.fit(*data(), callbacks=[GradFlowCallback(str(tmp_path))], verbose=0)


def test_a_full_disk_ends_the_recording_and_not_the_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = data(rows=64)
    plain = train(models.functional, x, y, epochs=2)

    def full(self: LogWriter, record: Any) -> None:
        raise tf.errors.ResourceExhaustedError(None, None, "no space left on device")

    monkeypatch.setattr(LogWriter, "write_step", full)
    with pytest.warns(RuntimeWarning, match="stopped recording; training continues.*no space left") as told:
        recorded = train(models.functional, x, y, GradFlowCallback(str(tmp_path), update_freq=1), epochs=2)

    assert recorded.losses == plain.losses
    assert len([w for w in told if "stopped recording" in str(w.message)]) == 1


def test_a_fault_while_tracing_ends_the_recording_and_not_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = data(rows=64)
    plain = train(models.functional, x, y)

    def faulty(*args: Any) -> Any:
        raise KeyError("a fault of ours")

    monkeypatch.setattr("tb_gradflow.trace.capture.collector._answer", faulty)
    with pytest.warns(RuntimeWarning, match="a fault of ours"):
        recorded = train(models.functional, x, y, GradFlowCallback(str(tmp_path), update_freq=1))

    assert recorded.losses == plain.losses
    for first, second in zip(plain.weights, recorded.weights, strict=True):
        np.testing.assert_array_equal(first, second)


def test_a_fault_in_an_eager_step_of_a_fit_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = data(rows=64)

    def faulty(*args: Any) -> Any:
        raise KeyError("a fault of ours")

    def eager() -> Any:
        model = models.functional()
        model.run_eagerly = True
        return model

    plain = train(eager, x, y)
    monkeypatch.setattr("tb_gradflow.trace.step.instrumented_step.variable_statistics", faulty)
    with pytest.warns(RuntimeWarning, match="stopped recording; training continues.*a fault of ours") as told:
        recorded = train(eager, x, y, GradFlowCallback(str(tmp_path), update_freq=1))

    assert recorded.losses == plain.losses
    assert len([w for w in told if "stopped recording" in str(w.message)]) == 1


def test_warnings_that_are_errors_do_not_become_errors_of_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tb_gradflow.trace.capture.collector._answer", lambda *args: 1 / 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        trained = train(models.functional, *data(), GradFlowCallback(str(tmp_path)))

    assert len(trained.losses) == 1


class NoGradients(keras.layers.Layer):
    def build(self, shape: Any) -> None:
        self.w = self.add_weight(name="w", shape=(), initializer="ones")

    def call(self, x: Any) -> Any:
        return tf.round(x * self.w)


def test_a_training_that_keras_refuses_leaves_a_log_that_says_why(tmp_path: Path) -> None:
    """With no gradient at all the optimizer raises in the first step; the user's error stays what it was."""

    def build() -> Any:
        x = keras.Input((6,))
        model = keras.Model(x, NoGradients(name="rounded")(x))
        model.compile("sgd", "mse")
        return model

    x, y = data(outputs=6)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # the recorder has nothing to complain about itself
        with pytest.raises(ValueError, match="No gradients provided for any variable"):
            train(build, x, y, GradFlowCallback(str(tmp_path)))

    recorded = read(tmp_path)
    assert recorded.steps == ()
    assert recorded.outcome("rounded/w") == "none"


def test_an_unregistered_gradient_raises_as_ever_and_is_recorded(tmp_path: Path) -> None:
    class Contrast(keras.layers.Layer):
        def build(self, shape: Any) -> None:
            self.w = self.add_weight(name="w", shape=(), initializer="ones")

        def call(self, x: Any) -> Any:
            return tf.image.adjust_contrast(x * self.w, 2.0)

        def compute_output_shape(self, shape: Any) -> Any:
            return shape

    def build() -> Any:
        x = keras.Input((2, 3, 1))
        model = keras.Model(x, Contrast(name="contrast")(x))
        model.compile("sgd", "mse")
        return model

    images = np.ones((16, 2, 3, 1), "float32")
    with pytest.raises(LookupError, match="AdjustContrastv2"):
        train(build, images, images, GradFlowCallback(str(tmp_path)))

    recorded = read(tmp_path)
    assert recorded.outcome("contrast/w") == "error"
    assert {edge.passes for edge in recorded.op("AdjustContrastv2").inputs} == {"unregistered"}


def test_a_users_error_in_a_later_step_is_raised_and_the_log_is_kept(tmp_path: Path) -> None:
    class Stop(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if batch == 2:
                raise RuntimeError("the user's own")

    with pytest.raises(RuntimeError, match="the user's own"):
        train(models.functional, *data(rows=96), GradFlowCallback(str(tmp_path), update_freq=1), Stop())

    assert read(tmp_path).steps[0] == 0


def test_a_second_recorder_in_one_fit_is_told_that_it_records_nothing(tmp_path: Path) -> None:
    one, other = (GradFlowCallback(str(tmp_path / name), update_freq=1) for name in ("one", "other"))

    with pytest.warns(RuntimeWarning, match="two GradFlowCallbacks, but only one.*other.*remove one of them"):
        train(models.functional, *data(rows=32), one, other)

    assert read(tmp_path / "one").steps == (0, 1)


class Deleting(keras.callbacks.Callback):
    def __init__(self, directory: Path) -> None:
        super().__init__()
        self._directory = directory

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        if epoch == 0:
            shutil.rmtree(self._directory)


def test_a_log_that_is_deleted_during_the_training_is_begun_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = tmp_path / "run"
    recorder = GradFlowCallback(str(directory), update_freq=1)

    train(models.functional, *data(rows=32), Deleting(directory), recorder, epochs=3)

    assert "was deleted during the training" in caplog.text
    assert read(directory).steps == (2, 3, 4, 5)


class Cutting(Deleting):
    """Cuts the event file to so many bytes after the first epoch."""

    def __init__(self, directory: Path, length: int) -> None:
        super().__init__(directory)
        self._length = length

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        if epoch == 1:
            [path] = (self._directory / "gradflow").iterdir()
            os.truncate(path, self._length)


@pytest.mark.parametrize("length", [0, 1000])
def test_a_log_that_is_cut_short_during_the_training_is_begun_anew(
    length: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = tmp_path / "run"
    recorder = GradFlowCallback(str(directory), update_freq=1)
    x, y = data(rows=32)
    plain = train(models.functional, x, y, epochs=4)

    recorded = train(models.functional, x, y, Cutting(directory, length), recorder, epochs=4)

    assert recorded.losses == plain.losses
    assert "was truncated during the training" in caplog.text
    assert set(tb_gradflow.open_log(directory).steps) >= {4, 5, 6, 7}


@pytest.mark.skipif(resource is None, reason="this system has no limit on the length of a file")
def test_a_disk_that_is_really_full_ends_the_recording_and_not_the_training(tmp_path: Path) -> None:
    """A file may be no longer than it is after the first epoch: writing to it fails as on a full disk."""
    directory = tmp_path / "run"
    x, y = data(rows=32)
    plain = train(models.functional, x, y, epochs=4)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    class Filling(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            if epoch == 1:
                [path] = (directory / "gradflow").iterdir()
                resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, hard))

    try:
        recorder = GradFlowCallback(str(directory), update_freq=1)
        with pytest.warns(RuntimeWarning, match="stopped recording; training continues") as told:
            recorded = train(models.functional, x, y, Filling(), recorder, epochs=4)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)

    assert recorded.losses == plain.losses
    for one, other in zip(plain.weights, recorded.weights, strict=True):
        np.testing.assert_array_equal(one, other)
    assert len([each for each in told if "stopped recording" in str(each.message)]) == 1
    assert set(tb_gradflow.open_log(directory).steps) >= {0, 1}


@pytest.mark.parametrize("where", ["before", "between"])
def test_an_interrupt_leaves_the_model_with_its_own_function(where: str, tmp_path: Path) -> None:
    """Ctrl-C while the recorder looks whether a step is due, and while it writes one."""
    recorder = GradFlowCallback(str(tmp_path), update_freq=1)
    interrupted: Any = type("Interrupted", (), {"count": 0})

    def interrupt(*_: Any, **__: Any) -> Any:
        interrupted.count += 1
        if interrupted.count == 3:
            raise KeyboardInterrupt
        return original(recorder, *_, **__)

    name = "_is_due" if where == "before" else "_write"
    original = getattr(GradFlowCallback, name)
    recorder.__dict__[name] = interrupt
    keras.utils.set_random_seed(7)
    model = models.functional()
    with pytest.raises(KeyboardInterrupt):
        model.fit(*data(rows=64), batch_size=16, verbose=0, callbacks=[recorder])

    assert getattr(model.train_function, "__self__", None) is not recorder
    assert "train_step" not in vars(model)
    assert read(tmp_path).steps == (0, 1), "what was recorded before it is in the file"
    model.fit(*data(rows=64), batch_size=16, verbose=0)


def test_an_interrupt_of_the_training_itself_loses_nothing_when_its_callback_goes(tmp_path: Path) -> None:
    """Keras tells no callback that a training was interrupted; nobody calls `flush`."""

    class Interrupts(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if batch == 2:
                raise KeyboardInterrupt

    def interrupted() -> None:
        model = models.functional()
        recorder = GradFlowCallback(str(tmp_path), update_freq=1)
        with pytest.raises(KeyboardInterrupt):
            model.fit(*data(rows=64), batch_size=16, verbose=0, callbacks=[recorder, Interrupts()])

    interrupted()
    gc.collect()

    assert read(tmp_path).steps == (0, 1, 2)


def test_a_recorded_step_is_written_while_steps_follow_that_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[int, tuple[int, ...]] = {}

    class Reads(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            monkeypatch.setattr(LogWriter, "_is_time", lambda _: batch >= 3)
            if batch >= 3:
                seen[batch] = read(tmp_path).steps

    recorder = GradFlowCallback(str(tmp_path), update_freq=2, catch_nonfinite=False)
    models.functional().fit(*data(rows=80), batch_size=16, verbose=0, callbacks=[Reads(), recorder])

    assert seen == {3: (0,), 4: (0, 2)}


def test_a_relative_directory_stays_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    recorder = GradFlowCallback("run", update_freq=1)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")

    train(models.functional, *data(rows=32), recorder)

    assert read(tmp_path / "run").steps == (0, 1)
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize(
    "broken",
    [
        "tb_gradflow.trace.capture.collector._answer",
        "tb_gradflow.trace.capture.collector.needed_for",
        "tb_gradflow.trace.graph.flatten.Flattener.extend",
        "tb_gradflow.trace.step.instrumented_step.owned_variables",
        "tb_gradflow.trace.step.state._in_memory",
        "tb_gradflow.trace.graph.build_trace._Builder.build",
        "tb_gradflow.trace.log.recorder.Recorder.add_trace",
    ],
)
def test_wherever_the_first_trace_fails_the_training_is_the_one_without_it(
    broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The optimizer's slots and the metrics are made in that trace: it has to come to its end."""
    x, y = data(outputs=2, rows=64)
    plain = train(models.functional, x, y, epochs=2)

    def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError("injected")

    monkeypatch.setattr(broken, fail)
    if broken.endswith("owned_variables"):
        monkeypatch.setattr("tb_gradflow.trace.fit.keras3.owned_variables", fail)
    with pytest.warns(RuntimeWarning, match="stopped recording; training continues.*injected"):
        watched = train(models.functional, x, y, GradFlowCallback(str(tmp_path), update_freq=1), epochs=2)

    assert watched.losses == plain.losses
    for one, other in zip(watched.weights, plain.weights, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_fault_when_a_method_is_first_asked_for_leaves_the_method(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Trainer:
        def __init__(self) -> None:
            self.weight = tf.Variable(1.0)

        @tb_gradflow.watch(tmp_path)
        @tf.function
        def step(self, x: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = self.weight * x
            self.weight.assign_sub(tape.gradient(loss, self.weight))
            return loss

    def fails(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("tb_gradflow.trace.watch.Watched._bound_to", fails)
    trainer = Trainer()

    with pytest.warns(RuntimeWarning, match="ZeroDivisionError") as told:
        losses = [float(trainer.step(tf.constant(x))) for x in (1.0, 2.0, 3.0)]
    trainer.step.flush()

    assert losses == [1.0, 0.0, -6.0]
    assert len(told) == 1
    assert trainer.step.get_concrete_function(tf.constant(1.0)) is not None
