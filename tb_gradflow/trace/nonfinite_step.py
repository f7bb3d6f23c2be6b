"""Records the first step that has a gradient which is not finite, whatever the cadence."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tb_gradflow.record.schema import GRADIENT_STATISTICS
from tb_gradflow.trace.replicas import Measured
from tb_gradflow.trace.sentinel import Sentinel
from tb_gradflow.trace.step import InstrumentedStep

# Elements. A variable that is read at the beginning of each step must be copied when the step changes it.
_CHEAP = 1024

# Seconds. To ask takes 20 microseconds.
_PAUSE = 0.02


class NonfiniteStep:
    """Runs the guarded version of a step between recorded ones, until it has caught one.

    Args:
        step: The user's own, as it is to be traced.
        instrumented: The recorder's version of it, which has run before.
        compiled: Compiles a step as the user's own is compiled.
        at_once: Whether a step must be told as soon as it has run: nothing else says which it was.
    """

    def __init__(
        self,
        step: Callable[..., Any],
        instrumented: InstrumentedStep,
        compiled: Callable[[Callable[..., Any]], Callable[..., Any]],
        *,
        at_once: bool,
    ) -> None:
        self._instrumented = instrumented
        state = instrumented.touched
        self._sentinel = Sentinel(state, _changed_early(state, instrumented.untrained))
        self._asked = 0.0
        self._pause = 0.0 if at_once else _PAUSE
        self.run = compiled(self._sentinel.guarded(step))

    @property
    def fault(self) -> Exception | None:
        """An exception that the guard itself is to blame for; null while there is none."""
        return self._sentinel.fault

    @property
    def caught(self) -> bool:
        """Whether a step that has run had a gradient that is not finite."""
        return self._sentinel.caught

    def caught_by_now(self) -> bool:
        """The same, asked so seldom that asking costs nothing: the answer may be some steps late, unless `at_once`."""
        now = time.monotonic()
        if now - self._asked < self._pause:
            return False
        self._asked = now
        return self.caught

    def measure(self, iterations: Callable[[], int | None]) -> tuple[Measured, int | None] | None:
        """What the step that was caught measures when it is run again, and the value of `iterations` before it.

        Null if it may not be run again, or if everything is finite then: a step that draws other random numbers.
        """
        if not self._sentinel.may_repeat():
            return None
        repeated = tf.function(tf.autograph.experimental.do_not_convert(lambda *a, **k: self._instrumented(*a, **k)))
        with self._sentinel.before_it() as (args, kwargs):
            before = iterations()
            _, measured = repeated(*args, **kwargs)
        values = {name: value.numpy() for name, value in measured.items()}
        return (values, before) if _has_nonfinite(values) else None


def _changed_early(state: Sequence[Any], untrained: Sequence[Any]) -> list[Any]:
    """Variables that a step may change before it takes its gradients: moving averages, seeds, counters.

    An optimizer has one or two for each weight, of its shape, and changes them later.
    """
    listed = {id(variable) for variable in untrained}
    weights = {(variable.dtype, tuple(variable.shape)) for variable in state if variable.trainable}
    return [
        variable
        for variable in state
        if id(variable) in listed
        or (
            not variable.trainable
            and (variable.shape.rank == 0 or (variable.dtype, tuple(variable.shape)) not in weights)
            and (variable.shape.num_elements() or 0) <= _CHEAP
        )
    ]


def _has_nonfinite(values: Measured) -> bool:
    nonfinite = [GRADIENT_STATISTICS.index(column) for column in ("nan_count", "inf_count")]
    return bool(np.any(values["gradients"][:, nonfinite] > 0) or not np.all(np.isfinite(values["losses"])))
