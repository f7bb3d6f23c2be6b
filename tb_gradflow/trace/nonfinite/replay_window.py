"""The steps that can be run again: the variables before them, and how many steps to keep."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.ops.resource_variable_ops import BaseResourceVariable

from tb_gradflow.trace.fidelity.rollback import undone
from tb_gradflow.trace.step.recent_batches import bytes_of

LEAST = 8
"""Steps, if their batches fit: enough if steps are so long that the work between them costs nothing."""

MOST = 256

HELD_BYTES = 128 << 20
"""For batches and results. Older steps cannot be run again."""

_SHARE = 0.0025
"""The share of the time of its steps that a replay window may take."""

_COPIED_BYTES = 4e9
"""Per second: a variable that is changed while its old value is kept is copied by the step that changes it."""


class Held:
    """The memory for running the steps of a replay window again, in bytes.

    Attributes:
        total: For all steps.
        largest: For one step.
    """

    def __init__(self) -> None:
        self.total = self.largest = 0

    def add(self, *kept: Any) -> None:
        """Adds the tensors, in any structure, that are kept for one more step."""
        size = bytes_of(kept)
        self.total += size
        self.largest = max(self.largest, size)

    @property
    def is_full(self) -> bool:
        """Whether the window must end here."""
        return self.total >= HELD_BYTES


class Window:
    """Consecutive replay windows.

    Args:
        state: All variables that a step may change.
    """

    def __init__(self, state: Sequence[Any]) -> None:
        self._state = state
        self._before: list[Any] = []
        self._opened = 0.0
        self._own = 0.0
        self.is_open = False
        self.length = 1

    def open(self) -> None:
        """Before the first step of a window."""
        began = time.perf_counter()
        self._before = [kept(variable) for variable in self._state]
        self.is_open = True
        self._opened = time.perf_counter()
        self._own = self._opened - began

    def close(self, steps: int, forget: Callable[[], int]) -> None:
        """After the last step of a window. The next one is long enough to cost no more than its share.

        `forget` releases the batches, and returns how many bytes were kept for one step.
        """
        ended = time.perf_counter()
        batch_bytes = forget()
        if self.is_open and steps:
            own = self._own + time.perf_counter() - ended
            took = max(ended - self._opened, 1e-9) / steps
            copied = sum(value.dtype.size * (value.shape.num_elements() or 0) for value in self._before)
            wanted = math.ceil((own + copied / _COPIED_BYTES) / (_SHARE * took))
            room = HELD_BYTES // max(batch_bytes, 1)
            self.length = max(1, min(max(wanted, LEAST), room, MOST))
        self._before = []
        self.is_open = False

    @contextlib.contextmanager
    def reopened(self) -> Iterator[None]:
        """While the context is open, all variables are as they were before the window."""
        with undone(lambda: list(self._state), ()):
            for variable, value in zip(self._state, self._before, strict=True):
                variable.assign(value)
            yield


def kept(variable: Any) -> Any:
    """The value that a variable has now, without a copy; for a variable on an accelerator, whose memory is scarce, a
    copy.
    """
    if isinstance(variable, BaseResourceVariable):  # takes a quarter of the time of the variable's own read method
        value = tf.raw_ops.ReadVariableOp(resource=variable.handle, dtype=variable.dtype)
    else:
        value = variable.read_value()
    return value if "CPU" in value.device else value.cpu()
