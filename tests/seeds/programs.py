"""The programs of the questions that the project was made from, typed in as they stand, broken and repaired."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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
    """

    name: str
    build: Callable[[], tuple[Callable[[], Any], Tensors]]
    statuses: tuple[str, ...]
    causes: tuple[str, ...] = ()


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


def soft_round(x: Any) -> Any:
    alpha, eps = 3.0, 1e-3
    alpha_bounded = tf.maximum(alpha, eps)
    m = tf.floor(x) + 0.5
    r = x - m
    z = tf.tanh(alpha_bounded / 2.0) * 2.0
    y = m + tf.tanh(alpha_bounded * r) / z
    return tf.where(alpha < eps, x, y, name="soft_round")


def chosen() -> tuple[Callable[[], Any], Tensors]:
    first, second = tf.Variable([1.0, 2.0, 3.0], name="first"), tf.Variable([3.0, 2.0, 1.0], name="second")
    return lambda: tf.reduce_sum(tf.where([True, False, True], first, second)), [first, second]


def own_density(*, stopped: bool) -> Callable[[], tuple[Callable[[], Any], Tensors]]:
    def build() -> tuple[Callable[[], Any], Tensors]:
        distributions = importlib.import_module("tensorflow_probability").distributions
        mean = tf.Variable([0.1], name="mean")

        def get_log_prob() -> Any:
            normal = distributions.Normal(mean, scale=0.01)
            samples = normal.sample(sample_shape=(1))
            return normal.log_prob(tf.stop_gradient(samples) if stopped else samples)

        return get_log_prob, [mean]

    return build


GETS, NONE, ZERO = "connected", "disconnected", "zero"

PROGRAMS = (
    Program("0 step filter", step_filter, (NONE,), ("nondiff_comparison",)),
    Program("0 step filter, repaired", sigmoid_filter, (GETS,)),
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
    Program("1 difference, repaired", of_boxes(difference_of_tensors), (GETS,)),
    Program("1 floor by a detour", of_tensor(detour), (ZERO,), ("nondiff_rounding",)),
    Program("1 floor with a gradient of its own", of_tensor(custom_floor), (GETS,)),
    Program("2 bump", bump_layer(safe=False), ("nan",), ("where_inactive_branch",)),
    Program("2 bump, repaired", bump_layer(safe=True), (GETS,)),
    Program("2 round", rounded(tf.round), (NONE,), ("nondiff_rounding",)),
    Program("2 round by a sine", rounded(lambda x: x - tf.sin(2 * np.pi * x) / (2 * np.pi)), (GETS,)),
    Program("2 round by steep limits", rounded(steep_clip), (ZERO,), ("saturation_clip",)),
    Program("2 round, straight through", rounded(straight_through), (GETS,)),
    Program("2 round with a gradient of its own", rounded(round_with_gradients), (GETS,)),
    Program("2 round by a steep exponential", rounded(steep_exponential), ("nan",), ("exp_overflow",)),
    Program("2 soft round", rounded(soft_round), (GETS,)),
    Program("2 own density", own_density(stopped=False), (ZERO,), ("gradient_cancellation",)),
    Program("2 own density, stopped", own_density(stopped=True), (GETS,)),
    Program("4 where", chosen, (GETS, GETS)),
)
