"""Catches the first step with a gradient that is not finite by a branch in the step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tb_gradflow.trace.caught import CaughtStep, NonfiniteMonitor, caught_step
from tb_gradflow.trace.sentinel import CatchingBranch
from tb_gradflow.trace.step import InstrumentedStep

# Elements. A variable that is read at the beginning of each step must be copied when the step changes it.
_CHEAP = 1024


class BranchMonitor(NonfiniteMonitor):
    """Runs a step with a branch in it that keeps the state when a gradient is not finite.

    Args:
        step: The user's own, as it is to be traced.
        instrumented: The recorder's version of it, which has run before.
        compiled: Compiles a step as the user's own is compiled.
        iterations: Returns how many steps have run; `None` if nobody knows.
    """

    def __init__(
        self,
        step: Callable[..., Any],
        instrumented: InstrumentedStep,
        compiled: Callable[[Callable[..., Any]], Callable[..., Any]],
        iterations: Callable[[], int | None],
    ) -> None:
        super().__init__()
        self._instrumented = instrumented
        state = instrumented.touched
        self._branch = CatchingBranch(state, _changed_early(state, instrumented.untrained))
        self._iterations = iterations
        self._function = compiled(self._branch.added_to(step))

    @property
    def fault(self) -> Exception | None:
        """An exception of the monitor itself; `None` while there is none."""
        return self._branch.fault

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def settled(self) -> bool:
        return self._branch.has_caught

    def caught_by_now(self) -> bool:
        return self._branch.has_caught

    def measure(self) -> CaughtStep | None:
        if not self._branch.may_repeat():
            return None
        now = self._iterations()
        repeated = tf.function(tf.autograph.experimental.do_not_convert(lambda *a, **k: self._instrumented(*a, **k)))
        with self._branch.before_it() as (args, kwargs):
            before = self._iterations()
            _, measured = repeated(*args, **kwargs)
        return caught_step(measured, 1 if now is None or before is None else now - before)


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
