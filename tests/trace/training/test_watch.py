"""A training loop of the user's own, recorded in the place of `tf.function`."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tests.trace.recording import data, read

layers = keras.layers

Step = Callable[[Any, Any], Any]


class Loop:
    """A model, its optimizer and a step as people write them outside of `fit`."""

    def __init__(self, compiled: Callable[[Callable[..., Any]], Any]) -> None:
        keras.utils.set_random_seed(7)
        self.model = keras.Sequential(
            [keras.Input((6,)), layers.Dense(8, "tanh", name="hidden"), layers.Dense(2, name="out")]
        )
        self.optimizer = keras.optimizers.Adam(1e-2)
        self.step = compiled(self._step)

    def _step(self, x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            error = tf.constant(0.0)
            if tf.reduce_sum(x) < 1e9:  # for AutoGraph to convert
                error = tf.reduce_mean(tf.square(self.model(x, training=True) - y))
        gradients = tape.gradient(error, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables, strict=True))
        return error

    def run(self, steps: int) -> tuple[list[float], list[Any]]:
        x, y = data(outputs=2, rows=16)
        losses = [float(self.step(tf.constant(x), tf.constant(y))) for _ in range(steps)]
        return losses, [weight.numpy() for weight in self.model.weights]


@pytest.mark.parametrize("around", [False, True], ids=["in the place of tf.function", "around one"])
def test_the_training_is_the_one_without_it(around: bool, tmp_path: Path) -> None:
    def watched(step: Any) -> Any:
        return tb_gradflow.watch(str(tmp_path), update_freq=2)(tf.function(step) if around else step)

    losses, weights = Loop(tf.function).run(6)

    loop = Loop(watched)
    recorded_losses, recorded_weights = loop.run(6)

    assert recorded_losses == losses
    for one, other in zip(weights, recorded_weights, strict=True):
        np.testing.assert_array_equal(one, other)
    loop.step.flush()
    assert read(tmp_path).steps == (0, 2, 4)


def test_the_numbers_are_the_tapes(tmp_path: Path) -> None:
    x, y = data(outputs=2, rows=16)
    loop = Loop(tb_gradflow.watch(str(tmp_path), update_freq=1))
    before = [variable.numpy() for variable in loop.model.trainable_variables]
    with tf.GradientTape() as tape:
        error = tf.reduce_mean(tf.square(loop.model(x) - y))
    expected = tape.gradient(error, loop.model.trainable_variables)

    loop.run(1)

    loop.step.flush()
    recorded = read(tmp_path)
    assert recorded.losses[0][0] == pytest.approx(float(error), rel=1e-5)
    for variable, gradient, old in zip(loop.model.trainable_variables, expected, before, strict=True):
        moved = np.linalg.norm(variable.numpy() - old)
        assert recorded.gradient(variable.path) == pytest.approx(np.linalg.norm(gradient), rel=1e-4)
        assert recorded.norm(variable.path, "update_norm") == pytest.approx(moved, rel=1e-4)
    assert tb_gradflow.open_log(tmp_path).report().healthy


def test_a_cut_is_named_with_its_line(tmp_path: Path) -> None:
    threshold = tf.Variable(0.3, name="threshold")
    scale = tf.Variable(1.0, name="scale")

    @tb_gradflow.watch(str(tmp_path), update_freq=1)
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            mask = tf.cast(x > threshold, tf.float32)
            loss = tf.reduce_mean(tf.square(scale * x * mask - 1.0))
        gradient, missing = tape.gradient(loss, [scale, threshold])
        assert missing is None
        scale.assign_sub(0.1 * gradient)
        return loss

    step(tf.random.stateless_uniform([8], [1, 2]))

    step.flush()
    report = tb_gradflow.open_log(tmp_path).report()
    [finding] = report.findings
    assert (finding.cause, finding.variables) == ("nondiff_comparison", ("threshold",))
    assert finding.source is not None
    assert finding.source.code == "mask = tf.cast(x > threshold, tf.float32)"
    assert report.variables["scale"].status == "connected"


def test_two_tapes_are_two_targets(tmp_path: Path) -> None:
    make = keras.Sequential([keras.Input((2,)), layers.Dense(4, name="make")])
    judge = keras.Sequential([keras.Input((4,)), layers.Dense(4, "tanh", name="judge"), layers.Dense(1, name="score")])
    optimizers = [keras.optimizers.SGD(0.01), keras.optimizers.SGD(0.01)]

    @tb_gradflow.watch(str(tmp_path), update_freq=1)
    def step(noise: Any, real: Any) -> None:
        with tf.GradientTape() as make_tape, tf.GradientTape() as judge_tape:
            fake = make(noise)
            g_loss = -tf.reduce_mean(judge(fake))
            d_loss = tf.reduce_mean(tf.nn.softplus(judge(fake))) + tf.reduce_mean(tf.nn.softplus(-judge(real)))
        made = make_tape.gradient(g_loss, make.trainable_variables)
        judged = judge_tape.gradient(d_loss, judge.trainable_variables)
        optimizers[0].apply_gradients(zip(made, make.trainable_variables, strict=True))
        optimizers[1].apply_gradients(zip(judged, judge.trainable_variables, strict=True))

    step(*(tf.random.stateless_normal([8, width], [1, width]) for width in (2, 4)))

    step.flush()
    recorded = read(tmp_path)
    assert [target.name for target in recorded.trace.targets] == ["g_loss", "d_loss"]
    assert tb_gradflow.open_log(tmp_path).report().healthy


def test_as_a_method_of_several_objects(tmp_path: Path) -> None:
    class Trainer:
        def __init__(self) -> None:
            self.weight = tf.Variable(2.0, name="weight")

        @tb_gradflow.watch(str(tmp_path), update_freq=1)
        def step(self, x: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = self.weight * x
            self.weight.assign_sub(tape.gradient(loss, self.weight))
            return loss

    one, other = Trainer(), Trainer()

    for trainer in (one, other, one):
        trainer.step(tf.constant(3.0))

    assert (one.weight.numpy(), other.weight.numpy()) == (-4.0, -1.0)
    one.step.flush()
    assert read(tmp_path).steps == (0, 1, 2)


def test_a_fault_of_the_recorder_leaves_the_training_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    losses, _ = Loop(tf.function).run(3)
    monkeypatch.setattr("tb_gradflow.trace.step.measurements.trace_with", lambda *_, **__: 1 / 0)
    loop = Loop(tb_gradflow.watch(str(tmp_path), update_freq=1))

    with pytest.warns(RuntimeWarning, match="could not record step 0 and stopped recording.*ZeroDivisionError"):
        recorded, _ = loop.run(3)

    assert recorded == losses


class Scaling:
    """An object that can be called."""

    def __init__(self, weight: Any) -> None:
        self.weight = weight

    def __call__(self, x: Any, scale: float = 1.0) -> Any:
        with tf.GradientTape() as tape:
            error = tf.reduce_sum((self.weight * x * scale - 1.0) ** 2)
        self.weight.assign_sub(0.1 * tape.gradient(error, self.weight))
        return error


@pytest.mark.parametrize("is_partial", [True, False])
def test_a_step_may_be_any_object_that_can_be_called(is_partial: bool, tmp_path: Path) -> None:
    scaling = Scaling(tf.Variable(1.0))

    step = tb_gradflow.watch(tmp_path)(tf.function(functools.partial(scaling, scale=2.0) if is_partial else scaling))
    for _ in range(3):
        step(tf.constant(0.3))
    step.flush()

    assert read(tmp_path).steps == (0, 1, 2)


@pytest.mark.parametrize("refused", [("text",), (), (tf.constant([1.0]), tf.constant([1.0, 2.0]))])
def test_steps_after_one_that_has_raised_are_recorded(refused: tuple[Any, ...], tmp_path: Path) -> None:
    step = tb_gradflow.watch(tmp_path, update_freq=1)(tf.function(Scaling(tf.Variable([1.0, 2.0, 3.0]))))

    step(tf.constant(0.3))
    with pytest.raises((TypeError, ValueError)):
        step(*refused)
    step(tf.constant(0.3))
    step.flush()

    assert len(read(tmp_path).steps) == 2


def test_a_tape_that_is_asked_inside_of_its_own_block_shows_the_way(tmp_path: Path) -> None:
    """Many write the call of `gradient` one indent too deep; the tape stops recording there."""
    weight = tf.Variable([0.5, -1.0, 2.0], name="weight")

    @tb_gradflow.watch(str(tmp_path), update_freq=1)
    def step() -> Any:
        with tf.GradientTape() as tape:
            error = tf.reduce_sum(tf.square(tf.tanh(weight)))
            weight.assign_sub(0.1 * tape.gradient(error, weight))
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                energy = tf.reduce_sum(tf.sin(weight))
                slope = inner.gradient(energy, weight)
            size = tf.reduce_sum(tf.square(slope))
            weight.assign_sub(0.1 * outer.gradient(size, weight))
        return error

    step()
    step.flush()
    log = read(tmp_path)

    known = [each for each in log.trace.tensor_gradients if each.target == 0]
    assert "Tanh" in {log.trace.ops[each.op].type for each in known}
    assert log.tensor(log.op("Tanh"), "max_abs") == pytest.approx(2 * np.tanh(2.0), rel=1e-5)
    # What the inner tape of the two makes is forward computation to the outer one, which does show its way.
    by_target = {each.target for each in log.trace.tensor_gradients}
    assert by_target == {0, 2}


def failing(step: Any, x: Any) -> Exception:
    with pytest.raises(Exception, match=r".") as caught:
        step(x)
    return caught.value


@pytest.mark.parametrize("look", [lambda loss: loss.numpy(), math.sqrt, lambda loss: np.abs(loss)])
def test_a_step_that_needs_numbers_fails_with_its_own_error_and_is_told_what_to_do(look: Any, tmp_path: Path) -> None:
    def step(x: Any) -> Any:
        return x * look(tf.reduce_sum(x))

    x = tf.ones([2])
    plain = failing(tf.function(step), x)

    with pytest.warns(RuntimeWarning, match="like `tf.function`") as told:
        watched = failing(tb_gradflow.watch(str(tmp_path))(step), x)

    assert (type(watched), str(watched)) == (type(plain), str(plain))
    # With Python 3.13, AutoGraph has warnings about itself.
    assert any("run_functions_eagerly(True)" in str(each.message) for each in told)


@pytest.mark.parametrize("compiled", [False, True])
def test_nobody_is_told_who_knows_or_whose_error_is_another(
    compiled: bool, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    """Who writes `tf.function` knows that it compiles."""

    def step(x: Any) -> Any:
        return x.numpy() if compiled else x.nonsense

    error = failing(tb_gradflow.watch(str(tmp_path))(tf.function(step) if compiled else step), tf.ones([2]))

    assert ("numpy" if compiled else "nonsense") in str(error)
    assert not [each for each in recwarn if "tb_gradflow" in str(each.message)]


@pytest.mark.parametrize("given", ["a dataset", "an iterator"])
def test_a_loop_over_a_dataset_in_the_step_is_told_of(tmp_path: Path, given: str) -> None:
    """tf.data runs its body, where nobody sees it; the body of a loop over an iterator is a part of the step."""
    rows = tf.data.Dataset.from_tensor_slices(tf.reshape(tf.range(24.0), (6, 4))).batch(2)

    def trained(watched: Any) -> Any:
        weight = tf.Variable(tf.ones((4, 1)))

        @watched
        @tf.function
        def train(batches: Any) -> Any:
            loss = 0.0
            for x in batches:
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean((x @ weight) ** 2)
                weight.assign_sub(1e-4 * tape.gradient(loss, weight))
            return loss

        return [float(train(rows if given == "a dataset" else iter(rows))) for _ in range(3)], weight.numpy().tobytes()

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert trained(tb_gradflow.watch(tmp_path)) == trained(lambda step: step)

    said = " ".join(str(each.message) for each in told)
    assert ("does not record train: its gradients are taken inside of tf.data" in said) == (given == "a dataset")
    assert any((tmp_path / "gradflow").iterdir()) == (given == "an iterator")
