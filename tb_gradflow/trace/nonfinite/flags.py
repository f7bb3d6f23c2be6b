"""Flags that show which of the latest steps was the first with a gradient that is not finite.

A step on one device returns its flag in addition to its results. With several replicas, or several steps in one
execution, the flags are kept on the devices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from tb_gradflow.trace.graph.variables import is_replica, replica_here
from tb_gradflow.trace.tf_internals.resource_cells import Slot

_NONE = -1


class Flags(Protocol):
    """Collects from steps whether their gradients are finite, for a number of steps.

    Attributes:
        replicas: How many replicas of a step there are in this process.
    """

    replicas: int

    def reset(self) -> None:
        """Restarts the count of steps at zero."""

    def begin(self) -> None:
        """Called in a step, at its beginning."""

    def note(self, wrong: Any) -> None:
        """Called in a step, or a function inside it: flags that its gradients are not finite, where `wrong` is
        true.
        """

    def beside(self, results: Any) -> Any:
        """Called in a step, at its end: the return value of the step for these results of the user's."""

    def parted(self, returned: Any) -> Any:
        """Called after a step: the user's results, extracted from its return value."""

    @property
    def count(self) -> int:
        """The number of steps that have run."""

    @property
    def first(self) -> int | None:
        """The first flagged step, from zero; None if there is none."""


class ReturnedFlags:
    """A `Flags` for steps that each run in one call, on one device, and return their flag.

    Args:
        device: The device of the step.
    """

    replicas = 1

    def __init__(self, device: str) -> None:
        self._step: Any = None
        self._noted: list[Any] = []
        self._is_nested = False
        with tf.device(device):
            self._nested = Slot(tf.bool, [])
            self._nested.write(tf.constant(False))
        self.reset()

    def reset(self) -> None:
        self._flags: list[Any] = []
        self._looked_at = 0
        self._first: int | None = None

    def begin(self) -> None:
        self._step, self._noted, self._is_nested = tf.compat.v1.get_default_graph(), [], False

    def note(self, wrong: Any) -> None:
        if wrong.graph is self._step:
            self._noted.append(wrong)
        else:  # a graph cannot return a tensor of another graph
            self._is_nested = True
            self._nested.write(wrong | self._nested.read())

    def beside(self, results: Any) -> Any:
        noted = list(self._noted)
        if self._is_nested:
            noted.append(self._nested.read())
            self._nested.write(tf.constant(False))
        self._step, self._noted = None, []
        return results, tf.reduce_any(tf.stack(noted)) if noted else tf.constant(False)

    def parted(self, returned: Any) -> Any:
        results, flag = returned
        self._flags.append(flag)
        return results

    @property
    def count(self) -> int:
        return len(self._flags)

    @property
    def first(self) -> int | None:
        if self._first is None and self._looked_at < len(self._flags):
            wrong = np.flatnonzero(tf.stack(self._flags[self._looked_at :]).numpy())
            self._first = self._looked_at + int(wrong[0]) if len(wrong) else None
            self._looked_at = len(self._flags)
        return self._first


class CountedFlags:
    """A `Flags` that counts steps in a compiled step, separately for each replica. Under XLA it is two numbers.

    Args:
        devices: The device of each replica in this process.
    """

    def __init__(self, devices: Sequence[str]) -> None:
        self.replicas = len(devices)
        self._devices = devices
        self._counts: list[Slot] = []
        self._firsts: list[Slot] = []
        for device in devices:
            with tf.device(device):
                self._counts.append(Slot(tf.int64, []))
                self._firsts.append(Slot(tf.int64, []))
        self.reset()

    def reset(self) -> None:
        for device, count, first in zip(self._devices, self._counts, self._firsts, strict=True):
            with tf.device(device):
                count.write(tf.constant(0, tf.int64))
                first.write(tf.constant(_NONE, tf.int64))

    def begin(self) -> None:
        """Called at the beginning of a replica's own step, or of the step of all replicas."""
        for count in [self._counts[replica_here()]] if is_replica() else self._counts:
            count.write(count.read() + 1)

    def note(self, wrong: Any) -> None:
        first = self._firsts[replica_here()]
        seen = first.read()
        now = self._counts[replica_here()].read() - 1
        first.write(tf.where(wrong & tf.equal(seen, _NONE), now, seen))

    def beside(self, results: Any) -> Any:
        return results

    def parted(self, returned: Any) -> Any:
        return returned

    @property
    def count(self) -> int:
        return max(int(each.read()) for each in self._counts)

    @property
    def first(self) -> int | None:
        return min((number for each in self._firsts if (number := int(each.read())) != _NONE), default=None)
