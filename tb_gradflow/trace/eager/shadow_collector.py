"""The collector of an eager step, which uses the step's shadow graph like a traced step."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import record

from tb_gradflow.errors import SetupError
from tb_gradflow.trace.capture.collector import Collector, Tensors
from tb_gradflow.trace.custom_gradient_checks.step_checks import GradientChecks
from tb_gradflow.trace.eager.custom_gradient_calls import CustomGradients
from tb_gradflow.trace.eager.custom_gradient_values import EagerChecks
from tb_gradflow.trace.eager.exits import Exits
from tb_gradflow.trace.eager.returns import link_returns
from tb_gradflow.trace.eager.shadow import Shadow
from tb_gradflow.trace.eager.unseen_exits import UNSEEN, link_by_value
from tb_gradflow.trace.eager.untaken_branches import Branches
from tb_gradflow.trace.graph.flat_ops import Known
from tb_gradflow.trace.graph.variables import Variables, is_replica
from tb_gradflow.trace.numerics.loss_scale import total
from tb_gradflow.trace.tf_internals.tapes import is_watched_by_another, with_zeros

EAGER_REPLICAS = (
    "its replicas run eagerly at the same time. Such a step is recorded only if it is compiled or runs on one device."
)

MOST_OPS = 100_000
"""For eager steps of a training: recording an op takes about 0.4 ms, several times as long as running it, so the first
recorded step of such a loop would last a minute.
"""

TOO_LONG = (
    f"it runs more than {MOST_OPS:,} ops eagerly, and recording all of them would take many times as long as the "
    "step. Compile it with `tf.function`, or call `tb_gradflow.explain` on one step, which has no such limit."
)


class EagerCollector(Collector):
    """Collects the gradient calls of one eager step. Measuring cannot change how such a step rounds."""

    def __init__(
        self,
        variables: Variables,
        tensors: Tensors = "all",
        *,
        checks: GradientChecks | None = None,
        barriers: Collection[str] | None = None,
        terms: bool = False,
    ) -> None:
        super().__init__(variables, tensors, exact=False, barriers=barriers, terms=terms)
        self._inner = False
        # `explain` records a single step, and the user waits for it.
        self.shadow = Shadow(MOST_OPS if checks is None else None, self._give_up)
        self.exits = Exits(self.shadow, lambda tensor: variables.index_of_source(tensor) is not None)
        self._checks = EagerChecks(self.shadow, checks) if checks is not None else None
        self.custom = CustomGradients(self.shadow, self._checks)
        self.branches = Branches(self.shadow)
        self.root = self.shadow.graph
        self.known = self.shadow.known

    def _give_up(self) -> None:
        self.fault = self.fault or SetupError(TOO_LONG)

    def recording(self) -> contextlib.AbstractContextManager[None]:
        tapes = super().recording()

        @contextmanager
        def opened() -> Iterator[None]:
            with (
                tapes,
                self.shadow.listening(),
                self.custom.watching(),
                self.branches.watching(),
                self.exits.watching(),
            ):
                yield

        return opened()

    def gradient(self, original: Callable[..., Any], tape: Any, target: Any, sources: Any, *rest: Any) -> Any:
        """As in `Collector`. One of several replicas is not the whole step, but would be reported as such."""
        if is_replica() and tf.distribute.get_replica_context().num_replicas_in_sync > 1:
            self.fault = self.fault or SetupError(EAGER_REPLICAS)
            return original(tape, target, sources, *rest)
        if self.shadow.is_full:
            return original(tape, target, sources, *rest)
        self._look_around(tape)
        if len(rest) < 2 or tf.UnconnectedGradients(rest[1]) is not tf.UnconnectedGradients.ZERO:
            return super().gradient(original, tape, target, sources, *rest)

        def connected(tape: Any, target: Any, sources: Any, output_gradients: Any, _: Any) -> Any:
            return original(tape, target, sources, output_gradients)

        # From eager zeros it is not visible whether a gradient arrived.
        found = super().gradient(connected, tape, target, sources, *rest)
        return with_zeros(found, sources)

    def jacobian(
        self, original: Callable[[], tuple[Any, Sequence[bool]]], tape: Any, target: Any, sources: Any, *rest: Any
    ) -> Any:
        if self.shadow.is_full:
            return original()[0]
        self._look_around(tape)
        return super().jacobian(original, tape, target, sources, *rest)

    def _look_around(self, tape: Any) -> None:
        # The recorder's own work is done where no tape records, so it would not be visible to any.
        with super()._own_work():
            self._inner = is_watched_by_another(tape)

    def _is_inner(self, tape: Any) -> bool:
        return self._inner

    def knows(self, tensor: Any) -> bool:
        return isinstance(tensor, tf.__internal__.EagerTensor)

    def graph_now(self) -> Any:
        return self.root

    def symbol(self, tensor: Any) -> Any:
        return self.shadow.symbol(tensor)

    def actual(self, symbol: Any) -> Any:
        return self.shadow.actual(symbol)

    def more(self) -> dict[str, Any]:
        return self._checks.values() if self._checks is not None else {}

    def finish(self) -> None:
        flattener = self.flattener(self.root)
        flattener.extend(backward=True)
        self.custom.tell(flattener)
        if self._checks is not None:
            self._checks.finish()
        link_returns(self.shadow, self.exits.all, flattener, [ref for call in self.calls for ref in call.targets])
        link_by_value(self, flattener)

    def origin(self, symbol: Any) -> Known:
        return UNSEEN if self.is_inside(symbol) else super().origin(symbol)

    def _is_constant(self, symbol: Any) -> bool:
        return super()._is_constant(symbol) or self.is_inside(symbol)

    def is_inside(self, symbol: Any) -> bool:
        """Whether a tensor was created during the step, from a Python value."""
        return any(arrival.symbol is symbol and arrival.inside for arrival in self.shadow.arrivals)

    @contextmanager
    def _own_work(self) -> Iterator[None]:
        with super()._own_work(), self.shadow.paused(), record.stop_recording():
            yield

    def _read(self, variable: Any) -> Any:
        with self.shadow.resumed():
            return super()._read(variable)

    def _total(self, targets: Sequence[Any], scale: Any) -> Any:
        return total([target for target in targets if target.dtype.is_floating], scale)

    def _brought_home(self, tensor: Any) -> Any:
        return tensor
