"""A user's step with the recorder next to it, in each replica that runs it. Each replica is traced in a separate
thread, and the threads wait for each other at every all-reduce. If the recorder fails in one replica, so that it does
not reach an all-reduce, the trace of the others would end: therefore all replicas first synchronise once, to agree on
whether all of them can continue.
"""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from tb_gradflow.trace.protection.beside import beside


@dataclass(frozen=True, slots=True)
class Seen:
    """The measurements of a step in one replica.

    Attributes:
        placed: Tensors to be summed over the replicas; null where there are none to meet.
        joined: From those sums, what the step has measured.
    """

    placed: Mapping[str, Any] | None
    joined: Callable[[Mapping[str, Any] | None], dict[str, Any]]


class StepBeside(abc.ABC):
    """Returns the result of the user's step, and the measurements, which are empty if the recorder has failed."""

    _step: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        found: list[Seen] = []
        outputs = beside(
            lambda: self._step(*args, **kwargs), lambda: self._observed(found.append, args, kwargs), self._fail
        )
        measured: dict[str, Any] = {}
        if _all_have(bool(found)):
            [seen] = found
            total = None if seen.placed is None else _summed(seen.placed)
            try:
                measured = seen.joined(total)
            except Exception as fault:
                self._fail(fault)
        return outputs, measured

    @abc.abstractmethod
    def _observed(
        self, found: Callable[[Seen], None], args: Any, kwargs: Any
    ) -> contextlib.AbstractContextManager[None]:
        """What runs while the context is open is a step with these arguments; `found` is given what was seen of it."""

    @abc.abstractmethod
    def _fail(self, fault: Exception) -> None:
        """Called with a fault."""


def _summed(placed: Mapping[str, Any]) -> Any:
    return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, placed)


def _all_have(found: bool) -> bool:
    """Whether all replicas that are traced together have found something."""
    replica = tf.distribute.get_replica_context() if tf.distribute.in_cross_replica_context() is False else None
    if replica is None or replica.num_replicas_in_sync == 1 or tf.executing_eagerly():
        return found

    def all_of(strategy: Any, each: Any) -> bool:
        return all(strategy.experimental_local_results(each))

    return bool(replica.merge_call(all_of, args=(found,)))
