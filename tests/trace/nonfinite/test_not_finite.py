"""Real trainings in which something stops being finite: what the log says afterwards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow


def training(log_dir: Path, *, poisoned: int, steps: int = 10, **options: Any) -> tb_gradflow.api.Log:
    """Ten steps of four rows each, one of which is given NaN."""
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4, "tanh"), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    x = np.random.default_rng(0).normal(size=(4 * steps, 3)).astype("float32")
    x[4 * poisoned, 1] = np.nan
    recorder = tb_gradflow.GradFlowCallback(log_dir, **options)
    model.fit(x, np.zeros((4 * steps, 1)), batch_size=4, shuffle=False, verbose=0, callbacks=[recorder])
    return tb_gradflow.open_log(log_dir)


def test_a_step_with_nan_in_the_batch_says_so(tmp_path: Path) -> None:
    log = training(tmp_path, poisoned=6, update_freq=1)

    [finding] = log.report(step=6).findings

    assert finding.cause == "nonfinite_input"
    assert finding.op is None
    assert "`x` contains 1 NaN" in finding.message
    assert "np.nan_to_num(x)" in finding.fix
    assert log.report(step=5).healthy


def hidden_afterwards(y_true: Any, y_pred: Any) -> Any:
    error = keras.losses.mean_squared_error(y_true, y_pred)
    return tf.where(tf.math.is_nan(error), tf.zeros_like(error), error)


def left_out(y_true: Any, y_pred: Any) -> Any:
    known = tf.math.is_finite(y_true)
    y_true = tf.where(known, y_true, tf.zeros_like(y_true))
    return tf.square(y_true - y_pred) * tf.cast(known, tf.float32)


def test_missing_labels_are_replaced_before_the_loss_and_not_by_a_label_of_zero(tmp_path: Path) -> None:
    def trained(loss: Callable[[Any, Any], Any]) -> keras.Model:
        keras.utils.set_random_seed(0)
        model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
        model.compile("sgd", loss)
        y = np.full((4, 1), np.nan, "float32")
        recorder = tb_gradflow.GradFlowCallback(tmp_path / loss.__name__, update_freq=1)
        model.fit(np.ones((4, 3), "float32"), y, verbose=0, callbacks=[recorder])
        return model

    trained(hidden_afterwards)

    [finding] = tb_gradflow.open_log(tmp_path / "hidden_afterwards").report().findings
    assert (finding.cause, finding.op) == ("nonfinite_input", None)
    assert "The loss is finite because it hides what is computed from them" in finding.message
    assert "nan_to_num" not in finding.fix
    assert "known = tf.math.is_finite(y_true)" in finding.fix
    # As the fix says:
    assert all(np.isfinite(weights).all() for weights in trained(left_out).get_weights())


def test_later_steps_lead_with_the_one_in_which_it_began(tmp_path: Path) -> None:
    log = training(tmp_path, poisoned=6, update_freq=1)

    first, second = log.report().findings

    assert (first.cause, second.cause) == ("nonfinite_input", "nonfinite_weights")
    assert first.message.startswith("In step 6, where it started: ")
    assert "It started in step 6." in second.message
    assert second.fix.startswith("Fix what happened in step 6")


def test_a_beginning_that_was_not_recorded_is_placed_between_two_steps(tmp_path: Path) -> None:
    log = training(tmp_path, poisoned=6, update_freq=4, catch_nonfinite=False)

    [finding] = log.report(step=8).findings

    assert finding.cause == "nonfinite_weights"
    assert "It started between the recorded steps 4 and 8." in finding.message
    assert "update_freq=1" in finding.fix


def test_the_guard_between_recorded_steps_names_the_batch(tmp_path: Path) -> None:
    log = training(tmp_path, poisoned=6, update_freq=4)

    first, _ = log.report(step=8).findings

    assert log.steps == (0, 4, 6, 8)
    assert (first.cause, first.op) == ("nonfinite_input", None)
    assert first.message.startswith("In step 6, where it started: ")


def test_explain_of_a_broken_model_blames_the_weights(tmp_path: Path) -> None:
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4, "relu"), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    kernel = model.layers[0].kernel.numpy()
    kernel[0, 0] = np.nan
    model.layers[0].kernel.assign(kernel)

    report = tb_gradflow.explain(model, np.ones((4, 3)), np.zeros((4, 1)))

    [finding] = report.findings
    assert (finding.cause, finding.severity) == ("nonfinite_weights", "error")
    assert "/kernel` (1 of 12 values)" in finding.message


def test_an_update_that_breaks_the_weights_is_told_of_the_optimizer() -> None:
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(float("inf")), "mse")

    report = tb_gradflow.explain(model, np.ones((4, 3)), np.zeros((4, 1)))

    [finding] = report.findings
    assert (finding.cause, finding.severity) == ("nonfinite_update", "error")


@pytest.mark.parametrize("name", ["x", "y"])
def test_both_parts_of_a_batch_are_looked_at(name: str) -> None:
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    batch = {"x": np.ones((4, 3), "float32"), "y": np.ones((4, 1), "float32")}
    batch[name][0] = np.inf

    [finding] = tb_gradflow.explain(model, batch["x"], batch["y"]).findings

    assert finding.cause == "nonfinite_input"
    assert f"`{name}` contains" in finding.message


def test_a_generator_is_not_blamed_for_the_critic_that_its_step_broke(tmp_path: Path) -> None:
    critic = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4, "relu"), keras.layers.Dense(1)])
    generator = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3)])
    optimizers = keras.optimizers.SGD(0.1), keras.optimizers.SGD(0.1)

    @tb_gradflow.watch(tmp_path, update_freq=1)
    @tf.function
    def step(real: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            fake = generator(noise)
            with tf.GradientTape() as inner:
                inner.watch(fake)
                score = critic(fake)
            penalty = tf.reduce_mean((tf.norm(inner.gradient(score, fake), axis=1) - 1) ** 2)
            loss = tf.reduce_mean(score) - tf.reduce_mean(critic(real)) + penalty
        weights = critic.trainable_variables
        optimizers[0].apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        with tf.GradientTape() as tape:
            loss = -tf.reduce_mean(critic(generator(noise)))
        weights = generator.trainable_variables
        optimizers[1].apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return loss

    critic.layers[0].set_weights([np.ones((3, 4)), np.full(4, -100.0)])  # dead, so that the penalty's norm is of zeros
    step(tf.ones((4, 3)), tf.ones((4, 2)))
    step.flush()

    loud = [each for each in tb_gradflow.open_log(tmp_path).report().findings if each.severity == "error"]
    quiet = [each for each in tb_gradflow.open_log(tmp_path).report().findings if each.cause == "nonfinite_weights"]
    generators = {weight.path for weight in generator.trainable_variables}
    assert loud[0].cause == "sqrt_at_zero"
    assert all(generators.isdisjoint(each.variables) for each in loud)
    assert [set(each.variables) for each in quiet] == [generators]
