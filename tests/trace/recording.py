"""Trains real models with the recorder and reads back what it wrote."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf

from tb_gradflow import GradFlowCallback
from tb_gradflow.record.schema import GRADIENT_STATISTICS, VARIABLE_STATISTICS, Op, Trace
from tb_gradflow.store.directory import DirectoryReader
from tb_gradflow.store.run import StoredRun

COLUMN = {name: number for number, name in enumerate(GRADIENT_STATISTICS)}
VARIABLE_COLUMN = {name: number for number, name in enumerate(VARIABLE_STATISTICS)}


@dataclass(frozen=True)
class Recorded:
    """One recorded run, read back from its log.

    Attributes:
        trace: The structure, of the last trace.
        steps: The recorded steps.
        gradients: For each recorded step, `[rows, 6]`.
        variables: For each recorded step, `[variables, 2]`.
        losses: For each recorded step, the value of each target.
    """

    trace: Trace
    traces: tuple[Trace, ...]
    steps: tuple[int, ...]
    gradients: list[Any]
    variables: list[Any]
    losses: list[tuple[float, ...]]

    def outcome(self, variable: str, target: int = 0) -> str:
        return str(self._gradient_of(variable, target).outcome)

    def gradient(self, variable: str, statistic: str = "norm", step: int = 0, target: int = 0) -> float:
        """A statistic of a variable's gradient at the `step`-th recorded step."""
        row = self._gradient_of(variable, target).row
        assert row is not None, f"no gradient of {variable}"
        return float(self.gradients[step][row, COLUMN[statistic]])

    def tensor(self, op: Op, statistic: str = "norm", step: int = 0) -> float:
        """A statistic of the gradient of an op's first output."""
        [found] = [g for g in self.trace.tensor_gradients if self.trace.ops[g.op] is op and g.output == 0]
        assert found.row is not None, f"{op.name}: {found.outcome}"
        return float(self.gradients[step][found.row, COLUMN[statistic]])

    def norm(self, variable: str, statistic: str, step: int = 0) -> float:
        [index] = [i for i, v in enumerate(self.trace.variables) if v.name == variable]
        return float(self.variables[step][index, VARIABLE_COLUMN[statistic]])

    def op(self, type: str, within: str = "") -> Op:
        [found] = self.ops(type, within)
        return found

    def ops(self, type: str, within: str = "") -> list[Op]:
        return [op for op in self.trace.ops if op.type == type and within in op.name]

    def _gradient_of(self, variable: str, target: int) -> Any:
        names = [v.name for v in self.trace.variables]
        [found] = [g for g in self.trace.variable_gradients if names[g.variable] == variable and g.target == target]
        return found


def read(directory: Path) -> Recorded:
    run = StoredRun(DirectoryReader(str(directory / "gradflow")))
    index = run.index()
    session = index.session.id
    traces = tuple(run.trace(session, number) for number in index.traces)
    gradients: list[Any] = []
    variables: list[Any] = []
    for chunk in index.chunks:
        gradients.extend(_numbers(run.gradients(session, chunk.id)))
        variables.extend(_numbers(run.variables(session, chunk.id)))
    losses = [loss for chunk in index.chunks for loss in chunk.losses]
    return Recorded(traces[-1], traces, index.steps, gradients, variables, losses)


def _numbers(array: Any) -> Any:
    return np.frombuffer(array.data, "<f4").reshape(array.shape)


@dataclass(frozen=True)
class Training:
    """What a training left behind."""

    losses: list[float]
    weights: list[Any]
    model: Any


def train(build: Callable[[], Any], x: Any, y: Any, *callbacks: Any, **fit: Any) -> Training:
    """Builds a model from a fixed seed and trains it."""
    keras.utils.set_random_seed(7)
    model = build()
    history = model.fit(x, y, callbacks=list(callbacks), **{"batch_size": 16, "verbose": 0, **fit})
    [first, *_] = history.history.values()
    return Training(list(first), [weight.numpy() for weight in model.weights], model)


def record(directory: Path, build: Callable[[], Any], x: Any, y: Any, *, update_freq: Any = 1, **fit: Any) -> Recorded:
    options = {name: fit.pop(name) for name in ("tensors", "source", "expected") if name in fit}
    train(build, x, y, GradFlowCallback(str(directory), update_freq=update_freq, **options), **fit)
    return read(directory)


def data(features: int = 6, outputs: int = 2, rows: int = 16) -> tuple[Any, Any]:
    random = np.random.default_rng(3)
    return random.normal(size=(rows, features)).astype("float32"), random.normal(size=(rows, outputs)).astype("float32")


def expected_gradients(model: Any, x: Any, y: Any, loss: Any) -> dict[str, Any]:
    """The gradient of each trainable variable, from a plain eager tape that knows nothing of the recorder."""
    with tf.GradientTape() as tape:
        value = loss(y, model(x, training=True))
    gradients = tape.gradient(value, [variable.value for variable in model.trainable_variables])
    return {v.path: g for v, g in zip(model.trainable_variables, gradients, strict=True)}
