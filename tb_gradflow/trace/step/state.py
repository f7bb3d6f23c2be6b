"""The variables of a step before and after it, and how it has moved them: measured in Python around the step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from tensorflow.python.ops.resource_variable_ops import BaseResourceVariable

from tb_gradflow.record.schema import MOVEMENT_STATISTICS, VARIABLE_STATISTICS, WeightsBefore
from tb_gradflow.trace.capture.optimizer_updates import Applied, Moved, as_number, is_any_nonzero
from tb_gradflow.trace.graph.variables import is_variable
from tb_gradflow.trace.numerics.arrays import (
    flat,
    movement_columns,
    parts_of,
    variable_columns,
    whole_movement,
    whole_variable,
)
from tb_gradflow.trace.numerics.clipping import of_scale
from tb_gradflow.trace.numerics.statistics import epsilon_of, movement_statistics, variable_statistics

Array = npt.NDArray[np.float32]


def kept(variable: Any) -> Any:
    """The value that a variable has now, without a copy; TensorFlow copies it when the variable changes."""
    if isinstance(variable, BaseResourceVariable):  # takes a quarter of the time of the variable's own read method
        return tf.raw_ops.ReadVariableOp(resource=variable.handle, dtype=variable.dtype)
    return variable.read_value()


Read = Callable[[Any], Any]
"""Returns the value of a variable."""


class State:
    """What is measured of the variables of one compiled step.

    Args:
        variables: Those that have norms, by index, each with whether its values before and after a step can be
            subtracted.
        moved: What the optimizers do to some of them.
        applied: The updates.
    """

    def __init__(
        self, variables: Mapping[int, tuple[Any, bool]], moved: Sequence[Moved], applied: Sequence[Applied] = ()
    ) -> None:
        self._variables = variables
        self._moved = list(moved)
        self._before: list[Any] = []
        self._accumulated: dict[int, list[Any]] = {}
        self._rates: list[Any] = []
        self._applied = applied
        self._scales: dict[int, Any] = {}

    def begin(self, read: Read = kept) -> None:
        """Before the step."""
        self._before = [read(each) for each, _ in self._variables.values()]
        # An update leaves accumulated gradients at zero. It keeps all other state where a gradient is zero, so that is
        # read after it: what is held while a step changes it has to be copied.
        self._accumulated = {
            place: [read(each) for each in moved.given.memories]
            for place, moved in enumerate(self._moved)
            if moved.applied.optimizer.accumulates > 1
        }
        rates = {id(each.applied): each.applied.rate for each in self._moved}
        known = {key: read(rate) if isinstance(rate, tf.Variable) else rate for key, rate in rates.items()}
        self._rates = [known[id(each.applied)] for each in self._moved]
        scales = [scale for each in self._applied for scale in (each.scale, each.divisor) if is_variable(scale)]
        self._scales = {id(each): read(each) for each in scales}

    def scale(self, scale: Any) -> float:
        """The value that a loss scale had before the step."""
        return float(self._scales.get(id(scale), np.nan) if is_variable(scale) else scale)

    def scales(self, read: Read = kept) -> list[list[float]]:
        """After the step: the `LOSS_SCALE_STATISTICS` of each optimizer that adapts its scale."""
        return [
            of_scale(self.scale(each.scale), np.nan if each.updates is None else float(read(each.updates)))
            for each in self._applied
            if each.scale is not None
        ]

    def weights_before(self) -> tuple[WeightsBefore, ...]:
        """Between the two: the variables before the step."""
        known = zip(self._variables, self._before, strict=True)
        return tuple(weights_before(number, value) for number, value in known if not value.dtype.is_complex)

    def end(self, gradients: Sequence[Any], rates: Sequence[Any], read: Read = kept) -> tuple[Array, Array]:
        """After it: `[variables, 4]` and `[moved, 6]`. `gradients` are those that the optimizers got, `None` where that
        is not known, and `rates` the learning rates that are tensors of the step, `None` for others."""
        before, accumulated, own = self._before, self._accumulated, self._rates
        self._before, self._accumulated, self._rates = [], {}, []
        norms = np.full((len(self._variables), len(VARIABLE_STATISTICS)), np.nan, np.float32)
        movements = np.full((len(self._moved), len(MOVEMENT_STATISTICS)), np.nan, np.float32)
        moves: dict[int, list[int]] = {}
        for place, moved in enumerate(self._moved):
            if gradients[place] is not None:
                moves.setdefault(moved.variable, []).append(place)
        known = [given if rate is None else rate for given, rate in zip(own, rates, strict=True)]
        for row, (number, (variable, has_change)) in enumerate(self._variables.items()):
            now = read(variable)
            # A variable that the step itself has initialised had no value before it.
            is_known = has_change and before[row].shape == now.shape
            places = moves.get(number, ()) if is_known else ()
            here = [
                (moved, gradients[at], accumulated.get(at) or [read(each) for each in moved.given.memories], known[at])
                for at, moved in ((at, self._moved[at]) for at in places)
            ]
            measure = _in_memory if "CPU" in now.device else _on_device
            norms[row], rows = measure(now, before[row] if is_known else None, here)
            for at, movement in zip(places, rows, strict=True):
                movements[at] = movement
        return norms, movements


def weights_before(number: int, value: Any) -> WeightsBefore:
    """Of the variable with this number, from its value before the step."""
    if "CPU" in value.device:
        array = _flat(value)
        with np.errstate(all="ignore"):
            total = float(array.sum(dtype=np.float64))
            total = total if np.isfinite(total) else float(array[np.isfinite(array)].sum(dtype=np.float64))
        return WeightsBefore(number, variable_columns(array, None, None)[0], total)
    wide = tf.cast(value, tf.float64)
    finite = tf.where(tf.math.is_finite(wide), wide, 0.0)
    return WeightsBefore(number, float(tf.norm(finite)), float(tf.reduce_sum(finite)))


_Here = Sequence[tuple[Moved, Any, Sequence[Any], Any]]


def _in_memory(now: Any, before: Any, moved: _Here) -> tuple[Any, list[Any]]:
    value, old = _flat(now), None if before is None else _flat(before)
    given = [(_flat(gradient), [_flat(memory) for memory in memories]) for _, gradient, memories, _ in moved]
    columns: list[list[float]] = []
    rows: list[list[list[float]]] = [[] for _ in moved]
    for part in parts_of(value):
        change = None if old is None else value[part] - old[part]
        columns.append(variable_columns(value[part], change, None if old is None else old[part]))
        for row, (gradient, memories), (each, _, _, rate) in zip(rows, given, moved, strict=True):
            assert old is not None and change is not None  # only what has one shape is followed
            row.append(
                movement_columns(
                    gradient[part],
                    old[part],
                    change,
                    [memory[part] for memory in memories],
                    np.nan if rate is None else float(rate),
                    epsilon_of(now.dtype),
                    is_proportional=each.applied.is_proportional,
                    is_scaled=each.is_scaled,
                )
            )
    return whole_variable(columns), [whole_movement(row) for row in rows]


def _flat(tensor: Any) -> Array:
    try:
        return flat(np.asarray(memoryview(tensor)))  # without the copy that `numpy` makes
    except ValueError:  # NumPy does not know its type
        return flat(tensor.numpy())


def _on_device(now: Any, before: Any, moved: _Here) -> tuple[Any, list[Any]]:
    """The same where the values are not in the memory of the host."""
    rows = [
        movement_statistics(
            gradient,
            before,
            now,
            is_any_nonzero(memories),
            as_number(rate),
            is_proportional=each.applied.is_proportional,
            is_scaled=each.is_scaled,
        ).numpy()
        for each, gradient, memories, rate in moved
    ]
    return variable_statistics(now, before).numpy(), rows
