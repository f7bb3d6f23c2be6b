"""Small trainings, and what makes one step of each unusual: with what is to be said of it, written down before it was
first run.

Each training has `STEPS` steps; what is put in acts in step `AT`, or in the step after it if it acts through the
weights.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf

STEPS, AT, ROWS = 330, 290, 32

Array = Any


@dataclass
class Training:
    """A model that is built but not compiled, and its data, a row of `x` and `y` for each row of each step.

    Attributes:
        model: The model.
        x: Inputs.
        y: Targets.
        loss: The loss for `compile`.
        optimizer: Makes the optimizer from a rate, or a schedule.
        rate: Its usual learning rate.
        callbacks: What is put in.
        schedule: The schedule, if that is what is put in.
    """

    model: Any
    x: Array
    y: Array
    loss: Any
    optimizer: Callable[[Any], Any]
    rate: float
    callbacks: tuple[Any, ...] = ()
    schedule: Any = None

    def fit(self, callbacks: list[Any]) -> None:
        self.model.compile(self.optimizer(self.schedule or self.rate), self.loss)
        self.model.fit(
            self.x,
            self.y,
            batch_size=ROWS,
            shuffle=False,
            verbose=0,
            callbacks=[*self.callbacks, *callbacks],
        )

    @property
    def batch(self) -> slice:
        """The rows of the step."""
        return slice(AT * ROWS, (AT + 1) * ROWS)


def _adam(rate: Any) -> Any:
    return keras.optimizers.Adam(rate)


def _momentum(rate: Any) -> Any:
    return keras.optimizers.SGD(rate, momentum=0.9)


def _dense(x: Array, outputs: int, *, dropout: float = 0.0) -> Any:
    layers = [keras.layers.Dense(24, "tanh", name="first"), keras.layers.Dense(24, "relu", name="second")]
    if dropout:
        layers.append(keras.layers.Dropout(dropout))
    return keras.Sequential([keras.Input(x.shape[1:]), *layers, keras.layers.Dense(outputs, name="last")])


def _numbers(random: Any, *shape: int) -> Array:
    return random.normal(size=(STEPS * ROWS, *shape)).astype("float32")


def _target(random: Any, x: Array) -> Array:
    return (np.tanh(x @ random.normal(size=(x.shape[1], 1))) + 0.2 * random.normal(size=(len(x), 1))).astype("float32")


def regression_sgd() -> Training:
    random = np.random.default_rng(1)
    x = _numbers(random, 8)
    return Training(_dense(x, 1), x, _target(random, x), "mse", keras.optimizers.SGD, 0.03)


def regression_adam() -> Training:
    random = np.random.default_rng(2)
    x = _numbers(random, 8)
    return Training(_dense(x, 1), x, _target(random, x), "mse", _adam, 0.003)


def classes_dropout() -> Training:
    random = np.random.default_rng(3)
    x = _numbers(random, 8)
    y = np.argmax(x @ random.normal(size=(8, 4)), axis=1)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return Training(_dense(x, 4, dropout=0.2), x, y, loss, _adam, 0.003)


def convolution() -> Training:
    random = np.random.default_rng(4)
    y = random.integers(0, 3, STEPS * ROWS)
    x = _numbers(random, 8, 8, 1) + y[:, None, None, None] * np.linspace(-1, 1, 8, dtype="float32")[:, None, None]
    model = keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            keras.layers.Conv2D(6, 3, activation="relu", name="first"),
            keras.layers.MaxPooling2D(2),
            keras.layers.Flatten(),
            keras.layers.Dense(12, "relu", name="second"),
            keras.layers.Dense(3, name="last"),
        ]
    )
    return Training(model, x, y, keras.losses.SparseCategoricalCrossentropy(from_logits=True), _momentum, 0.02)


def recurrent() -> Training:
    random = np.random.default_rng(5)
    x = _numbers(random, 6, 3)
    y = x.mean(axis=(1, 2))[:, None] * 3 + 0.2 * random.normal(size=(len(x), 1)).astype("float32")
    model = keras.Sequential(
        [
            keras.Input((6, 3)),
            keras.layers.GRU(8, name="first"),
            keras.layers.Dense(8, "tanh", name="second"),
            keras.layers.Dense(1, name="last"),
        ]
    )
    return Training(model, x, y.astype("float32"), "mse", _adam, 0.005)


PROGRAMS = (regression_sgd, regression_adam, classes_dropout, convolution, recurrent)


class Before(keras.callbacks.Callback):
    """Does something before a step."""

    def __init__(self, step: int, act: Callable[[Any], None]) -> None:
        super().__init__()
        self._step = step
        self._act = act

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if batch == self._step:
            self._act(self.model)


def _bad(training: Training, rows: list[int]) -> None:
    """Rows with a wrong value: a label that is far too large, or for classes inputs that are, with a wrong label."""
    for row in rows:
        at = AT * ROWS + row
        if training.y.ndim > 1:
            training.y[at] = 300.0
        else:
            training.x[at] *= 300.0
            training.y[at] = (training.y[at] + 1) % 3


def one_row(training: Training) -> None:
    _bad(training, [7])


def three_rows(training: Training) -> None:
    _bad(training, [3, 11, 30])


def scaled_batch(training: Training) -> None:
    """Another scale of the inputs, and of the targets with it."""
    training.x[training.batch] *= 200.0
    if training.y.ndim > 1:
        training.y[training.batch] *= 200.0
    else:
        training.y[training.batch] = np.roll(training.y[training.batch], 1)


def shifted_targets(training: Training) -> None:
    """Targets in another unit; classes that are all the same wrong one, of inputs that are far away."""
    if training.y.ndim > 1:
        training.y[training.batch] += 40.0
    else:
        training.x[training.batch] = 40.0 * np.abs(training.x[training.batch])
        training.y[training.batch] = np.arange(ROWS) % 3


def _set_rate(rate: float) -> Callable[[Any], None]:
    def act(model: Any) -> None:
        model.optimizer.learning_rate = rate

    return act


def rate_for_a_step(training: Training) -> None:
    rate = training.rate
    training.callbacks = (Before(AT, _set_rate(rate * 1000)), Before(AT + 1, _set_rate(rate)))


def rate_that_stays(training: Training) -> None:
    training.callbacks = (Before(AT, _set_rate(training.rate * 1000)),)


def schedule(training: Training) -> None:
    rate = training.rate
    training.schedule = keras.optimizers.schedules.PiecewiseConstantDecay([AT - 1, AT], [rate, rate * 1000, rate])


def flipped_bit(training: Training) -> None:
    """The highest bit of the exponent but one of a weight, which is near 0.1."""

    def act(model: Any) -> None:
        kernel = model.get_layer("second").kernel
        value = np.array(kernel)
        flat = value.reshape(-1)
        flat[np.argmax(np.abs(flat))] = 3e4
        kernel.assign(value)

    training.callbacks = (Before(AT, act),)


def assigned_layer(training: Training) -> None:
    def act(model: Any) -> None:
        kernel = model.get_layer("last").kernel
        kernel.assign(kernel * 200.0)

    training.callbacks = (Before(AT, act),)


def weight_of_the_loss(training: Training) -> None:
    """A variable that is no weight of the model."""
    weight, loss = tf.Variable(1.0, trainable=False), keras.losses.get(training.loss)

    def weighted(y: Any, output: Any) -> Any:
        return weight * tf.reduce_mean(loss(y, output))

    training.loss = weighted
    training.callbacks = (Before(AT, lambda model: weight.assign(1000.0)),)


def gradients_come_back(training: Training) -> None:
    """Inputs and targets of almost zero for some epochs of a second data set: Adam's average of squares decays."""
    training.x[100 * ROWS : AT * ROWS] *= 1e-3
    if training.y.ndim > 1:
        training.y[100 * ROWS : AT * ROWS] *= 1e-3
    else:
        training.y[100 * ROWS : AT * ROWS] = 1


def row_in_half_precision(training: Training) -> None:
    """A row in a model that computes in bfloat16."""
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        training.model = type(training.model).from_config(
            _with_policy(training.model.get_config()),
        )
    finally:
        keras.config.set_dtype_policy("float32")
    _bad(training, [7])


def _with_policy(config: Any) -> Any:
    for layer in config["layers"]:
        if layer["class_name"] != "InputLayer":
            layer["config"]["dtype"] = "mixed_bfloat16"
    return config


@dataclass(frozen=True)
class Injection:
    """What is put in.

    Attributes:
        put: Puts it into a training.
        expected: The kinds of `analyse.over_time.spikes.Kind` that are right; the first is the best.
    """

    put: Callable[[Training], None]
    expected: tuple[str, ...]


INJECTIONS = (
    Injection(one_row, ("rows",)),
    Injection(three_rows, ("rows",)),
    Injection(scaled_batch, ("batch",)),
    Injection(shifted_targets, ("batch",)),
    Injection(rate_for_a_step, ("update", "rate")),
    Injection(rate_that_stays, ("rate",)),
    Injection(schedule, ("update", "rate")),
    Injection(flipped_bit, ("element",)),
    Injection(assigned_layer, ("variable",)),
    Injection(weight_of_the_loss, ("unknown",)),
    Injection(gradients_come_back, ("batch", "update")),
    Injection(row_in_half_precision, ("rows",)),
)
