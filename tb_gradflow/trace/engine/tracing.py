"""Who is told what a thread traces and calls. TensorFlow traces the user's functions when the user's program calls
them, and never for the recorder."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from tensorflow.python.eager.polymorphic_function import transform
from tensorflow.python.eager.polymorphic_function.concrete_function import ConcreteFunction
from tensorflow.python.framework import func_graph

from tb_gradflow.trace.engine.stack_space import with_stack_space
from tb_gradflow.trace.protection.beside import beside
from tb_gradflow.trace.protection.foreign import faults
from tb_gradflow.trace.protection.substitutes import Ours
from tb_gradflow.trace.tf_internals.patching import replaced


class Onlooker(Protocol):
    """Is told what happens in a thread."""

    def tracing(self) -> contextlib.AbstractContextManager[None]:
        """Open while TensorFlow traces a function that the program calls, and all that this calls."""

    def traced(self, function: Any) -> None:
        """TensorFlow has traced such a function, or one that it calls, which the program may also call alone: its
        `ConcreteFunction`."""

    def choose(self, function: Any) -> Ours | None:
        """A function with a `switch` is about to be called: what to run in its place."""

    def is_own(self, error: BaseException) -> bool:
        """Whether the recorder is to blame for an error that this has raised."""

    def failed(self, fault: Exception) -> None:
        """One of the above has failed."""


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.onlookers: list[Onlooker | None] = []
        self.depth = 0
        self.outermost: Any = None
        self.inner: list[Any] = []


_of_thread = _OfThread()
_lock = threading.Lock()
_installed = False


@contextlib.contextmanager
def onlooking(onlooker: Onlooker | None) -> Iterator[None]:
    """While the context is open, it is told what this thread does; with `None`, nobody is."""
    _install()
    onlookers = _of_thread.onlookers
    onlookers.append(onlooker)
    try:
        yield
    finally:
        onlookers.pop()


def onlooker_here() -> Onlooker | None:
    """Who is told about this thread."""
    onlookers = _of_thread.onlookers
    return onlookers[-1] if onlookers else None


@contextlib.contextmanager
def calls_noted() -> Iterator[list[Any]]:
    """While the context is open, each `ConcreteFunction` that this thread calls outside of a graph is added to a
    list."""
    called: list[Any] = []
    thread = threading.get_ident()

    def noting(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def call_flat(self: Any, *args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() == thread:
                called.append(self)
            return original(self, *args, **kwargs)

        return call_flat

    with contextlib.ExitStack() as undo:
        replaced(undo, ConcreteFunction, "_call_flat", noting)
        yield called


def _install() -> None:
    """Permanently: where nobody looks on, this does what TensorFlow does."""
    global _installed
    with _lock:
        if not _installed:
            _installed = True
            func_graph.func_graph_from_py_func = _tracing(func_graph.func_graph_from_py_func)
            transform.CONCRETE_FUNCTION_CALLBACKS.append(_traced)


def _tracing(original: Callable[..., Any]) -> Callable[..., Any]:
    @with_stack_space
    def func_graph_from_py_func(*args: Any, **kwargs: Any) -> Any:
        onlooker, here = onlooker_here(), _of_thread
        if onlooker is None or here.depth:
            return original(*args, **kwargs)
        here.depth += 1
        here.inner = []
        try:
            graph = beside(lambda: original(*args, **kwargs), onlooker.tracing, onlooker.failed)
        finally:
            here.depth -= 1
        here.outermost = graph
        return graph

    vars(func_graph_from_py_func).update(vars(original), __wrapped__=original)
    return func_graph_from_py_func


def _traced(function: Any) -> None:
    """Called by TensorFlow with each `ConcreteFunction`."""
    here, onlooker = _of_thread, onlooker_here()
    if onlooker is None:
        return
    if here.depth:
        here.inner.append(function)
        return
    if here.outermost is not function.graph:
        return
    listed, here.inner, here.outermost = [*here.inner, function], [], None
    for each in listed:
        try:
            onlooker.traced(each)
        except faults() as fault:
            onlooker.failed(fault)
