"""Classes of mistakes that programs of others have shown: which op is blamed, which line, and what is left alone."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow

layers = keras.layers


def numbers(*shape: int, seed: int = 3) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


class Scaled(keras.layers.Layer):
    """The branch of a residual block, with a scale that begins at almost nothing, as LayerScale has it."""

    def build(self, shape: Any) -> None:
        self.inner = layers.Dense(shape[-1], "tanh")
        self.inner.build(shape)
        self.scale = self.add_weight(name="scale", shape=(), initializer=keras.initializers.Constant(1e-11))

    def call(self, x: Any) -> Any:
        return x + self.scale * self.inner(x)


def test_what_healthy_weights_pass_as_well_is_not_to_blame_for_small_gradients() -> None:
    """In a network of residual blocks the gradient of the branches is small, and that of the stream is not."""
    keras.utils.set_random_seed(1)
    body = [Scaled(name=f"block_{number}") for number in range(3)]
    model = keras.Sequential([keras.Input((4,)), layers.Dense(6), *body, layers.Dense(1)])
    model.compile("adam", "mse")

    report = tb_gradflow.explain(model, numbers(16, 4), numbers(16, 1, seed=4))

    small = [name for name, each in report.variables.items() if each.status == "vanishing"]
    assert {name.split("/")[1] for name in small} == {"block_0", "block_1", "block_2"}
    assert report.healthy
    [finding] = report.findings
    assert set(finding.variables) == set(small)
    assert finding.op is not None
    assert finding.op.type == "Mul"


def test_an_offset_in_front_of_a_layer_whose_outputs_are_subtracted_has_no_influence() -> None:
    """A BatchNormalization's beta, and the last bias: both cancel in a difference of scores."""
    keras.utils.set_random_seed(2)
    scorer = keras.Sequential(
        [keras.Input((5,)), layers.Dense(6, "tanh"), layers.BatchNormalization(), layers.Dense(1)]
    )

    def ranking_loss(better: Any, worse: Any) -> Any:
        difference = scorer(better, training=True) - scorer(worse, training=True)
        return tf.reduce_mean(tf.math.softplus(-difference))

    report = tb_gradflow.explain(
        ranking_loss, args=(numbers(12, 5), numbers(12, 5, seed=5)), variables=scorer.trainable_variables
    )

    assert report.healthy
    without = {name for each in report.findings if each.cause == "shift_invariant_parameter" for name in each.variables}
    assert {name.rpartition("/")[2] for name in without} == {"beta", "bias"}


def test_a_value_that_numpy_took_is_to_blame_and_not_the_index_that_it_chose() -> None:
    policy = tf.Variable([[0.3, 0.9, -0.2]], name="policy")

    def policy_loss(advantage: Any) -> Any:
        probabilities = tf.nn.softmax(policy)
        action = int(np.argmax(probabilities.numpy()))
        log_probability = np.log(probabilities.numpy()[0, action])
        return -tf.reduce_mean(log_probability * advantage)

    report = tb_gradflow.explain(policy_loss, args=(tf.constant([1.0, 0.5]),), variables=[policy])

    [finding] = report.findings
    assert finding.cause == "python_escape"
    assert finding.source is not None
    assert "np.log" in finding.source.code


def squares(values: Any) -> Any:
    return tf.square(values)


def powers(values: Any) -> Any:
    return values**2


def products(values: Any) -> Any:
    return values * values


@pytest.mark.parametrize("square", [squares, powers, products])
def test_a_difference_of_two_equal_outputs_has_two_sides(square: Any) -> None:
    keras.utils.set_random_seed(2)
    tower = keras.Sequential([keras.Input((3,)), layers.Dense(4, "tanh"), layers.Dense(2)])

    def distance(view: Any, other: Any) -> Any:
        return tf.reduce_mean(square(tower(view) - tower(other)))

    view = numbers(6, 3)
    report = tb_gradflow.explain(distance, args=(view, view), variables=tower.trainable_variables)

    [finding] = report.findings
    assert (finding.cause, finding.severity) == ("gradient_cancellation", "warning")
    assert "both sides of the difference" in finding.message


def tied(x: Any, w: Any) -> Any:
    return tf.tanh(x @ w) @ w - tf.zeros_like(x)


def product_of_two(x: Any, w: Any) -> Any:
    return (w - tf.ones([3, 3])) * (2.0 * w - tf.ones([3, 3]))


@pytest.mark.parametrize(("residual", "start"), [(tied, 0.0), (product_of_two, 1.0)])
@pytest.mark.parametrize("square", [squares, powers])
def test_what_is_on_one_side_of_a_difference_is_not_said_to_be_on_both(
    residual: Any, start: float, square: Any
) -> None:
    """Zero below a lower bound, but of a variable that is used twice on one side, or of two differences."""
    w = tf.Variable(tf.fill([3, 3], start), name="w")

    def loss(x: Any) -> Any:
        total = residual(x, w) if residual is product_of_two else square(residual(x, w))
        return tf.reduce_mean(tf.sqrt(tf.maximum(tf.reduce_sum(total, -1), 1e-9)))

    report = tb_gradflow.explain(loss, args=(numbers(4, 3),), variables=[w])

    assert report.variables["w"].status == "zero"
    assert not any("both sides" in finding.message for finding in report.findings)


def test_a_fit_that_is_exact_is_no_comparison_with_itself() -> None:
    k = tf.Variable(tf.eye(3), name="k")

    def loss(x: Any) -> Any:
        return tf.reduce_mean(tf.square((x @ k) @ k - x))

    report = tb_gradflow.explain(loss, args=(numbers(4, 3),), variables=[k])

    assert report.healthy


def of_probabilities(x: Any, w: Any) -> Any:
    gates = tf.nn.softmax(x @ w)
    return tf.one_hot(tf.argmax(gates, axis=-1), 3)


def of_scores(x: Any, w: Any) -> Any:
    scores = x @ w
    return tf.one_hot(tf.argmax(scores, axis=-1), 3)


@pytest.mark.parametrize(("choose", "softmaxes"), [(of_probabilities, 0), (of_scores, 1)])
def test_probabilities_are_not_given_to_a_softmax_again(choose: Any, softmaxes: int) -> None:
    """A second softmax makes them nearly equal, and their gradient small."""
    w = tf.Variable(numbers(4, 3), name="w")

    def loss(x: Any) -> Any:
        return tf.reduce_mean(tf.reduce_sum(choose(x, w) * [0.3, 1.0, -2.0], -1))

    report = tb_gradflow.explain(loss, args=(numbers(6, 4),), variables=[w])

    [finding] = report.findings
    assert finding.cause == "nondiff_index"
    assert finding.edit is not None
    assert finding.edit.after.count("softmax") == softmaxes
    assert finding.fix.count("tf.nn.softmax") == softmaxes


def named_noise(keep: Any) -> Any:
    noise = tf.random.uniform([4], seed=1)
    return tf.cast(noise < keep, tf.float32)


def noise_of_tensorflow_1(keep: Any) -> Any:
    return tf.cast(tf.less_equal(tf.compat.v1.random_uniform([4], seed=1), keep), tf.float32)


def noise_of_numpy(keep: Any) -> Any:
    return tf.where(np.random.rand(4) < keep, 1.0, 0.0)


def a_threshold(keep: Any) -> Any:
    limit = tf.constant([0.1, 0.5, 0.5, 0.9])
    return tf.cast(limit < keep, tf.float32)


@pytest.mark.parametrize(
    ("drawn", "cause"),
    [
        (named_noise, "nondiff_sampling"),
        (noise_of_tensorflow_1, "nondiff_sampling"),
        (noise_of_numpy, "nondiff_sampling"),
        (a_threshold, "nondiff_comparison"),
    ],
)
def test_a_comparison_with_noise_is_a_draw(drawn: Any, cause: str) -> None:
    logits = tf.Variable([0.2, -0.4, 1.0, 0.5], name="logits")

    def loss(x: Any) -> Any:
        return tf.reduce_mean(tf.square(x * drawn(tf.sigmoid(logits)) - 1.0))

    report = tb_gradflow.explain(loss, args=(numbers(6, 4),), variables=[logits])

    [finding] = report.findings
    assert finding.cause == cause
    assert "keep" in finding.fix
    assert "tf.math.log(noise)" not in finding.fix


def test_an_inverse_root_stays_one() -> None:
    w = tf.Variable([0.0, 1.0, 4.0], name="w")

    report = tb_gradflow.explain(lambda: tf.reduce_sum(tf.math.rsqrt(tf.nn.relu(w)) * w), args=(), variables=[w])

    [finding] = report.findings
    assert (finding.cause, finding.severity) == ("sqrt_at_zero", "error")
    assert "`tf.math.rsqrt(tf.maximum(tf.nn.relu(w), 1e-12))`" in finding.fix


def quantised(w: Any, rounded: Any) -> Any:
    """Values between the least and the largest, in fifteen steps."""
    low = tf.reduce_min(w)
    step = (tf.reduce_max(w) - low) / 15.0
    return rounded((w - low) / step) * step + low


def through(value: Any) -> Any:
    return value + tf.stop_gradient(tf.round(value) - value)


def as_bytes(value: Any) -> Any:
    return tf.cast(tf.cast(tf.math.rint(value), tf.uint8), tf.float32)


@pytest.mark.parametrize(
    ("rounded", "cast", "is_healthy"), [(tf.round, False, False), (as_bytes, True, False), (through, False, True)]
)
def test_weights_that_learn_through_the_scale_alone_are_reported(rounded: Any, cast: bool, is_healthy: bool) -> None:
    w = tf.Variable(numbers(3, 4), name="w")

    def loss(x: Any) -> Any:
        return tf.reduce_mean(tf.square(x @ quantised(w, rounded) - 1.0))

    report = tb_gradflow.explain(loss, args=(numbers(6, 3),), variables=[w])

    assert report.variables["w"].status == "connected"
    assert report.healthy == is_healthy
    if not is_healthy:
        [finding] = report.findings
        assert (finding.cause, finding.severity) == ("nondiff_rounding", "warning")
        assert ("leave out the cast" in finding.fix) == cast


def test_a_largest_value_beside_a_rounded_one_is_no_scale() -> None:
    w = tf.Variable(numbers(5), name="w")

    def loss() -> Any:
        stable = w - tf.reduce_max(w)
        return tf.reduce_max(w) + tf.reduce_logsumexp(stable) + tf.reduce_mean(tf.round(stable))

    tb_gradflow.explain(loss, args=(), variables=[w]).assert_healthy()


def farthest(distances: Any) -> Any:
    return tf.cast(tf.argmax(distances, axis=1), tf.float32)


def row_of_farthest(distances: Any) -> Any:
    return tf.gather(tf.constant([[1.0], [2.0], [5.0], [3.0]]), tf.argmax(distances, axis=1))[:, 0]


@pytest.mark.parametrize(("chosen", "is_number"), [(farthest, True), (row_of_farthest, False)])
def test_an_index_that_is_used_as_a_number_may_have_been_meant_to_be_the_value(chosen: Any, is_number: bool) -> None:
    w = tf.Variable(numbers(3, 2), name="w")

    def loss(x: Any) -> Any:
        places = x @ w
        distances = tf.reduce_sum(tf.square(places[:, None] - places[None]), -1)
        return tf.reduce_mean(chosen(distances))

    [finding] = tb_gradflow.explain(loss, args=(numbers(4, 3),), variables=[w]).findings

    assert finding.cause == "nondiff_index"
    assert ("not its index, use `tf.reduce_max(distances, axis=1)`" in finding.fix) == is_number


def test_a_greedy_decoder_is_for_metrics_too() -> None:
    w = tf.Variable(numbers(3, 5), name="w")

    def loss(x: Any) -> Any:
        _, scores = tf.nn.ctc_greedy_decoder((x @ w)[:, None], [4])
        return tf.reduce_mean(scores)

    [finding] = tb_gradflow.explain(loss, args=(numbers(4, 3),), variables=[w]).findings

    assert finding.cause == "nondiff_op"
    assert "`tf.nn.ctc_loss(" in finding.fix
