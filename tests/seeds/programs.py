"""The programs of the questions that the project was made from, typed in as they stand, broken and fixed."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf

Tensors = list[Any]

SIGNAL = np.array([0.3, -1.2, 0.8, 2.0, -0.4, 1.1], "float32")


@dataclass(frozen=True)
class Program:
    """A program of a question, and what is true of it.

    Attributes:
        name: The question's number and what the program is.
        build: Makes the function and what its gradient is asked for.
        statuses: Of each of those, in their order.
        causes: Of the findings above information; none for what is right.
        eagerly: Whether the same is said where functions run eagerly. It is wrong of one: a map of gradients in a
            `tf.function`, which TensorFlow itself does not look at there.
    """

    name: str
    build: Callable[[], tuple[Callable[[], Any], Tensors]]
    statuses: tuple[str, ...]
    causes: tuple[str, ...] = ()
    eagerly: bool = True


def step_filter() -> tuple[Callable[[], Any], Tensors]:
    threshold = tf.Variable(3.0, name="threshold")
    return lambda: tf.reduce_sum(SIGNAL * tf.sequence_mask(threshold, 6, dtype=tf.float32)), [threshold]


def sigmoid_filter() -> tuple[Callable[[], Any], Tensors]:
    threshold = tf.Variable(3.0, name="threshold")
    return lambda: tf.reduce_sum(SIGNAL * tf.sigmoid(threshold - tf.range(6, dtype=tf.float32))), [threshold]


def of_tensor(function: Callable[[Any], Any]) -> Callable[[], tuple[Callable[[], Any], Tensors]]:
    def build() -> tuple[Callable[[], Any], Tensors]:
        x = tf.constant([1.5, 2.5])
        return lambda: function(x), [x]

    return build


def gathered() -> tuple[Callable[[], Any], Tensors]:
    x, places = tf.constant([1.5, 2.5]), tf.constant([0, 1])
    return lambda: tf.gather(x, places), [x, places]


def per_kernel_step_filter(weight_param: Any, soft: bool = False) -> Callable[[], tuple[Callable[[], Any], Tensors]]:
    def build() -> tuple[Callable[[], Any], Tensors]:
        input = tf.constant(np.random.default_rng(0).normal(size=(2, 3, 6, 4)), tf.float32)
        input_shape = input.get_shape().as_list()
        weight_param_v = tf.Variable(
            np.full((input_shape[-1]), weight_param), dtype=tf.float32, trainable=True, name="weight_param_v"
        )

        def filtered() -> Any:
            weight_param_v_c = tf.clip_by_value(weight_param_v, 0, input_shape[-2])
            if soft:
                kernel_filter = tf.transpose(tf.sigmoid(weight_param_v_c[:, None] - tf.range(input_shape[-2] * 1.0)))
            else:
                kernel_filter = tf.transpose(tf.sequence_mask(weight_param_v_c, input_shape[-2], dtype=tf.float32))
            kernel_filter = tf.reshape(kernel_filter, tf.concat([(1, 1), kernel_filter.get_shape()], 0))
            output = input * kernel_filter
            return tf.reduce_mean(tf.square(output))

        return filtered, [weight_param_v]

    return build


def gradient_at_another_point(*, moved_first: bool) -> Callable[[], tuple[Callable[[], Any], Tensors]]:
    def build() -> tuple[Callable[[], Any], Tensors]:
        a = tf.Variable([1.0, 2.0], name="a")
        delta = tf.constant([0.1, -0.2])
        moved = a + delta
        return lambda: tf.reduce_sum(tf.square(moved if moved_first else a) * [1.0, 3.0]), [moved]

    return build


def difference(prod: Any, box: Any) -> Any:
    result = tf.Variable(tf.zeros((prod.shape[0], box.shape[1]), dtype=tf.float16))
    for i in tf.range(0, prod.shape[0]):
        for j in tf.range(0, box.shape[1]):
            result[i, j].assign((tf.reduce_prod(box[:, j]) - tf.reduce_prod(prod[i, :])) / tf.reduce_prod(box[:, j]))
    return result


def difference_of_tensors(prod: Any, box: Any) -> Any:
    box_red = tf.reduce_prod(box, axis=0)
    prod_red = tf.reduce_prod(prod, axis=1)
    return (tf.expand_dims(box_red, 0) - tf.expand_dims(prod_red, 1)) / tf.expand_dims(box_red, 0)


def of_boxes(function: Callable[[Any, Any], Any]) -> Callable[[], tuple[Callable[[], Any], Tensors]]:
    def build() -> tuple[Callable[[], Any], Tensors]:
        prod = tf.constant([[3, 4, 5], [4, 5, 6], [1, 3, 3]], dtype=tf.float16)
        box = tf.Variable([[4, 5], [5, 6], [5, 7]], dtype=tf.float16)
        return lambda: function(prod, box), [box]

    return build


def detour(vif: Any) -> Any:
    return tf.subtract(vif, tf.subtract(vif, tf.floor(vif)))


@tf.custom_gradient
def custom_floor(vif: Any) -> tuple[Any, Callable[[Any], Any]]:
    return tf.floor(vif), lambda upstream: upstream


def bump(x: Any, sigma: Any) -> Any:
    return tf.math.exp(-sigma / (sigma - tf.math.pow(x, 2)))


def bump_layer(*, safe: bool) -> Callable[[], tuple[Callable[[], Any], Tensors]]:
    def build() -> tuple[Callable[[], Any], Tensors]:
        sigma = tf.Variable([0.04], name="sigma")
        inputs = tf.constant(np.linspace(-1, 1, 401)[:, None], tf.float32)

        def call() -> Any:
            greater = tf.math.greater(inputs, -sigma)
            less = tf.math.less(inputs, sigma)
            condition = tf.logical_and(greater, less)
            given = tf.where(condition, inputs, 0.0) if safe else inputs
            return tf.reduce_mean(tf.where(condition, bump(given, sigma), 0.0))

        return call, [sigma]

    return build


def rounded(function: Callable[[Any], Any]) -> Callable[[], tuple[Callable[[], Any], Tensors]]:
    def build() -> tuple[Callable[[], Any], Tensors]:
        x = tf.Variable([0.1, 0.52, 0.7], name="x")
        return lambda: tf.reduce_mean(tf.square(function(x) - [1.0, 0.0, 1.0])), [x]

    return build


def sine_round(x: Any) -> Any:
    return x - tf.sin(2 * np.pi * x) / (2 * np.pi)


def steep_clip(x: Any) -> Any:
    differentiable_round = tf.maximum(x - 0.499, 0)
    differentiable_round = differentiable_round * 10000
    return tf.minimum(differentiable_round, 1)


def straight_through(x: Any) -> Any:
    return x - tf.stop_gradient(x - tf.round(x))


@tf.custom_gradient
def round_with_gradients(x: Any) -> tuple[Any, Callable[[Any], Any]]:
    return tf.round(x), lambda upstream: upstream


def steep_exponential(x: Any) -> Any:
    e = tf.exp(1000 * (x - 0.5))
    return e / (e + 1)


def soft_round(x: Any, alpha: float, eps: float = 1e-3) -> Any:
    # This guards the gradient of tf.where below against NaNs, while maintaining
    # correctness, as for alpha < eps the result is ignored.
    alpha_bounded = tf.maximum(alpha, eps)
    m = tf.floor(x) + 0.5
    r = x - m
    z = tf.tanh(alpha_bounded / 2.0) * 2.0
    y = m + tf.tanh(alpha_bounded * r) / z
    return tf.where(alpha < eps, x, y, name="soft_round")


def fourier_round(x: Any, N: int = 5) -> Any:
    return x - tf.add_n([(-1.0) ** (k + 1) * tf.sin(2 * np.pi * k * x) / (np.pi * k) for k in range(1, N + 1)])


def steep_sigmoid(x: Any) -> Any:
    return tf.nn.sigmoid(10 * (x - 0.5))


def floor_of_sigmoids(x: Any) -> Any:
    return tf.add_n([tf.sigmoid(10.0 * (x - k)) for k in (1.0, 2.0, 3.0)])


def piecewise_floor(x: Any) -> Any:
    lower = tf.stop_gradient(tf.floor(x))
    return lower + tf.clip_by_value((x - lower - 0.25) * 2, 0, 1)


def overridden(*, floored: str, in_graph: bool = False) -> Callable[[], tuple[Callable[[], Any], Tensors]]:
    """With `floor` inside of the map, before it, or nowhere, as it was typed; in a graph of its own, or on the tape."""

    def build() -> tuple[Callable[[], Any], Tensors]:
        Vals = tf.Variable([1.2, 2.7, 3.5], name="SomeVals")
        SomeOtherVal = tf.Variable(2.0, name="SomeOtherVal")

        def scaled() -> Any:
            SomeVals = tf.floor(Vals) if floored == "before" else Vals
            G = tf.compat.v1.get_default_graph()
            with G.gradient_override_map({"Floor": "Identity"}):
                return tf.reduce_mean(tf.floor(SomeVals) if floored == "inside" else SomeVals) * SomeOtherVal

        return tf.function(scaled) if in_graph else scaled, [Vals, SomeOtherVal]

    return build


def branched(*, taken: bool) -> Callable[[], tuple[Callable[[], Any], Tensors]]:
    def build() -> tuple[Callable[[], Any], Tensors]:
        first, second = tf.Variable([1.0, 2.0], name="first"), tf.Variable([3.0, 4.0], name="second")
        switch = tf.constant(taken)
        return (
            lambda: tf.cond(switch, lambda: tf.reduce_sum(first**2), lambda: tf.reduce_sum(second**2)),
            [first, second],
        )

    return build


def chosen_by(threshold: float) -> Callable[[], tuple[Callable[[], Any], Tensors]]:
    def build() -> tuple[Callable[[], Any], Tensors]:
        first, second = tf.Variable([1.0, 2.0, 3.0], name="first"), tf.Variable([3.0, 2.0, 1.0], name="second")
        return lambda: tf.reduce_sum(tf.where(first < threshold, first, second)), [first, second]

    return build


def compared() -> tuple[Callable[[], Any], Tensors]:
    limit, x = tf.Variable(2.0, name="limit"), tf.Variable([1.0, 2.5, 3.0], name="x")
    return lambda: tf.reduce_sum(tf.where(x < limit, x, 0.0)), [limit, x]


def softmax_summed() -> tuple[Callable[[], Any], Tensors]:
    x = tf.Variable([1.0, 2.0, 3.0], name="x")

    def softmax(x: Any) -> Any:
        exp_x = tf.exp(x)
        return exp_x / tf.reduce_sum(exp_x)

    return lambda: tf.reduce_sum(softmax(x)), [x]


def of_outliers(function: Callable[[Any], Any]) -> Callable[[], tuple[Callable[[], Any], Tensors]]:
    def build() -> tuple[Callable[[], Any], Tensors]:
        measure = tf.constant([0.01, 0.2, 0.5, 0.6, 0.7, 1.0, 2.5, 5.0, 50.0, 5000.0])
        return lambda: tf.reduce_sum(function(measure) * tf.range(10.0)), [measure]

    return build


def sigmoid(x: Any) -> Any:
    return 1.0 / (1 + tf.exp(-x))


def normalised_sigmoid(x: Any) -> Any:
    numerator = x - tf.reduce_mean(x)
    denominator = tf.math.reduce_std(x)
    fraction = numerator / denominator
    return 1.0 / (1.0 + tf.exp(-fraction))


def chosen() -> tuple[Callable[[], Any], Tensors]:
    first, second = tf.Variable([1.0, 2.0, 3.0], name="first"), tf.Variable([3.0, 2.0, 1.0], name="second")
    return lambda: tf.reduce_sum(tf.where([True, False, True], first, second)), [first, second]


def get_log_prob(mu: Any, std: Any, *, stopped: bool = False) -> Any:
    distributions = importlib.import_module("tensorflow_probability").distributions
    normal = distributions.Normal(mu, scale=std)
    samples = normal.sample(sample_shape=(1))
    if stopped:
        samples = tf.stop_gradient(samples)
    log_prob = normal.log_prob(samples)
    return log_prob


def own_density(**options: Any) -> Callable[[], tuple[Callable[[], Any], Tensors]]:
    def build() -> tuple[Callable[[], Any], Tensors]:
        const = tf.constant([0.1], dtype=np.float32)
        return lambda: get_log_prob(const, 0.01, **options), [const]

    return build


def own_density_of_a_network(**options: Any) -> Callable[[], tuple[Callable[[], Any], Tensors]]:
    def build() -> tuple[Callable[[], Any], Tensors]:
        network = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, name="location")])
        x = tf.constant(np.random.default_rng(0).normal(size=(4, 3)), tf.float32)
        return (
            lambda: -tf.reduce_mean(get_log_prob(tf.squeeze(network(x)), 0.01, **options)),
            [weight.value for weight in network.trainable_variables],
        )

    return build


def density_of_a_constant() -> tuple[Callable[[], Any], Tensors]:
    distributions = importlib.import_module("tensorflow_probability").distributions
    const = tf.constant([0.1], dtype=np.float32)
    return lambda: distributions.Normal(const, scale=0.01).log_prob(0.12), [const]


GETS, NONE, ZERO = "connected", "disconnected", "zero"

PROGRAMS = (
    Program("0 step filter", step_filter, (NONE,), ("nondiff_comparison",)),
    Program("0 step filter, fixed", sigmoid_filter, (GETS,)),
    Program("0 per_kernel_step_filter", per_kernel_step_filter(20), (NONE,), ("nondiff_comparison",)),
    Program("0 per_kernel_step_filter with a sigmoid", per_kernel_step_filter(3, soft=True), (GETS,)),
    Program(
        "0 per_kernel_step_filter with a sigmoid, beyond its limit",
        per_kernel_step_filter(20, soft=True),
        (ZERO,),
        ("saturation_clip",),
    ),
    Program("0 square of a tensor", of_tensor(tf.square), (GETS,)),
    Program("0 floor of a tensor", of_tensor(tf.floor), (NONE,), ("nondiff_rounding",)),
    Program(
        "0 mask of a tensor",
        of_tensor(lambda x: tf.sequence_mask(x, dtype=tf.float32)),
        (NONE,),
        ("nondiff_comparison",),
    ),
    Program("0 gather of a tensor", gathered, (GETS, "integer")),
    Program("1 difference", of_boxes(difference), (NONE,), ("variable_assign",)),
    Program("1 difference, fixed", of_boxes(difference_of_tensors), (GETS,)),
    Program("1 gradient at a + delta", gradient_at_another_point(moved_first=False), ("unused",), ("output_not_used",)),
    Program("1 gradient at a + delta, fixed", gradient_at_another_point(moved_first=True), (GETS,)),
    Program("1 ceil", of_tensor(tf.math.ceil), (NONE,), ("nondiff_rounding",)),
    Program(
        "1 cast",
        of_tensor(lambda x: tf.cast(tf.cast(x, tf.int32), tf.float32)),
        (NONE,),
        ("integer_dtype",),
    ),
    Program("1 floor by a detour", of_tensor(detour), (ZERO,), ("nondiff_rounding",)),
    Program("1 floor with a custom gradient", of_tensor(custom_floor), (GETS,)),
    Program("1 floor, relaxed to sigmoids", of_tensor(floor_of_sigmoids), (GETS,)),
    Program("1 floor, relaxed to straight lines", of_tensor(piecewise_floor), (GETS,)),
    Program("1 gradient_override_map around no floor", overridden(floored="nowhere"), (GETS, GETS)),
    Program(
        "1 gradient_override_map behind the floor",
        overridden(floored="before"),
        (NONE, GETS),
        ("nondiff_rounding",),
    ),
    Program(
        "1 gradient_override_map around the floor",
        overridden(floored="inside"),
        (NONE, GETS),
        ("nondiff_rounding",),
    ),
    Program(
        "1 gradient_override_map around the floor, in a tf.function",
        overridden(floored="inside", in_graph=True),
        (GETS, GETS),
        eagerly=False,
    ),
    Program("2 bump", bump_layer(safe=False), ("nan",), ("where_inactive_branch",)),
    Program("2 bump, fixed", bump_layer(safe=True), (GETS,)),
    *(
        Program(f"2 {name}", rounded(function), statuses, causes)
        for name, function, statuses, causes in (
            ("round", tf.round, (NONE,), ("nondiff_rounding",)),
            ("round by a sine", sine_round, (GETS,), ()),
            ("round by steep limits", steep_clip, (ZERO,), ("saturation_clip",)),
            ("round, straight through", straight_through, (GETS,), ()),
            ("round by Fourier's series", fourier_round, (GETS,), ()),
            ("round with a custom gradient", round_with_gradients, (GETS,), ()),
            ("round by a steep exponential", steep_exponential, ("nan",), ("exp_overflow",)),
            ("round by a sigmoid, less steep", steep_sigmoid, (GETS,), ()),
            ("soft round, alpha 3", lambda x: soft_round(x, 3.0), (GETS,), ()),
            ("soft round, alpha 7", lambda x: soft_round(x, 7.0), (GETS,), ()),
            ("soft round, alpha 15", lambda x: soft_round(x, 15.0), (GETS,), ()),
        )
    ),
    Program("2 own density", own_density(), (ZERO,), ("gradient_cancellation",)),
    Program("2 own density, stopped", own_density(stopped=True), (GETS,)),
    Program("2 density of a constant", density_of_a_constant, (GETS,)),
    Program("2 own density of a network", own_density_of_a_network(), (ZERO, ZERO), ("gradient_cancellation",)),
    Program("2 own density of a network, stopped", own_density_of_a_network(stopped=True), (GETS, GETS)),
    Program("2 sigmoid of outliers", of_outliers(sigmoid), (GETS,)),
    Program("2 normalised sigmoid of outliers", of_outliers(normalised_sigmoid), (GETS,)),
    Program("2 softmax, summed", softmax_summed, ("vanishing",), ("normalised_then_summed",)),
    Program("4 where", chosen, (GETS, GETS)),
    Program("4 where, by a comparison", chosen_by(2.5), (GETS, GETS)),
    Program("4 where, one side never", chosen_by(9.0), (GETS, ZERO)),
    Program("4 where, the limit", compared, (NONE, GETS), ("nondiff_comparison",)),
    Program("4 cond, true", branched(taken=True), (GETS, ZERO)),
    Program("4 cond, false", branched(taken=False), (ZERO, GETS)),
)
