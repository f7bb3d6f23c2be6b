"""Records the first step that has a gradient which is not finite, whatever the cadence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tb_gradflow.trace.caught import Caught, Guarding, caught
from tb_gradflow.trace.sentinel import Sentinel
from tb_gradflow.trace.step import InstrumentedStep

# Elements. A variable that is read at the beginning of each step must be copied when the step changes it.
_CHEAP = 1024


class NonfiniteStep(Guarding):
    """Runs the guarded version of a step between recorded ones, until it has caught one.

    Args:
        step: The user's own, as it is to be traced.
        instrumented: The recorder's version of it, which has run before.
        compiled: Compiles a step as the user's own is compiled.
        iterations: Answers how many steps have run; null if nobody knows.
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
        self._sentinel = Sentinel(state, _changed_early(state, instrumented.untrained))
        self._iterations = iterations
        self._function = compiled(self._sentinel.guarded(step))

    @property
    def fault(self) -> Exception | None:
        """An exception that the guard itself is to blame for; null while there is none."""
        return self._sentinel.fault

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def settled(self) -> bool:
        return self._sentinel.caught

    def caught_by_now(self) -> bool:
        return self._sentinel.caught

    def measure(self) -> Caught | None:
        if not self._sentinel.may_repeat():
            return None
        now = self._iterations()
        repeated = tf.function(tf.autograph.experimental.do_not_convert(lambda *a, **k: self._instrumented(*a, **k)))
        with self._sentinel.before_it() as (args, kwargs):
            before = self._iterations()
            _, measured = repeated(*args, **kwargs)
        return caught(measured, 1 if now is None or before is None else now - before)


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
