"""Which of the latest steps was the first that had a gradient which is not finite, noted where the steps run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tb_gradflow.trace.slot import Slot
from tb_gradflow.trace.variables import is_replica, replica_here

_NONE = -1


class Flags:
    """Counts steps in a compiled step, of each replica by itself. XLA has room for two numbers.

    Args:
        devices: Of each replica of this process.
    """

    def __init__(self, devices: Sequence[str]) -> None:
        self._devices = devices
        self._counts: list[Slot] = []
        self._firsts: list[Slot] = []
        for device in devices:
            with tf.device(device):
                self._counts.append(Slot(tf.int64, []))
                self._firsts.append(Slot(tf.int64, []))
        self.reset()

    def reset(self) -> None:
        """From now on, steps count from zero."""
        for device, count, first in zip(self._devices, self._counts, self._firsts, strict=True):
            with tf.device(device):
                count.write(tf.constant(0, tf.int64))
                first.write(tf.constant(_NONE, tf.int64))

    def begin(self) -> None:
        """In a step, at its beginning: a replica's own, or that of all."""
        for count in [self._counts[replica_here()]] if is_replica() else self._counts:
            count.write(count.read() + 1)

    def note(self, wrong: Any) -> None:
        """In a step: that its gradients are not finite, where `wrong` is true."""
        first = self._firsts[replica_here()]
        seen = first.read()
        now = self._counts[replica_here()].read() - 1
        first.write(tf.where(wrong & tf.equal(seen, _NONE), now, seen))

    @property
    def count(self) -> int:
        """How many steps have run."""
        return max(int(each.read()) for each in self._counts)

    @property
    def first(self) -> int | None:
        """The first of them that was noted, from zero; null if none was."""
        return min((number for each in self._firsts if (number := int(each.read())) != _NONE), default=None)
