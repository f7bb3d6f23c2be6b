"""Steps of the user's own that raise while they are traced or while they run."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow


def untrained_actor(directory: Path) -> Any:
    """A step whose second loss is made without the network that it is to train; Keras refuses to apply nothing."""
    actor = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, name="policy")], name="actor")
    critic = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, name="value")], name="critic")
    optimizers = [keras.optimizers.Adam() for _ in range(2)]

    def train(network: Any, optimizer: Any, loss_of: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of()
        gradients = tape.gradient(loss, network.trainable_variables)
        optimizer.apply_gradients(zip(gradients, network.trainable_variables, strict=True))
        return loss

    @tb_gradflow.watch(directory)
    def step(states: Any, actions: Any) -> Any:
        actor(states)
        train(critic, optimizers[0], lambda: tf.reduce_mean(critic(actions) ** 2))
        return train(actor, optimizers[1], lambda: -tf.reduce_mean(critic(actions)))

    return step


def test_a_step_that_keras_refuses_raises_as_ever_and_the_log_says_why(tmp_path: Path) -> None:
    """Its trace has made the slots of two optimizers by then."""
    step = untrained_actor(tmp_path)

    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # the recorder has nothing to complain about itself
        with pytest.raises(ValueError, match="No gradients provided for any variable"):
            step(tf.ones((4, 3)), tf.ones((4, 2)))
    step.flush()

    report = tb_gradflow.open_log(tmp_path).report()
    error = next(finding for finding in report.findings if finding.severity == "error")
    assert error.cause == "output_not_used"
    assert set(error.variables) == {"actor/policy/kernel", "actor/policy/bias"}
    assert report.variables["critic/value/kernel"].status == "not_measured"


def test_an_error_of_the_users_own_is_raised_with_their_line(tmp_path: Path) -> None:
    @tb_gradflow.watch(tmp_path)
    def step(x: Any) -> Any:
        tf.Variable(1.0)
        raise RuntimeError("the user's own")

    with pytest.raises(RuntimeError, match="the user's own") as caught:
        step(tf.ones(3))

    assert any(Path(entry.path).name == Path(__file__).name for entry in caught.traceback)


def in_a_loop(directory: Path, x: Any) -> None:
    weight = tf.Variable(1.0)

    @tb_gradflow.watch(directory, update_freq=1)
    def step(value: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.debugging.check_numerics(value, "the user's own") * weight
        weight.assign_sub(tape.gradient(loss, weight))
        return loss

    for value in x:
        step(tf.constant(value))


def in_a_fit(directory: Path, x: Any) -> None:
    inputs = keras.Input((1,))
    checked = keras.layers.Lambda(lambda value: tf.debugging.check_numerics(value, "the user's own"))(inputs)
    model = keras.Model(inputs, keras.layers.Dense(1)(checked))
    model.compile("sgd", "mse")
    recorder = tb_gradflow.GradFlowCallback(directory, update_freq=1)
    model.fit(x[:, None], x[:, None], batch_size=1, shuffle=False, verbose=0, callbacks=[recorder])


@pytest.mark.parametrize("train", [in_a_loop, in_a_fit])
def test_steps_before_an_error_can_be_read_while_it_is_handled(train: Any, tmp_path: Path) -> None:
    """A notebook keeps its traceback, and with it the recorder, so that nothing would write what is in its buffer."""
    with pytest.raises(tf.errors.InvalidArgumentError, match="the user's own"):
        train(tmp_path, np.array([1, 2, 3, np.nan], np.float32))

    assert tb_gradflow.open_log(tmp_path).steps == (0, 1, 2)


def test_an_op_of_the_users_inside_of_a_function_that_fails_at_once_is_no_fault_of_the_recorder(tmp_path: Path) -> None:
    """The gradient of a function of NumPy has another shape than its argument."""

    def loss(labels: Any, predictions: Any) -> Any:
        rank = tf.py_function(
            lambda a, b: np.float32(np.corrcoef(a, b)[0, 1]), [labels[:, 0], predictions[:, 0]], "float32"
        )
        return -tf.ensure_shape(tf.cond(rank > 2.0, lambda: tf.zeros_like(rank), lambda: rank), [])

    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    model.compile("sgd", loss)
    x, y = np.random.default_rng(0).normal(size=(8, 3)), np.random.default_rng(1).normal(size=(8, 2))

    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.raises(tf.errors.InvalidArgumentError, match="Graph execution error"):
            model.fit(x, y, batch_size=8, verbose=0, callbacks=[tb_gradflow.GradFlowCallback(tmp_path)])
