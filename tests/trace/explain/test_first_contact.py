"""Programs as people write them, at the first look: what is fine is quiet, and what is wrong is said as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow

layers, ops = keras.layers, keras.ops


def numbers(*shape: int, seed: int = 1) -> Any:
    return tf.constant(np.random.default_rng(seed).normal(size=shape).astype("float32"))


class Navigator:
    """Variables in the attributes of an object, none of which has a name."""

    def __init__(self) -> None:
        self.position = tf.Variable(0.4)
        self.heads = {"left": tf.Variable(numbers(10))}

    def loss(self) -> Any:
        place = tf.cast(self.position * 10.0, tf.int32)
        return tf.square(tf.gather(self.heads["left"], place) - 1.0)


def test_a_variable_without_a_name_is_called_as_the_code_calls_it() -> None:
    """`tf.Variable(0.4)` is `Variable` to TensorFlow, and so is the next one."""
    navigator, gate = Navigator(), tf.Variable(0.3)

    of_object = tb_gradflow.explain(navigator.loss, variables=[navigator.position, navigator.heads["left"]])
    of_closure = tb_gradflow.explain(lambda: tf.round(gate * 3.0), variables=[gate])

    assert of_object.findings[0].message.startswith("`self.position` gets no gradient: `tf.cast`")
    assert of_closure.findings[0].message.startswith("`gate` gets no gradient: `tf.round`")
    assert list(of_object.variables) == ["Variable", "Variable (2)"]
    assert "self.heads['left'] = Variable (2)" in str(of_object)


class Scale(keras.layers.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.alpha = tf.Variable(1.0)

    def call(self, x: Any) -> Any:
        return self.alpha * x


def test_the_attribute_of_a_layer_is_named_in_the_advice() -> None:
    model = keras.Sequential([keras.Input((4,)), layers.Dense(3), Scale()])
    model.compile("sgd", "mse")

    [finding] = tb_gradflow.explain(model, numbers(4, 4), numbers(4, 3)).findings

    assert (finding.cause, finding.severity) == ("untracked_variable", "warning")
    assert finding.message.startswith("`self.alpha` is used in the loss")
    assert '`self.alpha = self.add_weight(name="alpha", shape=...)`' in finding.fix


def physics(activation: str) -> Any:
    """A physics-informed network for u'' = -u, with one tape for both derivatives."""
    net = keras.Sequential(
        [keras.Input((1,)), layers.Dense(8, activation), layers.Dense(8, activation), layers.Dense(1)]
    )
    x = numbers(16, 1)

    def loss() -> Any:
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            u = net(x)
            u_x = tape.gradient(u, x)
        u_xx = tape.gradient(u_x, x)
        return tf.reduce_mean(tf.square(u_xx + u)) + tf.reduce_mean(tf.square(u[:4] - tf.sin(x[:4])))

    return tb_gradflow.explain(loss, variables=net.trainable_variables)


def test_a_second_derivative_that_is_zero_everywhere_is_told_though_every_weight_learns() -> None:
    report = physics("relu")

    assert {each.status for each in report.variables.values()} == {"connected"}
    assert [(each.cause, each.severity) for each in report.findings] == [("second_order_missing", "error")]
    assert report.findings[0].message.startswith("The second derivative with respect to `x` is exactly zero: ")
    assert str(report).splitlines()[1].startswith("A second derivative is zero everywhere: ")
    physics("tanh").assert_healthy()


class Pretrained(keras.Model):
    """A head that waits for its own phase; or one that predicts, and that the training forgets."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder, self.head = layers.Dense(6), layers.Dense(4), layers.Dense(3)

    def build(self, shape: Any) -> None:
        self.encoder.build((None, 4))
        self.decoder.build((None, 6))
        self.head.build((None, 6))
        self.built = True

    def call(self, x: Any) -> Any:
        return self.decoder(self.encoder(x))


class ForLater(Pretrained):
    def classify(self, x: Any) -> Any:
        return self.head(self.encoder(x))


class Forgetful(Pretrained):
    def predict_step(self, data: Any) -> Any:
        return self.head(self.encoder(data))


@pytest.mark.parametrize(("kind", "severity"), [(ForLater, "info"), (Forgetful, "error")])
def test_a_head_that_only_another_phase_calls_is_information(kind: type, severity: str) -> None:
    model = kind()
    model.build((None, 4))
    model.compile("sgd", "mse")

    [finding] = tb_gradflow.explain(model, numbers(4, 4), numbers(4, 4)).findings

    assert finding.severity == severity
    assert ("only the method `classify` of the model uses them" in finding.message) == (severity == "info")


def test_exponentials_that_vanish_under_a_division_do_not_overflow() -> None:
    """Optimal transport by Sinkhorn's iterations, with a regularisation that is too small: exp(-cost / 0.05) is 0."""
    net, z, data = keras.Sequential([keras.Input((2,)), layers.Dense(2)]), numbers(8, 2), numbers(8, 2, seed=2) * 5.0

    def loss() -> Any:
        cost = tf.reduce_sum((net(z)[:, None] - data[None]) ** 2, -1)
        kernel = tf.exp(-cost / 0.05)
        u = tf.ones([8]) / 8.0
        for _ in range(2):
            v = (1 / 8) / tf.linalg.matvec(kernel, u, transpose_a=True)
            u = (1 / 8) / tf.linalg.matvec(kernel, v)
        return tf.reduce_sum(u[:, None] * kernel * v[None] * cost)

    [finding] = tb_gradflow.explain(loss, variables=net.trainable_variables).findings

    assert finding.cause == "zero_over_zero"
    assert "underflows to zero for inputs far below zero" in finding.message
    assert finding.source is not None
    assert finding.source.code.startswith("v = (1 / 8)")


class Attention(keras.layers.Layer):
    """Weighs the instances of a bag, over the wrong axis."""

    def build(self, shapes: Any) -> None:
        self.v = self.add_weight(shape=(shapes[0][1], 6), name="v", regularizer="l2")
        self.w = self.add_weight(shape=(6, 1), name="w", regularizer="l2")

    def call(self, instances: Any) -> Any:
        scores = [ops.matmul(ops.tanh(ops.matmul(each, self.v)), self.w) for each in instances]
        alpha = ops.softmax(ops.stack(scores), axis=-1)
        return [alpha[place] for place in range(alpha.shape[0])]


def test_a_softmax_over_one_entry_is_found_in_a_training_that_takes_its_result_apart(tmp_path: Path) -> None:
    """The gradient of what is taken apart is not recorded, for that would change the training's rounding."""
    keras.utils.set_random_seed(1)
    inputs, dense = [keras.Input((4,)) for _ in range(3)], layers.Dense(5, "relu")
    bag = [dense(each) for each in inputs]
    alpha = Attention(name="alpha")(bag)
    joined = layers.concatenate([layers.multiply([weight, each]) for weight, each in zip(alpha, bag, strict=True)])
    model = keras.Model(inputs, layers.Dense(2, "softmax")(joined))
    model.compile("adam", "sparse_categorical_crossentropy")
    x = [numbers(2, 4, seed=place) for place in range(3)]

    recorder = tb_gradflow.GradFlowCallback(str(tmp_path), update_freq=1)
    model.fit(x, np.array([0, 1]), batch_size=1, verbose=0, callbacks=[recorder])

    [finding] = [each for each in tb_gradflow.open_log(tmp_path).report().findings if each.severity == "error"]
    assert finding.cause == "softmax_single_class"
    assert set(finding.variables) == {"alpha/v", "alpha/w"}


def test_an_output_that_is_always_one_is_no_gradient_that_teaches_nothing() -> None:
    class Endpoint(keras.layers.Layer):
        def call(self, logits: Any, targets: Any) -> Any:
            self.add_loss(keras.losses.BinaryCrossentropy(from_logits=True)(targets, logits))
            return tf.nn.softmax(logits)

    x, y = keras.Input((4,)), keras.Input((1,))
    model = keras.Model([x, y], Endpoint()(layers.Dense(1)(x), y))
    model.compile("sgd")

    report = tb_gradflow.explain(model, [numbers(4, 4), tf.ones((4, 1))])

    assert report.findings[0].cause == "softmax_single_class"
    assert "The output of the model is always 1" in str(report)
    assert "teaches nothing" not in str(report)


def test_towers_that_are_given_the_same_picture_are_told_below_a_floor() -> None:
    """`maximum` keeps the root from zero, and is flat there; why all distances are zero is what people ask."""
    tower = keras.Sequential([keras.Input((4,)), layers.Dense(6, "tanh")])
    one, other = keras.Input((4,)), keras.Input((4,))

    def distance(pair: Any) -> Any:
        return ops.sqrt(ops.maximum(ops.sum(ops.square(pair[0] - pair[1]), axis=1, keepdims=True), 1e-7))

    merged = layers.Lambda(distance, output_shape=(1,))([tower(one), tower(one)])
    model = keras.Model([one, other], layers.Dense(1, "sigmoid")(merged))
    model.compile("sgd", "binary_crossentropy")

    report = tb_gradflow.explain(model, [numbers(8, 4), numbers(8, 4, seed=2)], np.arange(8) % 2)

    finding = next(each for each in report.findings if "sequential" in each.variables[0] or len(each.variables) == 2)
    assert finding.cause == "gradient_cancellation"
    assert "in this step they are equal, or almost equal, in every element" in finding.message


def test_a_network_of_zeros_is_an_error_and_gates_of_zeros_are_not() -> None:
    x, y = numbers(8, 4), numbers(8, 3)
    zeros = {"kernel_initializer": "zeros"}
    dead = keras.Sequential([keras.Input((4,)), layers.Dense(6, "sigmoid", **zeros), layers.Dense(3, **zeros)])
    dead.compile("sgd", "mse")
    given = keras.Input((4,))
    gated = given + layers.Dense(4, **zeros)(layers.Dense(6, "silu")(given)) * layers.Dense(4)(given)
    gates = keras.Model(given, layers.Dense(3, **zeros)(gated))
    gates.compile("sgd", "mse")

    [error] = [each for each in tb_gradflow.explain(dead, x, y).findings if each.severity == "error"]

    assert error.cause == "zero_init_product"
    assert "all of its units are equal" in error.message
    tb_gradflow.explain(gates, x, y).assert_healthy()


def test_the_length_of_a_mask_is_cut_off_by_the_mask() -> None:
    span, w, x = tf.Variable(3.0), tf.Variable(numbers(5, 3)), numbers(4, 6, 5)

    def loss() -> Any:
        mask = tf.sequence_mask(span, 6)
        penalty = tf.reduce_sum(tf.cast(mask, tf.float32))
        return tf.reduce_mean(tf.square(x @ w)) + 0.01 * penalty

    [finding] = tb_gradflow.explain(loss, variables=[w, span]).findings

    assert finding.cause == "nondiff_comparison"
    assert finding.message.startswith("`span` gets no gradient: `tf.sequence_mask`")
