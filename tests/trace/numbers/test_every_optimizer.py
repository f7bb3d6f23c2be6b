"""Each optimizer that Keras ships, and some of TensorFlow 1, in each kind of training: what the log counts of elements
that move where a mask leaves no gradient is what the weights themselves show."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.record.schema import MOVEMENT_STATISTICS

BEGIN = np.linspace(0.5, 2, 6, dtype=np.float32).reshape(3, 2)
X = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
Y = np.random.default_rng(1).normal(size=(4, 2)).astype(np.float32)
MASKS = [np.array(each, np.float32) for each in ([[1, 0], [1, 0], [0, 1]], [[0, 1], [1, 0], [0, 0]])]

Make = Callable[[], Any]

# The base class, and two that wrap others.
_NONE = ("Optimizer", "LossScaleOptimizer", "MultiOptimizer")

KERAS: dict[str, Make] = {
    name: each
    for name, each in inspect.getmembers(keras.optimizers, inspect.isclass)
    if issubclass(each, keras.optimizers.Optimizer) and name not in _NONE
}
KERAS |= {
    "SGD with momentum": lambda: keras.optimizers.SGD(0.01, momentum=0.9),
    "SGD with Nesterov's momentum": lambda: keras.optimizers.SGD(0.01, momentum=0.9, nesterov=True),
    "RMSprop with momentum": lambda: keras.optimizers.RMSprop(0.01, momentum=0.9),
    "SGD with a decay": lambda: keras.optimizers.SGD(0.01, weight_decay=0.1),
    "one for each variable": lambda: keras.optimizers.MultiOptimizer(
        keras.optimizers.OptimizerMap(keras.optimizers.Adam())
    ),
    "Adam with a loss scale": lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam()),
}

V1: dict[str, Make] = {
    "v1 descent": lambda: tf.compat.v1.train.GradientDescentOptimizer(0.1),
    "v1 momentum": lambda: tf.compat.v1.train.MomentumOptimizer(0.1, 0.9),
    "v1 Adam": lambda: tf.compat.v1.train.AdamOptimizer(0.1),
    "v1 RMSProp": lambda: tf.compat.v1.train.RMSPropOptimizer(0.1, momentum=0.9),
    "v1 Adagrad": lambda: tf.compat.v1.train.AdagradOptimizer(0.1),
}

# Elements with a gradient of zero, those of them that moved, and those with a gradient that stood still.
Counts = tuple[int, int, int]


def counts(mask: Any, before: Any, now: Any) -> Counts:
    changed = now != before
    return int((mask == 0).sum()), int(((mask == 0) & changed).sum()), int(((mask != 0) & ~changed).sum())


class Masked(keras.layers.Layer):
    """A matrix that a mask multiplies, another one in each batch."""

    def build(self, shape: Any) -> None:
        self.matrix = self.add_weight(shape=BEGIN.shape, initializer=lambda shape, dtype: tf.constant(BEGIN))
        self.mask = self.add_weight(shape=BEGIN.shape, initializer="ones", trainable=False)

    def call(self, x: Any) -> Any:
        return x @ (self.matrix * self.mask)


class Turns(keras.callbacks.Callback):
    """Sets the mask of each batch, and counts what has moved behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.truth: list[Counts] = []

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        layer = self.model.layers[-1]
        layer.mask.assign(MASKS[batch])
        self.before = layer.matrix.numpy()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.truth.append(counts(MASKS[batch], self.before, self.model.layers[-1].matrix.numpy()))


def fitted(log: Path, optimizer: Any) -> Sequence[Counts]:
    model, turns = keras.Sequential([keras.Input((3,)), Masked()]), Turns()
    model.compile(optimizer, "mse")
    recorder = tb_gradflow.GradFlowCallback(log, update_freq=1, catch_nonfinite=False)
    model.fit(np.tile(X, (2, 1)), np.tile(Y, (2, 1)), batch_size=4, verbose=0, callbacks=[turns, recorder])
    return turns.truth


def watched(log: Path, optimizer: Any) -> Sequence[Counts]:
    weight = (tf.Variable if isinstance(optimizer, tf.compat.v1.train.Optimizer) else keras.Variable)(BEGIN)

    @tb_gradflow.watch(str(log), update_freq=1, catch_nonfinite=False)
    def step(mask: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(X @ (weight * mask) - Y))
            if isinstance(optimizer, keras.optimizers.Optimizer):
                loss = optimizer.scale_loss(loss)
        gradients = tape.gradient(loss, [weight])
        optimizer.apply_gradients(zip(gradients, [weight], strict=True))

    truth = []
    for mask in MASKS:
        before = tf.convert_to_tensor(weight).numpy()
        step(tf.constant(mask))
        truth.append(counts(mask, before, tf.convert_to_tensor(weight).numpy()))
    step.flush()
    return truth


def eagerly(log: Path, optimizer: Any) -> Sequence[Counts]:
    tf.config.run_functions_eagerly(True)
    try:
        # What a weight was is known once a step has shown it.
        return watched(log, optimizer)[1:]
    finally:
        tf.config.run_functions_eagerly(False)


# Compiled loops with the others are in `test_movement`.
_WATCHED = V1 | {name: make for name, make in KERAS.items() if "Nesterov" in name or "each variable" in name}

TRAININGS = [
    pytest.param(train, make, id=f"{train.__name__}, {name}")
    for train, makers in ((fitted, KERAS), (watched, _WATCHED), (eagerly, KERAS | V1))
    for name, make in makers.items()
]


@pytest.mark.parametrize(("train", "make"), TRAININGS)
def test_what_moves_without_a_gradient_is_what_the_weights_show(
    train: Callable[[Path, Any], Sequence[Counts]], make: Make, tmp_path: Path
) -> None:
    truth = train(tmp_path, make())

    history = tb_gradflow.open_log(tmp_path).recorded
    index, found = history.index(), []
    for head in index.chunks:
        trace, rows = history.trace(index.session.id, head.trace), history.gradients(index.session.id, head.id)
        for row in (each.row for each in trace.movements):
            found += [dict(zip(MOVEMENT_STATISTICS, step[row].tolist(), strict=True)) for step in rows]
    assert [(each["zeros"], each["moved"], each["unmoved"]) for each in found] == list(truth)
    # The last report speaks of the mask where that does not hold still what it leaves out, and nowhere else.
    moving = [
        finding
        for finding in tb_gradflow.open_log(tmp_path).report().findings
        if "of these" in finding.message and "move, because" in finding.message
    ]
    assert bool(moving) == (truth[-1][1] > 0)
    assert not any("something else" in finding.message for finding in moving)
