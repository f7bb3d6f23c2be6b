"""Functions and layers with a story of their own: what is told of them when they stand on the only way to a loss."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.record.report import Finding

X = tf.constant(np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 4))
IMAGES = tf.constant(np.random.default_rng(0).random((2, 8, 8, 3)), tf.float32)


def told(loss: Callable[[Any], Any], start: Any, status: str) -> Finding:
    """The only finding on a loss of one variable, which is called `w`."""
    w = tf.Variable(np.asarray(start, np.float32), name="w")
    report = tb_gradflow.explain(lambda: loss(w), variables=[w])
    assert report.variables["w"].status == status
    [finding] = report.findings
    return finding


def test_where_a_pool_finds_its_largest_value_is_a_position() -> None:
    def loss(w: Any) -> Any:
        _, places = tf.nn.max_pool_with_argmax(IMAGES * w, 2, 2, "SAME")
        return tf.reduce_mean(tf.cast(places, tf.float32))

    finding = told(loss, 1.0, "disconnected")

    assert finding.cause == "nondiff_index"
    assert "turns values into indices" in finding.message
    assert "the first output of `tf.nn.max_pool_with_argmax`" in finding.fix


def test_no_remedy_takes_a_tensor_of_integers_from_one_of_floats() -> None:
    finding = told(lambda w: tf.reduce_mean(tf.cast(tf.bitcast(X * w, tf.int32), tf.float32)), 1.0, "disconnected")

    assert finding.cause == "nondiff_op"
    assert "stop_gradient" not in finding.fix


def test_a_length_that_is_also_compared_inside_is_cast_to_an_integer() -> None:
    finding = told(lambda w: tf.reduce_sum(tf.signal.hann_window(tf.cast(w, tf.int32))), 5.0, "disconnected")

    assert (finding.cause, finding.op.type if finding.op else None) == ("integer_dtype", "Cast")


def test_an_op_that_raises_is_told_before_one_that_it_keeps_the_tape_from() -> None:
    finding = told(lambda w: tf.reduce_sum(tf.unique(tf.round(w))[0]), [0.2, 1.3, 1.4], "error")

    assert (finding.cause, finding.op.type if finding.op else None) == ("no_gradient_registered", "Unique")


def test_the_ends_of_a_range_that_is_quantised_get_zeros() -> None:
    def loss(w: Any) -> Any:
        return tf.reduce_mean(tf.square(tf.quantization.quantize_and_dequantize_v2(X, -w, w, range_given=True) - 2.0))

    finding = told(loss, 0.5, "zero")

    assert (finding.cause, finding.severity) == ("nondiff_op_input", "error")
    assert "fake_quant_with_min_max_vars" in finding.fix


def test_a_real_number_has_no_imaginary_part() -> None:
    def loss(w: Any) -> Any:
        return tf.reduce_mean(tf.square(tf.math.imag(tf.cast(X * w, tf.complex64)) - 1.0))

    finding = told(loss, 1.0, "zero")

    assert "are the real part of complex numbers" in finding.message


def test_of_the_nearest_pixel_the_remedy_is_the_next_order() -> None:
    def loss(w: Any) -> Any:
        at = tf.stack([w, w])[:, None]
        return tf.reduce_mean(keras.ops.image.map_coordinates(X, at, 0))

    finding = told(loss, 1.3, "disconnected")

    assert finding.cause == "nondiff_index"
    assert "keras.ops.image.map_coordinates(X, at, order=1)" in finding.fix


@pytest.mark.parametrize(("name", "remedy"), [("Poisson", "tf.random.normal"), ("Mixture", "reparameterize=True")])
def test_a_sample_is_drawn_by_a_distribution_and_not_by_what_it_compares(name: str, remedy: str) -> None:
    import tensorflow_probability as tfp

    def loss(w: Any) -> Any:
        distribution = tfp.distributions.Poisson(log_rate=w)
        if name == "Mixture":
            normals = tfp.distributions.Normal([-1.0, 1.0], 1.0)
            distribution = tfp.distributions.MixtureSameFamily(tfp.distributions.Categorical(w), normals)
        return tf.reduce_mean(tf.square(distribution.sample(16) - 3.0))

    finding = told(loss, [0.1, 0.2] if name == "Mixture" else 0.3, "disconnected")

    assert finding.cause == "nondiff_sampling"
    assert "`distribution.sample`" in finding.message
    assert remedy in finding.fix


def test_what_lies_between_edges_of_a_librarys_own_is_counted_softly() -> None:
    import tensorflow_probability as tfp

    def loss(w: Any) -> Any:
        return tf.reduce_mean(tf.cast(tfp.stats.find_bins(0.9 * X, w), tf.float32))

    finding = told(loss, [-1.0, 0.0, 1.0], "disconnected")

    assert finding.cause == "nondiff_index"
    assert "Use a soft count of the edges below each value" in finding.fix


def told_of_model(layers: list[Any], loss: str, x: Any, y: Any) -> Finding:
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input(x.shape[1:]), *layers])
    model.compile("sgd", loss)
    return tb_gradflow.explain(model, np.asarray(x), y).findings[0]


def test_a_dead_relu_that_predicts_is_left_out() -> None:
    low = keras.initializers.Constant(-30.0)
    last = [keras.layers.Dense(1, activation="relu", bias_initializer=low)]
    inside = [keras.layers.Dense(4), keras.layers.ReLU(threshold=30.0), keras.layers.Dense(1, use_bias=False)]

    finding = told_of_model(last, "mse", X, np.ones((8, 1)))
    negative = told_of_model(last, "mse", X, -np.ones((8, 1)))
    before = told_of_model(inside, "mse", X, -np.ones((8, 1)))

    assert (finding.cause, before.cause) == ("dead_relu", "dead_relu")
    assert negative.cause == "targets_out_of_reach"
    assert "Remove the activation of layer" in negative.fix
    assert "remove the ReLU: it cannot predict negative values" in finding.fix
    assert "predicts" not in before.fix


def test_a_loss_of_rates_wants_a_model_that_ends_above_zero() -> None:
    finding = told_of_model([keras.layers.Dense(1)], "poisson", X, np.ones((8, 1)))

    assert finding.cause == "log_zero"
    assert 'activation="softplus"' in finding.fix


def test_the_backward_direction_has_only_begun_at_the_last_step() -> None:
    recurrent = keras.layers.Bidirectional(keras.layers.SimpleRNN(4, return_sequences=True))
    layers = [keras.layers.Reshape((4, 1)), recurrent, keras.layers.Lambda(lambda t: t[:, -1]), keras.layers.Dense(1)]

    finding = told_of_model(layers, "mse", X, np.ones((8, 1)))

    assert finding.cause == "recurrent_weight_single_step"
    assert "first step of the backward direction, at the end of the sequence" in finding.message
    assert "return_sequences=False" in finding.fix


def places_of_the_largest(scores: Any) -> Any:
    _, places = tf.math.top_k(scores, 2)
    return places


def places_in_order(scores: Any) -> Any:
    return tf.argsort(scores)


def places_from_the_largest_on(scores: Any) -> Any:
    return tf.argsort(scores, direction="DESCENDING")


@pytest.mark.parametrize("places", [places_of_the_largest, places_in_order, places_from_the_largest_on])
@pytest.mark.parametrize("shape", [(4,), (4, 3)])
def test_what_is_picked_by_scores_teaches_them_once_it_is_weighed_or_put_in_order_softly(
    places: Callable[[Any], Any], shape: tuple[int, ...]
) -> None:
    rows = tf.constant(np.random.default_rng(1).normal(size=shape), tf.float32)
    start = [0.3, 2.0, -1.0, 0.9]

    finding = told(lambda w: tf.reduce_mean(tf.square(tf.gather(rows, places(w))[:2] - 1.0)), start, "disconnected")

    *before, last = re.findall(r"`([^`]+)`", finding.fix)
    scores = tf.Variable(start)
    names = {"tf": tf, "rows": rows, "scores": scores}
    with tf.GradientTape() as tape:
        for statement in before:
            exec(statement, names)
        loss = tf.reduce_mean(tf.square(eval(last, names)[:2] - 1.0))
    assert np.any(tape.gradient(loss, scores))
    if places is not places_of_the_largest:
        np.testing.assert_allclose(eval(last, names), tf.gather(rows, places(scores)), atol=0.02)


def test_a_mask_of_the_largest_gets_the_gradient_of_soft_weights() -> None:
    def step(w: Any) -> Any:
        _, places = tf.math.top_k(w, 2)
        mask = tf.reduce_sum(tf.one_hot(places, 4), axis=0)
        return tf.reduce_sum(mask * tf.constant([1.0, 3.0, 2.0, 5.0]))

    finding = told(step, [0.3, 2.0, -1.0, 0.9], "disconnected")

    first, last = re.findall(r"`([^`]*soft[^`]*)`", finding.fix)
    w = tf.Variable([0.3, 2.0, -1.0, 0.9])
    names = {"tf": tf, "w": w, "mask": tf.constant([0.0, 1.0, 0.0, 1.0])}
    with tf.GradientTape() as tape:
        exec(first, names)
        mask = eval(last, names)
        loss = tf.reduce_sum(mask * tf.constant([1.0, 3.0, 2.0, 5.0]))
    assert np.all(tape.gradient(loss, w))
    np.testing.assert_allclose(mask, names["mask"], atol=1e-6)


def test_a_loss_of_an_averaged_copy_is_taken_from_the_copied_weights() -> None:
    student, average = (keras.layers.Dense(1, name=name) for name in ("student", "average"))
    student.build((None, 4))
    average.build((None, 4))

    def loss() -> Any:
        for copied, own in zip(average.variables, student.variables, strict=True):
            copied.assign(0.9 * copied + 0.1 * own)
        return tf.reduce_mean(tf.square(average(X) - 1.0))

    report = tb_gradflow.explain(loss, variables=[each.value for each in student.variables])

    finding = report.findings[0]
    assert (finding.cause, finding.variables) == ("variable_assign", ("student/kernel", "student/bias"))
    assert "`average` is a copy of other weights" in finding.fix


def test_a_clip_that_the_recorder_observes_keeps_its_name() -> None:
    weight = tf.Variable([9.0, 10.0], name="weight")
    report = tb_gradflow.explain(lambda: tf.reduce_sum(tf.clip_by_value(weight, 0.0, 6.0)), variables=[weight])

    assert report.findings[0].cause == "saturation_clip"
    assert "`tf.clip_by_value`" in report.findings[0].message


def test_data_close_to_zero_want_to_be_scaled() -> None:
    model = keras.Sequential([keras.layers.Dense(8, name="first"), keras.layers.Dense(1)])
    model.compile("sgd", "mse")

    finding = tb_gradflow.explain(model, 1e-9 * np.asarray(X), np.ones((8, 1))).findings[0]

    assert (finding.cause, finding.variables) == ("vanishing_depth", ("sequential/first/kernel",))
    assert "multiplies it by the data" in finding.message
    assert finding.fix.startswith("Scale the data")
