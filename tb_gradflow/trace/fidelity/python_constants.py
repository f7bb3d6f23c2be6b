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
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import func_graph

from tb_gradflow.trace.fidelity.object_graph import Place, closure, held, holders, slots
from tb_gradflow.trace.fidelity.quiet_prints import without_prints
from tb_gradflow.trace.protection.beside import surely
from tb_gradflow.trace.tf_internals.patching import replaced

_GONE = object()
_ATTRIBUTE = "_tb_gradflow_numbers"


Leaf = tuple[Any, ...]
"""What a trace depends on in an argument: the type and shape of a tensor, or a Python value."""


@dataclass(frozen=True, slots=True)
class _Trace:
    """One trace of the step.

    Attributes:
        kind: Of the enclosing graph: Keras 2 runs the step in a function, and again in a loop of that.
        signature: The arguments; None if they are not known.
        by: The function that was traced.
        places: The numbers.
    """

    kind: str
    signature: tuple[Leaf, ...] | None
    by: object
    places: Sequence[Place]


class TracedNumbers:
    """The numbers that a step can reach, as they were when it was first traced for arguments of each type.

    Args:
        roots: The step, a function or a method.
    """

    def __init__(self, *roots: Any) -> None:
        self._roots = roots
        self._traces: list[_Trace] = []
        self._repeats = 0

    def __deepcopy__(self, memo: Any) -> TracedNumbers:
        return TracedNumbers()

    def __reduce__(self) -> Any:
        return TracedNumbers, ()

    def shared(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """The step, wrapped for one of several functions that train alike: whichever is first traced for arguments of
        some type is traced with the current numbers, as the user's own would be, and the others with the same.
        """
        by = object()

        @functools.wraps(step)
        def run(*args: Any, **kwargs: Any) -> Any:
            with self._alike(by, _signature(args, kwargs)):
                return step(*args, **kwargs)

        return run

    def following(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """The step, wrapped so that each trace of it matches one of another function: the latest, if none was for
        such arguments."""
        by = object()

        @functools.wraps(step)
        def run(*args: Any, **kwargs: Any) -> Any:
            kind, signature = _kind(tf.compat.v1.get_default_graph()), _signature(args, kwargs)
            known = self._found(kind, signature) or next(reversed(self._traces), None)
            places = () if known is None else known.places
            self._keep(_Trace(kind, signature, by, places))
            with _once_more(places):
                return step(*args, **kwargs)

        return run

    @contextlib.contextmanager
    def repeating(self) -> Iterator[None]:
        """While the context is open, a function that is traced once more matches its former trace."""
        self._repeats += 1
        try:
            yield
        finally:
            self._repeats -= 1

    def as_traced(self) -> contextlib.AbstractContextManager[None]:
        """The context for a training function that contains the step: it is traced with the numbers of the first trace,
        or is that itself."""
        if self._traces:
            return _put_back(self._traces[0].places)
        self._keep(_Trace("", None, self, self._now()))
        return contextlib.nullcontext()

    @contextlib.contextmanager
    def matched(self) -> Iterator[None]:
        """The same for a training function in which the step is a compiled function, as in Keras 3: each trace of that
        is alike. The training function leads where it is traced first."""
        opened: list[tuple[Leaf, ...]] = []

        def matching(original: Callable[..., Any]) -> Callable[..., Any]:
            def traced(*given: Any, **named: Any) -> Any:
                signature = _of_graph(*given, **named)
                is_inner = signature in opened
                opened.append(signature)
                try:
                    with contextlib.nullcontext() if is_inner else self._alike(self, signature):
                        return original(*given, **named)
                finally:
                    opened.pop()

            return traced

        with contextlib.ExitStack() as undo:
            replaced(undo, func_graph, "func_graph_from_py_func", matching)
            yield

    @contextlib.contextmanager
    def led(self) -> Iterator[None]:
        """While the context is open, traces of the user's own function are some that others must match. TensorFlow
        traces a step twice if it creates variables, and then runs the second trace.
        """
        depth = 0

        def outermost(original: Callable[..., Any]) -> Callable[..., Any]:
            def traced(*given: Any, **named: Any) -> Any:
                nonlocal depth
                # The graph is not open yet; its functions have the same names as those that match them.
                alike = contextlib.nullcontext() if depth else self._alike(self, _of_graph(*given, **named))
                depth += 1
                try:
                    with alike:
                        return original(*given, **named)
                finally:
                    depth -= 1

            return traced

        with contextlib.ExitStack() as undo:
            replaced(undo, func_graph, "func_graph_from_py_func", outermost)
            yield

    def _alike(self, by: object, signature: tuple[Leaf, ...]) -> contextlib.AbstractContextManager[None]:
        """The context for a trace by a function: with the numbers of another one's, if there is one."""
        kind = _kind(tf.compat.v1.get_default_graph())
        known = self._found(kind, signature)
        if known is not None and (self._repeats or known.by is not by):
            return _once_more(known.places)
        # A function that creates variables is traced a second time, and that trace counts.
        self._keep(_Trace(kind, signature, by, self._now()))
        return contextlib.nullcontext()

    def _now(self) -> Sequence[Place]:
        try:
            return list(_numbers(self._roots))
        except Exception:  # reading a user's objects may raise; the training must not notice
            return ()

    def _found(self, kind: str, signature: tuple[Leaf, ...]) -> _Trace | None:
        """A trace that runs for these arguments."""
        fitting = [each for each in self._traces if _covers(each.signature, signature)]
        here = [each for each in fitting if each.kind == kind]
        return next((each for each in here if each.signature == signature), None) or next(iter(here or fitting), None)

    def _keep(self, trace: _Trace) -> None:
        for number, each in enumerate(self._traces):
            if (each.kind, each.signature) == (trace.kind, trace.signature):
                self._traces[number] = trace
                return
        self._traces.append(trace)


def numbers_of(function: Any, step: Any) -> TracedNumbers:
    """The numbers that `step` was traced with for a compiled training function: the same for all recorders of it."""
    kept = getattr(function, "__dict__", {})
    if not isinstance(kept.get(_ATTRIBUTE), TracedNumbers):
        kept[_ATTRIBUTE] = TracedNumbers(step)
    found: TracedNumbers = kept[_ATTRIBUTE]
    return found


def _signature(args: Any, kwargs: Any) -> tuple[Leaf, ...]:
    try:
        flat = tf.nest.flatten((args, kwargs), expand_composites=True)
    except Exception:  # a dictionary whose keys cannot be sorted; the training must not notice
        return ()
    return tuple(filter(None, map(_leaf, flat)))


def _of_graph(
    name: Any = None, python_func: Any = None, args: Any = (), kwargs: Any = None, *_: Any, **__: Any
) -> tuple[Leaf, ...]:
    """The signature of a function, from the arguments of `func_graph_from_py_func`."""
    return _signature(args, kwargs or {})


def _leaf(value: Any) -> Leaf:
    if isinstance(value, (tf.Tensor, tf.TensorSpec)):
        return value.dtype.name, None if value.shape.rank is None else tuple(value.shape.as_list())
    # Of other objects, such as `self`, a method and a function that calls it do not get the same.
    return (value,) if value is None or isinstance(value, (bool, int, float, str, bytes)) else ()


def _covers(general: tuple[Leaf, ...] | None, special: tuple[Leaf, ...]) -> bool:
    """Whether a function that was traced for the first arguments also runs for the others."""
    if general is None:
        return True
    return len(general) == len(special) and all(map(_takes, general, special))


def _takes(general: Leaf, special: Leaf) -> bool:
    if len(general) == len(special) == 2 and general[0] == special[0]:
        return bool(tf.TensorShape(special[1]).is_subtype_of(tf.TensorShape(general[1])))
    return general == special


def _kind(graph: Any) -> str:
    """The name of a traced function or loop, without the number that each trace of it has."""
    return str(getattr(graph, "name", "")).rstrip("0123456789_")


@contextlib.contextmanager
def _once_more(places: Sequence[Place]) -> Iterator[None]:
    """The context for a trace that the user's program does not have."""
    with _put_back(places), without_prints():
        yield


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
    for holder, is_own in holders([each for root in roots for each in _reached(root)]):
        if is_own:
            yield from (place for place in slots(holder) if _is_number(place.value))
            yield from _of_its_class(holder)


def _reached(root: Any) -> Iterator[Any]:
    """The objects with which a step runs: of a `tf.function` that is a method, TensorFlow keeps the object weakly."""
    yield root
    if isinstance(root, functools.partial):
        yield from root.args
        yield from root.keywords.values()
        yield from _reached(root.func)
    elif isinstance(root, types.FunctionType):
        for each in closure(root):
            target = each.value() if isinstance(each.value, weakref.ref) else None
            if target is not None and target is not root:
                yield target
    elif not isinstance(root, types.MethodType) and isinstance(type(root).__call__, types.FunctionType):
        yield type(root).__call__


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
