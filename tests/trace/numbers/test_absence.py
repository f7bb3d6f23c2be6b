"""A variable that gets None, zero, NaN or a real gradient is recorded as exactly that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import tb_gradflow
from tests.trace.recording import data, record

layers = keras.layers


class FourFates(keras.layers.Layer):
    def build(self, shape: Any) -> None:
        for name in ("none", "zero", "nan", "real"):
            setattr(self, name, self.add_weight(name=name, shape=(6,), initializer="ones"))

    def call(self, x: Any) -> Any:
        none = tf.round(self.none)
        zero = tf.maximum(self.zero, 100.0)
        nan = tf.where(x > 1e9, tf.math.log(self.nan - 1.0), 0.0)
        return x * self.real + none + zero + nan


def build() -> Any:
    x = keras.Input((6,))
    model = keras.Model(x, layers.Dense(2, name="out")(FourFates(name="fates")(x)))
    model.compile("sgd", "mse")
    return model


def test_each_fate_is_recorded_as_it_was(tmp_path: Path) -> None:
    recorded = record(tmp_path, build, *data())

    assert recorded.outcome("fates/none") == "none"
    assert recorded.outcome("fates/zero") == recorded.outcome("fates/nan") == recorded.outcome("fates/real") == "value"
    assert recorded.gradient("fates/zero") == 0.0
    assert recorded.gradient("fates/zero", "zero_fraction") == 1.0
    assert recorded.gradient("fates/zero", "nan_count") == 0.0
    assert recorded.gradient("fates/nan", "nan_count") == 6.0
    assert recorded.gradient("fates/nan", "zero_fraction") == 0.0
    assert recorded.gradient("fates/real") > 0.0
    assert recorded.gradient("fates/real", "nan_count") == 0.0


def test_what_moved_is_recorded_beside_what_pushed(tmp_path: Path) -> None:
    recorded = record(tmp_path, build, *data())

    assert recorded.norm("fates/none", "update_norm") == 0.0
    assert recorded.norm("fates/zero", "update_norm") == 0.0
    assert recorded.norm("fates/real", "update_norm") > 0.0
    assert recorded.norm("fates/none", "weight_norm") == np.float32(np.sqrt(6.0))


def test_infinite_is_not_nan(tmp_path: Path) -> None:
    class Root(keras.layers.Layer):
        def build(self, shape: Any) -> None:
            self.w = self.add_weight(name="w", shape=(6,), initializer="zeros")

        def call(self, x: Any) -> Any:
            return x + tf.sqrt(self.w)

    def rooted() -> Any:
        x = keras.Input((6,))
        model = keras.Model(x, layers.Dense(2)(Root(name="root")(x)))
        model.compile("sgd", "mse")
        return model

    recorded = record(tmp_path, rooted, *data())

    assert recorded.gradient("root/w", "inf_count") == 6.0
    assert recorded.gradient("root/w", "nan_count") == 0.0


def test_zeros_in_the_place_of_none_are_told_apart(tmp_path: Path) -> None:
    class Zeros(keras.Model):
        def __init__(self) -> None:
            super().__init__(name="zeros")
            self.cut = self.add_weight(name="cut", shape=(), initializer="ones")
            self.out = layers.Dense(2, name="out")

        def call(self, x: Any) -> Any:
            return self.out(x * tf.round(self.cut))

        def train_step(self, batch: Any) -> Any:
            x, y = batch
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(self(x) - y))
            variables = [variable.value for variable in self.trainable_variables]
            gradients = tape.gradient(loss, variables, unconnected_gradients=tf.UnconnectedGradients.ZERO)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
            return {"loss": loss}

    def with_zeros() -> Any:
        model = Zeros()
        model.compile("sgd")
        return model

    recorded = record(tmp_path, with_zeros, *data())

    [target] = recorded.trace.targets
    assert target.unconnected == "zero"
    [cut] = [v.name for v in recorded.trace.variables if v.name.endswith("cut")]
    [answer] = [g for g in recorded.trace.variable_gradients if recorded.trace.variables[g.variable].name == cut]
    assert (answer.outcome, answer.row) == ("none", None)
    assert {edge.passes for edge in recorded.op("Round").inputs} == {"none"}


def test_a_frozen_layer_was_not_asked_for(tmp_path: Path) -> None:
    def frozen() -> Any:
        x = keras.Input((6,))
        first = layers.Dense(4, name="first", trainable=False)
        model = keras.Model(x, layers.Dense(2, name="out")(first(x)))
        model.compile("sgd", "mse")
        return model

    recorded = record(tmp_path, frozen, *data())

    [first] = [v for v in recorded.trace.variables if v.name == "first/kernel"]
    assert not first.trainable
    names = [v.name for v in recorded.trace.variables]
    asked = {names[g.variable] for g in recorded.trace.variable_gradients if g.outcome != "not_asked"}
    assert asked == {"out/kernel", "out/bias"}


class OutsideTheTape(keras.Model):
    """Not built before its first step."""

    def __init__(self) -> None:
        super().__init__()
        self.out = layers.Dense(2, name="out")

    def call(self, x: Any) -> Any:
        return self.out(x)

    def train_step(self, data: Any) -> Any:
        x, y = data
        predicted = self(x, training=True)
        with tf.GradientTape() as tape:
            error = tf.reduce_mean(tf.square(predicted - y))
        tape.gradient(error, self.trainable_variables)
        return {"error": error}


def test_a_model_that_its_first_step_builds_is_known_where_the_tape_did_not_see_it(tmp_path: Path) -> None:
    def build() -> Any:
        model = OutsideTheTape()
        model.compile()
        return model

    recorded = record(tmp_path, build, *data(outputs=2))

    reads = {recorded.trace.variables[op.reads].name for op in recorded.trace.ops if op.reads is not None}
    assert {name.rpartition("/")[2] for name in reads} == {"kernel", "bias"}


def test_python_on_the_way_of_a_loss_that_no_variable_reaches_is_told_of(tmp_path: Path) -> None:
    """The model is called inside of `tf.numpy_function`, and no op of the step computes with a variable."""
    model = keras.Sequential([keras.Input((3,)), layers.Dense(2, name="actor")])

    def forward(x: Any) -> Any:
        return model(x).numpy()

    @tb_gradflow.watch(str(tmp_path), update_freq=1)
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            logits = tf.numpy_function(forward, [x], tf.float32)
            error = tf.reduce_mean(tf.square(logits))
        tape.gradient(error, model.trainable_variables)
        return error

    step(tf.ones((4, 3)))
    step.flush()

    [finding] = tb_gradflow.open_log(str(tmp_path)).report().findings
    assert finding.severity == "error"
    assert "If the function called by `tf.numpy_function` (test_absence.py:" in finding.message


def test_a_logarithm_of_labels_that_have_a_floor_is_finite(tmp_path: Path) -> None:
    """Of two logarithms of labels it is the other one that broke."""

    def loss(y: Any, p: Any) -> Any:
        ones = tf.ones_like(y)
        floored = tf.math.log(tf.maximum(y, 1e-7))
        return p * floored + p * tf.math.log(ones - y)

    def build() -> Any:
        model = keras.Sequential([keras.Input((6,)), layers.Dense(1, name="out")])
        model.compile("sgd", loss)
        return model

    x, _ = data()
    record(tmp_path, build, x, np.ones((len(x), 1), np.float32))

    finding = tb_gradflow.open_log(str(tmp_path)).report(step=0).findings[0]
    assert finding.cause == "log_zero"
    assert finding.source is not None
    assert "ones - y" in finding.fix
