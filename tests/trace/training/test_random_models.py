"""Models made by chance: with the recorder they train to the same bits, and its statuses are the tape's.

`TB_GRADFLOW_MODELS=1000` tries so many; without it the same few are tried each time.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from typing import Any, Literal

import keras
import numpy as np
import tensorflow as tf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tb_gradflow
from tb_gradflow import GradFlowCallback

MODELS = int(os.environ.get("TB_GRADFLOW_MODELS", "0"))

WIDTH = 4

OPS: dict[str, Any] = {
    "round": tf.round,
    "sign": tf.sign,
    "floor": tf.floor,
    "stop": tf.stop_gradient,
    "times zero": lambda x: 0.0 * x,
    "dead relu": lambda x: tf.nn.relu(x - 1e3),
    "saturated": lambda x: tf.clip_by_value(x + 1e3, -1.0, 1.0),
    "square root": lambda x: tf.sqrt(tf.abs(x) + 0.1),
    "softmax": tf.nn.softmax,
    "transposed": lambda x: tf.transpose(tf.transpose(x)),
    "gathered": lambda x: tf.gather(x, [3, 1, 1, 0], axis=1),
    "argmax": lambda x: tf.one_hot(tf.argmax(x, 1), WIDTH),
    "compared": lambda x: tf.cast(x > 0.1, tf.float32),
    "chosen": lambda x: tf.where(x > 0.0, x, 0.2 * x),
    "sorted": lambda x: tf.sort(x, axis=1),
    "through halves": lambda x: tf.cast(tf.cast(x, tf.float16), tf.float32),
    "through doubles": lambda x: tf.cast(tf.exp(0.1 * tf.cast(x, tf.float64)), tf.float32),
    "through integers": lambda x: tf.cast(tf.cast(x, tf.int32), tf.float32),
    "branched": lambda x: tf.cond(tf.reduce_sum(x) > 0.0, lambda: 2.0 * x, lambda: x),
    "looped": lambda x: tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, tf.tanh(v) + v), (0, x))[1],
    "normed": lambda x: x * tf.math.rsqrt(tf.reduce_mean(tf.square(x), axis=-1, keepdims=True) + 1e-6),
}

LAYERS: dict[str, Any] = {
    "dense": lambda: keras.layers.Dense(WIDTH),
    "tanh": lambda: keras.layers.Dense(WIDTH, "tanh"),
    "relu": lambda: keras.layers.Dense(WIDTH, "relu"),
    "frozen": lambda: keras.layers.Dense(WIDTH, trainable=False),
    "batch norm": keras.layers.BatchNormalization,
    "layer norm": keras.layers.LayerNormalization,
    "rms norm": keras.layers.RMSNormalization,
    "unit": lambda: keras.layers.Dense(WIDTH, kernel_constraint="unit_norm", kernel_regularizer="l2"),
}

JOINS: dict[str, Any] = {
    "added": keras.layers.Add,
    "multiplied": keras.layers.Multiply,
    "largest": keras.layers.Maximum,
}


@keras.saving.register_keras_serializable("tests")
class Op(keras.layers.Layer):
    """One of `OPS`."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self._kind = kind

    def call(self, x: Any) -> Any:
        return OPS[self._kind](x)

    def compute_output_shape(self, shape: Any) -> Any:
        return shape


@dataclass(frozen=True)
class Part:
    """One more tensor.

    Attributes:
        kind: A key of `OPS`, `LAYERS` or `JOINS`, or "shared": the last layer once more.
        of: Which of the tensors so far it is made of, from the last one.
        other: The second one, of a join.
    """

    kind: str
    of: int
    other: int


@dataclass(frozen=True)
class Recipe:
    parts: tuple[Part, ...]
    optimizer: str
    tensors: Literal["all", "layers", "variables"]
    every: int
    per_execution: int
    rows: int


KINDS = st.one_of(st.sampled_from([*LAYERS]), st.sampled_from([*OPS]), st.sampled_from([*JOINS, "shared"]))
PARTS = st.builds(Part, KINDS, st.integers(0, 3), st.integers(0, 3))
RECIPES = st.builds(
    Recipe,
    st.lists(PARTS, min_size=1, max_size=7).map(tuple),
    st.sampled_from(["sgd", "adam", "rmsprop"]),
    st.sampled_from(["all", "all", "layers", "variables"]),
    st.integers(1, 3),
    st.sampled_from([1, 1, 1, 2]),
    st.sampled_from([24, 29]),
)


def built(recipe: Recipe) -> Any:
    keras.utils.clear_session(free_memory=False)
    keras.utils.set_random_seed(3)
    inputs = keras.Input((WIDTH,))
    tensors, shared = [keras.layers.Dense(WIDTH, name="first")(inputs)], None
    for part in recipe.parts:
        x = tensors[-1 - part.of % len(tensors)]
        if part.kind in JOINS:
            x = JOINS[part.kind]()([x, tensors[-1 - part.other % len(tensors)]])
        elif part.kind in OPS:
            x = Op(part.kind)(x)
        else:
            if part.kind != "shared" or shared is None:
                shared = LAYERS["dense" if part.kind == "shared" else part.kind]()
            x = shared(x)
        tensors.append(x)
    model = keras.Model(inputs, keras.layers.Dense(1, name="last")(tensors[-1]), name="net")
    model.compile(recipe.optimizer, "mse", steps_per_execution=recipe.per_execution)
    return model


def trained(recipe: Recipe, *callbacks: Any) -> tuple[list[float], list[Any]]:
    model = built(recipe)
    x, y = data(recipe)
    history = model.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0, callbacks=list(callbacks))
    return history.history["loss"], [weight.numpy() for weight in model.weights]


def data(recipe: Recipe) -> tuple[Any, Any]:
    random = np.random.default_rng(5)
    x = random.normal(size=(recipe.rows, WIDTH)).astype("float32")
    return x, random.normal(size=(recipe.rows, 1)).astype("float32")


def bits(result: tuple[list[float], list[Any]]) -> bytes:
    """Of the losses and of the weights; any two that are not a number are the same."""
    numbers = [np.asarray(each) for each in (*result[0], *result[1])]
    return b"".join(np.where(np.isnan(each), np.nan, each).astype(each.dtype).tobytes() for each in numbers)


def differs_by_itself(recipe: Recipe, plain: bytes) -> bool:
    """Whether the training has other bits from time to time without the recorder, as when threads add in another
    order."""
    return any(bits(trained(recipe)) != plain for _ in range(20))


def by_tape(recipe: Recipe, steps: int) -> dict[str, str]:
    """What a tape that knows nothing of the recorder answers, after so many steps."""
    model = built(recipe)
    x, y = data(recipe)
    if steps:
        model.fit(x[: 8 * steps], y[: 8 * steps], batch_size=8, shuffle=False, verbose=0)
    batch = slice(8 * steps, 8 * steps + 8)
    with tf.GradientTape() as tape:
        loss = model.compute_loss(x[batch], y[batch], model(x[batch], training=True), training=True)
    variables = model.trainable_variables
    answers = tape.gradient(loss, [variable.value for variable in variables])
    return {each.path: answered(gradient) for each, gradient in zip(variables, answers, strict=True)}


def answered(gradient: Any) -> str:
    if gradient is None:
        return "none"
    values = np.asarray(gradient)
    return "not finite" if not np.all(np.isfinite(values)) else "value" if np.any(values) else "zero"


SAYS = {
    "none": {"disconnected", "unused"},
    "zero": {"zero"},
    "value": {"connected", "vanishing", "exploding"},
    "not finite": {"nan", "inf"},
}


@settings(
    max_examples=MODELS or 10,
    deadline=None,
    derandomize=not MODELS,
    database=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
@given(RECIPES)
def test_a_model_trains_to_the_same_bits_and_each_status_is_the_tapes(recipe: Recipe) -> None:
    with tempfile.TemporaryDirectory() as directory:
        plain = trained(recipe)
        recorder = GradFlowCallback(directory, update_freq=recipe.every, tensors=recipe.tensors)

        recorded = trained(recipe, recorder)

        assert bits(recorded) == bits(plain) or differs_by_itself(recipe, bits(plain))
        log = tb_gradflow.open_log(directory)
        statuses = {name: each.status for name, each in log.report(log.steps[0]).variables.items()}
        for name, answer in by_tape(recipe, log.steps[0]).items():
            assert statuses[name] in SAYS[answer], (name, answer, statuses[name])
