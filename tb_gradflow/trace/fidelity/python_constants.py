"""Python numbers that are compiled into a step.

TensorFlow runs a step's Python code once, while it traces it, and keeps the values that it finds: the value of
`self.beta`, whatever a callback sets it to later, and the result of `self.calls += 1`. The recorder traces the step
again, later. To train exactly like the user's own step, it restores the values of the first trace, and leaves no change
behind. Flags (bool, None, str) are not changed: a step that creates variables in its first trace would create them
again.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import func_graph

from tb_gradflow.trace.fidelity.object_graph import Place, held, holders, slots
from tb_gradflow.trace.protection.beside import surely
from tb_gradflow.trace.tf_internals.patching import replaced

_GONE = object()


class TracedNumbers:
    """The numbers that a step can reach, as they were when it was first traced.

    Args:
        roots: The step, a function or a method.
    """

    def __init__(self, *roots: Any) -> None:
        self._roots = roots
        self._function: Callable[[], Any] = lambda: None
        # By the enclosing graph: Keras 2 runs the step in a function, and again in a loop of that.
        self._places: dict[str, Sequence[Place]] = {}

    def remember(self) -> None:
        """Called when tracing of the step begins, if other traces must match this one."""
        graph = tf.compat.v1.get_default_graph()
        function = _outermost(graph)
        if self._function() is not function:
            self._function = weakref.ref(function)
            self._places = {}
        try:
            # A function that creates variables is traced a second time, and that trace counts.
            self._places[_kind(graph)] = list(_numbers(self._roots))
        except Exception:  # reading a user's objects may raise; the training must not notice
            self._places = {}

    def leading(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """The step, wrapped so that each trace of it becomes the one that others must match."""

        @functools.wraps(step)
        def run(*args: Any, **kwargs: Any) -> Any:
            self.remember()
            return step(*args, **kwargs)

        return run

    def following(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """The step, wrapped so that each trace of it matches the leading one."""

        @functools.wraps(step)
        def run(*args: Any, **kwargs: Any) -> Any:
            with _put_back(self._places.get(_kind(tf.compat.v1.get_default_graph()), self._first)):
                return step(*args, **kwargs)

        return run

    def following_once(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """The step, wrapped so that its first trace matches the leading one. Then it leads: it is traced for arguments
        of other shapes when the user's own step would be.
        """
        ways = iter([self.following(step)])
        leading = self.leading(step)

        @functools.wraps(step)
        def run(*args: Any, **kwargs: Any) -> Any:
            return next(ways, leading)(*args, **kwargs)

        return run

    def as_traced(self) -> contextlib.AbstractContextManager[None]:
        """While the context is open, the numbers are those of the leading trace; afterwards the current ones again."""
        return _put_back(self._first)

    @property
    def _first(self) -> Sequence[Place]:
        return next(iter(self._places.values()), ())

    @contextlib.contextmanager
    def led(self) -> Iterator[None]:
        """While the context is open, traces are those that others must match. TensorFlow traces a step twice if it
        creates variables, and then runs the second trace.
        """
        depth = 0

        def outermost(original: Callable[..., Any]) -> Callable[..., Any]:
            def traced(*args: Any, **kwargs: Any) -> Any:
                nonlocal depth
                if not depth:
                    self.remember()
                depth += 1
                try:
                    return original(*args, **kwargs)
                finally:
                    depth -= 1

            return traced

        with contextlib.ExitStack() as undo:
            replaced(undo, func_graph, "func_graph_from_py_func", outermost)
            yield


def _outermost(graph: Any) -> Any:
    while isinstance(outer := getattr(graph, "outer_graph", None), func_graph.FuncGraph):
        graph = outer
    return graph


def _kind(graph: Any) -> str:
    """The name of a traced function or loop, without the number that each trace of it has."""
    return str(getattr(graph, "name", "")).rstrip("0123456789_")


@contextlib.contextmanager
def _put_back(places: Sequence[Place]) -> Iterator[None]:
    """While the context is open, places hold their former values; afterwards the current ones again."""
    there = [(place, held(place, _GONE)) for place in places]
    now = [(place, value) for place, value in there if value is not _GONE]
    try:
        for place, _ in now:
            _put(place, place.value)
        yield
    finally:
        for place, value in now:
            surely(_put, place, value)


def _put(place: Place, value: Any) -> None:
    if held(place) is not value:
        with contextlib.suppress(Exception):  # see `TracedNumbers.remember`
            place.put(value)


def _numbers(roots: Sequence[Any]) -> Iterator[Place]:
    for holder, is_own in holders(roots):
        if is_own:
            yield from (place for place in slots(holder) if _is_number(place.value))
            yield from _of_its_class(holder)


def _of_its_class(holder: Any) -> Iterator[Place]:
    """Numbers that an object has from its class, until it gets its own."""
    if not hasattr(holder, "__dict__") or isinstance(holder, type):
        return
    own = vars(holder)
    inherited: dict[str, Any] = {}
    for base in reversed(type(holder).__mro__):
        inherited.update(vars(base))
    for name, value in inherited.items():
        if name not in own and _is_number(value):
            get, put = functools.partial(own.get, name, value), functools.partial(own.__setitem__, name)
            yield Place(f"self.{name}", value, get, put)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) or isinstance(value, (np.number, np.ndarray, tf.__internal__.EagerTensor))
