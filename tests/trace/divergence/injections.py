"""Forty differences, each put into one place of a program, and where each begins; and changes that are none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tests.trace.divergence.programs import (
    BATCH,
    Change,
    attention,
    clipped_gradient,
    convolution,
    loop,
    perceptron,
)

Program = Callable[[Path, Change], None]
Adam, SGD, AdamW = keras.optimizers.Adam, keras.optimizers.SGD, keras.optimizers.AdamW
CrossEntropy = keras.losses.CategoricalCrossentropy
Sparse = keras.losses.SparseCategoricalCrossentropy


PLAIN = Change()


@dataclass(frozen=True)
class Injection:
    """A difference.

    Attributes:
        name: What is different.
        program: The program.
        b: The change that the second run has.
        step, direction: Where it begins.
        at: What the name of the op contains, of the variable, or of the tensor of the batch: one of these.
        a: What the first run has.
    """

    name: str
    program: Program
    b: Change
    step: int
    direction: str
    at: tuple[str, ...]
    a: Change = PLAIN


def _bump(place: int, by: float) -> Callable[[Any], None]:
    """Changes one element of a variable."""

    def bump(model: Any) -> None:
        variable = model[place] if isinstance(model, list) else model.trainable_variables[place]
        value = variable.numpy().copy()
        value.flat[1] += by
        variable.assign(value)

    return bump


def _all_higher(place: int, by: float) -> Callable[[Any], None]:
    """Changes all elements of a variable."""

    def add(model: Any) -> None:
        variable = model.trainable_variables[place]
        variable.assign(variable.numpy() + by)

    return add


def _at(step: int, act: Callable[[Any], Any]) -> Callable[[Any, int], None]:
    def each(model: Any, number: int) -> None:
        if number == step:
            act(model)

    return each


def _swapped(first: int, second: int) -> Callable[[Any, Any], tuple[Any, Any]]:
    """Two batches in the other order."""

    def swap(x: Any, y: Any) -> tuple[Any, Any]:
        order = np.arange(len(x)).reshape(-1, BATCH)
        order[[first, second]] = order[[second, first]]
        return x[order.ravel()], y[order.ravel()]

    return swap


def _row(row: int, part: str, by: float) -> Callable[[Any, Any], tuple[Any, Any]]:
    def changed(x: Any, y: Any) -> tuple[Any, Any]:
        x, y = x.copy(), y.copy()
        (x if part == "x" else y)[row] += by
        return x, y

    return changed


def _rate(value: float) -> Callable[[Any], None]:
    return lambda model: model.optimizer.learning_rate.assign(value)


def _l2(factor: float) -> Any:
    return keras.regularizers.L2(factor)


CNN = Change(loss=lambda: Sparse(from_logits=True), optimizer=lambda: SGD(0.05, momentum=0.9))
WIDE = Change(loss=keras.losses.MeanSquaredError, optimizer=lambda: AdamW(0.003, weight_decay=0.01))
LOOP = Change(optimizer=lambda: SGD(0.05))


def _of(base: Change, **changes: Any) -> Change:
    return Change(**{**vars(base), **changes})


def _leaky(slope: float) -> Change:
    return _of(CNN, more={"activation": lambda: keras.layers.LeakyReLU(slope, name="leaky")})


INJECTIONS: tuple[Injection, ...] = (
    # Weights and seeds.
    Injection("seed", perceptron, Change(seed=2), 0, "forward", ("hidden/kernel", "hidden")),
    Injection("one weight", perceptron, Change(built=_bump(2, 0.05)), 0, "forward", ("out/kernel", "out")),
    Injection("a bias", perceptron, Change(built=_bump(1, 0.1)), 0, "forward", ("hidden/bias", "hidden")),
    Injection("weight set later", perceptron, Change(each=_at(3, _bump(0, 0.1))), 3, "forward", ("hidden/kernel",)),
    Injection("seed of a CNN", convolution, _of(CNN, seed=2), 0, "forward", ("hidden/kernel",), CNN),
    Injection("one weight of a loop", loop, _of(LOOP, built=_bump(1, 0.03)), 0, "forward", ("second",), LOOP),
    Injection("dropout's seed", perceptron, Change(dropout_seed=4), 0, "forward", ("dropout",)),
    Injection(
        "a random draw",
        loop,
        _of(LOOP, more={"noise": 0.1, "noise_seed": 5}),
        0,
        "forward",
        ("add",),
        _of(LOOP, more={"noise": 0.1}),
    ),
    # Data.
    Injection("batch order", perceptron, Change(data=_swapped(2, 4)), 2, "forward", ("x",)),
    Injection("one row of the batch", perceptron, Change(data=_row(13, "x", 0.2)), 1, "forward", ("x",)),
    Injection("a label", loop, _of(LOOP, data=_row(34, "y", 0.5)), 4, "forward", ("y",), LOOP),
    Injection("batch order of a CNN", convolution, _of(CNN, data=_swapped(1, 3)), 1, "forward", ("x",), CNN),
    # Structure.
    Injection("activation", perceptron, Change(hidden={"activation": "elu"}), 0, "forward", ("hidden",)),
    Injection("dropout rate", perceptron, Change(dropout=0.3), 0, "forward", ("dropout",)),
    Injection("dtype of a layer", perceptron, Change(out={"dtype": "mixed_bfloat16"}), 0, "forward", ("Cast",)),
    Injection(
        "a layer more",
        perceptron,
        Change(between=lambda: [keras.layers.Dense(16, name="more")]),
        0,
        "forward",
        ("more",),
    ),
    Injection(
        "no bias",
        perceptron,
        Change(hidden={"use_bias": False}),
        0,
        "forward",
        ("hidden",),
        Change(built=_all_higher(1, 0.1)),
    ),
    Injection("units", perceptron, Change(hidden={"units": 20}), 0, "forward", ("hidden",)),
    Injection("a constant", loop, _of(LOOP, more={"factor": 0.6}), 0, "forward", ("mul",), LOOP),
    Injection(
        "tanh and sigmoid", loop, _of(LOOP, more={"squash": tf.sigmoid}), 0, "forward", ("Tanh", "Sigmoid"), LOOP
    ),
    Injection("reduction", loop, _of(LOOP, more={"reduce": tf.reduce_sum}), 0, "forward", ("Mean", "Sum"), LOOP),
    Injection("a penalty", loop, _of(LOOP, more={"penalty": 0.1}), 0, "forward", ("L2Loss", "mul", "add"), LOOP),
    Injection(
        "a regularizer",
        perceptron,
        Change(hidden={"kernel_regularizer": _l2(0.01)}),
        0,
        "forward",
        ("hidden", "regularizer", "Square", "Sum", "add", "mul", "Mul", "Add"),
    ),
    Injection(
        "epsilon of a normalisation", convolution, _of(CNN, more={"epsilon": 1e-2}), 0, "forward", ("norm",), CNN
    ),
    Injection(
        "leak",
        convolution,
        _leaky(0.3),
        0,
        "forward",
        ("leaky",),
        _leaky(0.1),
    ),
    Injection(
        "loss function",
        attention,
        _of(WIDE, loss=keras.losses.Huber),
        0,
        "forward",
        ("huber", "mean_squared_error", "loss", "Square"),
        WIDE,
    ),
    Injection(
        "label smoothing",
        perceptron,
        Change(loss=lambda: CrossEntropy(label_smoothing=0.1)),
        0,
        "forward",
        ("categorical_crossentropy",),
    ),
    Injection(
        "XLA draws other numbers",
        perceptron,
        Change(compiled={"jit_compile": True}),
        0,
        "forward",
        ("dropout",),
    ),
    Injection(
        "loss reduction",
        perceptron,
        Change(loss=lambda: CrossEntropy(reduction="sum")),
        0,
        "forward",
        ("categorical_crossentropy", "div", "Sum", "loss", "Mean"),
    ),
    Injection("scale of attention", attention, _of(WIDE, more={"scale": 0.9}), 0, "forward", ("Mul",), WIDE),
    Injection("positions", attention, _of(WIDE, more={"positions": 0.9}), 0, "forward", ("query",), WIDE),
    Injection("norm's epsilon", attention, _of(WIDE, more={"epsilon": 1e-2}), 0, "forward", ("norm",), WIDE),
    # Gradients.
    Injection(
        "a stopped gradient",
        loop,
        _of(LOOP, more={"around": tf.stop_gradient}),
        0,
        "backward",
        ("StopGradient",),
        LOOP,
    ),
    Injection(
        "a custom gradient",
        loop,
        _of(LOOP, more={"around": clipped_gradient()}),
        0,
        "backward",
        ("IdentityN",),
        LOOP,
    ),
    # Updates.
    Injection("learning rate", perceptron, Change(optimizer=lambda: Adam(0.02)), 0, "update", ("hidden/kernel",)),
    Injection("rate set later", perceptron, Change(each=_at(3, _rate(0.02))), 3, "update", ("hidden/kernel",)),
    Injection(
        "epsilon", perceptron, Change(optimizer=lambda: Adam(0.01, epsilon=1e-4)), 0, "update", ("hidden/kernel",)
    ),
    Injection(
        "weight decay",
        attention,
        _of(WIDE, optimizer=lambda: AdamW(0.003, weight_decay=0.02)),
        0,
        "update",
        ("attend/query/kernel",),
        WIDE,
    ),
    Injection(
        "clipnorm",
        perceptron,
        Change(optimizer=lambda: SGD(0.01, clipnorm=0.1)),
        0,
        "update",
        ("hidden/kernel",),
        Change(optimizer=lambda: SGD(0.01)),
    ),
    Injection(
        "momentum",
        convolution,
        _of(CNN, optimizer=lambda: SGD(0.05, momentum=0.8)),
        1,
        "update",
        ("hidden/kernel",),
        CNN,
    ),
    Injection("norm's momentum", convolution, _of(CNN, more={"momentum": 0.8}), 0, "update", ("norm/moving",), CNN),
    Injection("gradients clipped by hand", loop, _of(LOOP, more={"clip": 0.05}), 0, "update", ("first",), LOOP),
)

SAME: tuple[tuple[str, Program, Change, Change], ...] = (
    ("twice", perceptron, PLAIN, Change()),
    ("twice, a CNN", convolution, CNN, CNN),
    ("XLA", perceptron, Change(dropout=0.0), Change(dropout=0.0, compiled={"jit_compile": True})),
    ("a softmax that the loss leaves out", convolution, CNN, _of(CNN, out={"activation": "softmax"}, loss=Sparse)),
    ("XLA, a CNN", convolution, CNN, _of(CNN, compiled={"jit_compile": True})),
    ("XLA, attention", attention, WIDE, _of(WIDE, compiled={"jit_compile": True})),
    ("XLA, a loop", loop, LOOP, _of(LOOP, more={"jit": True})),
    ("eager", loop, LOOP, _of(LOOP, more={"eager": True})),
    ("renamed layers", perceptron, PLAIN, Change(names=("first", "last"))),
    ("an identity", loop, LOOP, _of(LOOP, more={"around": tf.identity})),
    ("other steps recorded", perceptron, PLAIN, Change(update_freq=2)),
    ("another order of sums", attention, WIDE, _of(WIDE, more={"positions": 1.0 + 1e-7})),
)
