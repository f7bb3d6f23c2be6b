"""Notices between recorded steps that weights have stopped being finite, where nothing watches the gradients: in steps
whose ops run as the program calls them."""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import record

from tb_gradflow.trace.graph.variables import Owned
from tb_gradflow.trace.step.state import kept

# A gradient that is not finite rarely reaches one variable only, so a few small ones are enough.
_FEW = 3
_SMALL = 4096

_SHARE = 0.01
"""The share of the time that this may take: if steps take less than some milliseconds, not each is looked at."""

_LONGEST_WAIT = 0.05


class BrokenWeights:
    """Looks at a few of the variables that are trained."""

    def __init__(self) -> None:
        self._watched: list[weakref.ref[Any]] = []
        self._were_found = False
        self._waits_until = 0.0

    def watch(self, variables: Iterable[Owned]) -> None:
        """Those of a step, some of which are looked at from now on."""
        trained = [owned.variable for owned in variables if owned.trainable and isinstance(owned.variable, tf.Variable)]
        # On another device, reading a value would wait for the step.
        small = [each for each in trained if 0 < _size(each) <= _SMALL and "CPU" in (each.device or "")]
        floats = [each for each in small if each.dtype.is_floating]
        self._watched = [weakref.ref(each) for each in sorted(floats, key=_size)[:_FEW]]

    def are_found(self) -> bool:
        """Whether one of them is not finite any more; only once, because it stays like that."""
        began = time.perf_counter()
        if self._were_found or not self._watched or began < self._waits_until:
            return False
        with record.stop_recording():
            values = [kept(variable) for each in self._watched if (variable := each()) is not None]
            self._were_found = not all(np.isfinite(value.numpy()).all() for value in values)
        ended = time.perf_counter()
        self._waits_until = ended + min((ended - began) / _SHARE, _LONGEST_WAIT)
        return self._were_found


def _size(variable: tf.Variable) -> int:
    """The number of its elements; 0 if that may change."""
    return int(variable.shape.num_elements() or 0)
