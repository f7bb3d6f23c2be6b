"""Who observes what is traced in which thread; only one step is observed at a time.

A step is traced by one thread, or by one thread for each replica of a `tf.distribute` strategy. TensorFlow lets these
take turns where replicas meet: they must not wait for each other here, but unrelated steps must.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from tb_gradflow.trace.capture.collector import Collector
from tb_gradflow.trace.graph.variables import is_replica, replica_here
from tb_gradflow.trace.protection.beside import surely


class Look:
    """The observation of one replica's step.

    Attributes:
        listener: The observer.
        quiet: Nesting depth of TensorFlow's own calls of `gradient`.
        rows: The tape whose Jacobian is being computed, and for each of its gradients whether one arrived for each
            source; None if there is none.
    """

    def __init__(self, listener: Collector) -> None:
        self.listener = listener
        self.quiet = 0
        self.rows: tuple[Any, list[list[bool]]] | None = None


Here = Callable[[], "Look | None"]
"""The observer of the current thread; None if there is none."""


Replicas = Callable[[int], Look]
"""The observation of each replica of a step, by its number."""


class _Looks:
    """The observation of one thread, if there is any: another thread may end it."""

    def __init__(self) -> None:
        self.now: Look | None = None


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.looks = _Looks()


PATIENCE = 5.0
"""Seconds for which a step waits for an open one that does not end."""


@dataclass(frozen=True, slots=True)
class _Open:
    """A step that is not a function, and may stay open for any time: its thread may wait for something, or end.

    Attributes:
        thread: The thread that runs it.
        end: Ends its observation, in any thread.
    """

    thread: threading.Thread
    end: Callable[[], None]


class Lookers:
    """The observations that are open in this process.

    Args:
        install: Installs the patches once, while there is any.
    """

    def __init__(self, install: Callable[[Here], contextlib.ExitStack]) -> None:
        self._install = install
        self._of_thread = _OfThread()
        self._free = threading.Condition()
        self._family: Hashable = None
        self._open = 0
        self._installed = contextlib.ExitStack()
        self._shared: tuple[Any, Replicas] | None = None
        self._gives_way: _Open | None = None
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._in_fork)

    @contextlib.contextmanager
    def looking(self, listener: Collector, of_replica: Callable[[int], Collector]) -> Iterator[None]:
        """While the context is open, the listener is notified of every gradient, scaled loss, update and layer of this
        thread, and what `of_replica` returns of those of a replica, which has its own thread. Another thread may close
        it.
        """
        own = self._of_thread.looks
        before, shared = own.now, self._shared
        self._enter()
        try:
            own.now = Look(listener)
            if not is_replica():
                looks = functools.cache(lambda number: Look(of_replica(number)))
                self._shared = tf.compat.v1.get_default_graph(), looks
            yield
        finally:
            own.now, self._shared = before, shared
            surely(self._leave)

    def gives_way(self, end: Callable[[], None]) -> None:
        """The open observation may last for any time: another thread that has waited long enough calls `end`, or at
        once if this thread has ended."""
        self._gives_way = _Open(threading.current_thread(), end)

    def here(self) -> Look | None:
        """The observer of this thread; None if there is none."""
        own = self._of_thread.looks.now
        if own is not None:
            return own
        shared = self._shared
        if shared is None or not is_replica() or not _is_inside(shared[0]):
            return None
        return shared[1](replica_here())

    def _enter(self) -> None:
        family = _family()
        while True:
            waits_for = self._gives_way
            is_alive = waits_for is None or waits_for.thread.is_alive()
            if self._has_entered(family, PATIENCE if is_alive else 0.0):
                return
            # With another one inside of it, its thread is busy.
            if waits_for is not None and waits_for is self._gives_way and self._open == 1:
                waits_for.end()

    def _has_entered(self, family: Hashable, seconds: float) -> bool:
        """Whether it was this step's turn within that time."""
        with self._free:
            if not self._free.wait_for(lambda: self._open == 0 or self._family == family, seconds):
                return False
            if self._open == 0:
                self._installed = self._install(self.here)
            self._family = family
            self._open += 1
            return True

    def _in_fork(self) -> None:
        """In a forked process, which has none of the other threads: their steps will never end."""
        self._free = threading.Condition()
        if self._open and self._of_thread.looks.now is None:
            self._open, self._gives_way, self._shared = 0, None, None
            self._installed.close()

    def _leave(self) -> None:
        with self._free:
            if self._open == 0:  # a fork has ended it
                return
            self._open -= 1
            if self._open == 0:
                self._gives_way = None
                self._installed.close()
                self._free.notify_all()


def _is_inside(graph: Any) -> bool:
    """Whether this thread traces into a graph, or into one that is nested in it."""
    here = tf.compat.v1.get_default_graph()
    while here is not None and here is not graph:
        here = getattr(here, "outer_graph", None)
    return here is graph


def _family() -> Hashable:
    """Equal for the replicas of one step, which are traced into one graph."""
    if is_replica() and not tf.executing_eagerly():
        return "graph", id(tf.compat.v1.get_default_graph())
    return "thread", threading.current_thread()  # the number of one that has ended is used again
