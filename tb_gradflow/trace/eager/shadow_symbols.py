"""The tensors of a step that runs eagerly, and its shadow: the graph that it is recorded as."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import record

from tb_gradflow.errors import SetupError
from tb_gradflow.trace.capture.symbols import Symbols
from tb_gradflow.trace.custom_gradient_checks.step_checks import GradientChecks
from tb_gradflow.trace.eager.custom_gradient_calls import CustomGradients
from tb_gradflow.trace.eager.custom_gradient_values import EagerChecks
from tb_gradflow.trace.eager.exits import Exits
from tb_gradflow.trace.eager.returns import link_returns
from tb_gradflow.trace.eager.shadow import Shadow
from tb_gradflow.trace.eager.unseen_exits import UNSEEN, link_by_value
from tb_gradflow.trace.eager.untaken_branches import watch_branches
from tb_gradflow.trace.graph.flat_ops import Known
from tb_gradflow.trace.graph.flatten import Flattener
from tb_gradflow.trace.graph.gradient_call import Call
from tb_gradflow.trace.graph.variables import Variables, is_replica, local
from tb_gradflow.trace.numerics.statistics_table import Block
from tb_gradflow.trace.tf_internals.tapes import with_zeros

EAGER_REPLICAS = (
    "its replicas run eagerly at the same time; such a step is recorded only if it is compiled, or on one device."
)

MOST_OPS = 100_000
"""Of an eager step that is trained with: seeing one takes about 0.4 ms, several times as long as running it, so that
the first recorded step of such a loop would last a minute."""

TOO_LONG = (
    f"it runs more than {MOST_OPS:,} ops eagerly, and recording all of them would take many times as long as the step. "
    "Compile it with `tf.function`, or use `tb_gradflow.explain` on a single step, which may take minutes."
)


class ShadowSymbols(Symbols):
    """The same for a step that runs eagerly. Measuring cannot change how such a step rounds.

    Args:
        variables: Of the step.
        checks: Where to keep what is needed to check custom gradients; `None` if they are not checked.
    """

    only_observes = False

    def __init__(self, variables: Variables, checks: GradientChecks | None) -> None:
        super().__init__()
        # `explain` looks at one step, and is waited for.
        self.shadow = Shadow(MOST_OPS if checks is None else None, self._give_up)
        self.root = self.shadow.graph
        self.known = self.shadow.known
        self._exits = Exits(self.shadow, lambda tensor: variables.index_of_source(tensor) is not None)
        self._checks = EagerChecks(self.shadow, checks) if checks is not None else None
        self._custom = CustomGradients(self.shadow, self._checks)

    def _give_up(self) -> None:
        self.fault = SetupError(TOO_LONG)

    def check_request(self) -> None:
        """One replica of several is not the whole step, but would be mistaken for it."""
        if is_replica() and tf.distribute.get_replica_context().num_replicas_in_sync > 1:
            raise SetupError(EAGER_REPLICAS)
        if self.fault is not None:
            raise self.fault

    @contextmanager
    def recording(self) -> Iterator[None]:
        with self.shadow.listening(), contextlib.ExitStack() as undo:
            self._custom.watch(undo)
            watch_branches(undo, self.shadow)
            self._exits.watch(undo)
            yield

    @contextmanager
    def own_work(self) -> Iterator[None]:
        with self.shadow.paused(), record.stop_recording():
            yield

    def passing(self) -> contextlib.AbstractContextManager[None]:
        # A check of a custom gradient compares what that has returned.
        return self.shadow.passing() if self._checks is None else contextlib.nullcontext()

    def knows(self, tensor: Any) -> bool:
        return isinstance(tensor, tf.__internal__.EagerTensor)

    def graph_now(self) -> Any:
        return self.root

    def symbol(self, tensor: Any) -> Any:
        return self.shadow.symbol(tensor)

    def actual(self, symbol: Any) -> Any:
        return self.shadow.actual(symbol)

    def read(self, variable: Any) -> Any:
        with self.shadow.resumed():
            return local(variable).read_value()

    def value_of(self, target: Any) -> Any:
        return target

    def block(self) -> Block:
        return Block()

    def asked_for(self, tape: Any, tensors: Sequence[Any]) -> list[bool]:
        return [True] * len(tensors)

    def fills_zeros(self, *, alone: bool) -> bool:
        return True  # of eager zeros, it is not known whether a gradient arrived

    def with_zeros(self, ask: Any, asked: Any, target: Any, sources: Any) -> Any:
        return with_zeros(asked, sources)

    def is_constant(self, symbol: Any) -> bool:
        return super().is_constant(symbol) or self.shadow.is_inside(symbol)

    def origin(self, symbol: Any) -> Known:
        return UNSEEN if self.shadow.is_inside(symbol) else super().origin(symbol)

    def more(self) -> dict[str, Any]:
        return self._checks.values() if self._checks is not None else {}

    def finish(self, flattener: Flattener, calls: Iterable[Call]) -> None:
        flattener.extend(backward=True)
        self._custom.tell(flattener)
        if self._checks is not None:
            self._checks.finish()
        targets = [ref for call in calls for ref in call.targets]
        link_returns(self.shadow, self._exits.all, flattener, targets)
        link_by_value(self.shadow, calls, flattener)

    def forget(self) -> None:
        self.shadow.forget()
