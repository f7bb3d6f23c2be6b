"""Functions of TensorFlow and Keras that the recorder replaces while it observes a step. A replacement may do more than
the original. It is called in the middle of the user's step, where nothing can be started again: so if anything fails in
it, the original is still called exactly once, and the caller gets its result or exception.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from tb_gradflow.trace.protection.beside import Failed
from tb_gradflow.trace.protection.foreign import faults

Given = Callable[[tuple[Any, ...]], tuple[Any, ...]]
"""Turns the arguments of a call into arguments that can be used more than once."""

Part = Callable[[tuple[Any, ...], dict[str, Any], "Called"], Any]
"""What a call of the original returned, as the call returns it that it stands for; with the latter's arguments."""


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.calls: list[Called] = []
        self.hearers: list[Failed] = []


_of_thread = _OfThread()


@contextlib.contextmanager
def faults_go_to(failed: Failed) -> Iterator[None]:
    """While the context is open, faults of this thread's replacements are reported there. Another thread may close
    it."""
    hearers = _of_thread.hearers
    hearers.append(failed)
    try:
        yield
    finally:
        hearers.remove(failed)


def hearer_of_faults() -> Failed:
    """The current receiver of faults. If there is none, faults are raised, because no training is running."""
    return _of_thread.hearers[-1] if _of_thread.hearers else _raised


def _raised(fault: Exception) -> None:
    raise fault


class Use:
    """Whether a replacement is in use. A library that has wrapped it meanwhile goes on to call it.

    Attributes:
        is_over: Whether it must do what the original does.
    """

    is_over = False


class Called:
    """One call of a replacement, and the results of the original in it.

    Attributes:
        of: The replacement.
        args: The arguments of the last call of the original.
        results: The values that it has returned.
        error: The exception that it raised; `None` if it has not.
    """

    def __init__(self, of: object) -> None:
        self.of = of
        self.args: tuple[Any, ...] = ()
        self.results: list[Any] = []
        self.error: BaseException | None = None


def protected(
    original: Callable[..., Any],
    wrap: Callable[[Any], Any],
    failed: Failed,
    given: Given | None = None,
    part: Part | None = None,
    use: Use | None = None,
) -> Any:
    """`wrap(original)`, whose faults do not reach its caller; `original` once its use is over."""
    token = object()

    def noted(*args: Any, **kwargs: Any) -> Any:
        calls = _of_thread.calls
        if not calls or calls[-1].of is not token:  # called later, through something that was returned
            return original(*args, **kwargs)
        call = calls[-1]
        call.args = args
        # Calls that the original makes are separate calls.
        _of_thread.calls = []
        try:
            result = original(*args, **kwargs)
        except BaseException as error:
            call.error = error
            raise
        finally:
            _of_thread.calls = calls
        call.results.append(result)
        return result

    called = _like(noted, original)
    ours = wrap(called if isinstance(original, types.FunctionType) else Delegate(called, original))

    def stand_in(*args: Any, **kwargs: Any) -> Any:
        if use is not None and use.is_over:
            return original(*args, **kwargs)
        call, calls = Called(token), _of_thread.calls
        calls.append(call)
        try:
            args = args if given is None else given(args)
            return ours(*args, **kwargs)
        except faults() as fault:
            if fault is call.error:
                raise
            failed(fault)
            if call.results:
                return call.results[-1] if part is None else part(args, kwargs, call)
            if call.error is not None:
                raise call.error from None
        finally:
            calls.pop()
        return original(*args, **kwargs)

    made = _like(stand_in, original)
    return made if isinstance(ours, types.FunctionType) else Delegate(made, ours)


def chosen(original: Callable[..., Any], choose: Callable[..., Callable[..., Any]], failed: Failed) -> Any:
    """Returns a function that calls what `choose` returns for the arguments, or the original if `choose` fails.
    Exceptions of the called function reach the caller."""

    def stand_in(*args: Any, **kwargs: Any) -> Any:
        run = original
        try:
            run = choose(*args, **kwargs)
        except faults() as fault:
            failed(fault)
        return run(*args, **kwargs)

    return _like(stand_in, original)


class Delegate:
    """Replaces a callable that is more than a function: those of NumPy have methods.

    Args:
        call: What it does.
        of: The callable.
    """

    def __init__(self, call: Callable[..., Any], of: Any) -> None:
        functools.update_wrapper(self, call, updated=())
        self._call = call
        self._of = of

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "_of":  # of an object that a copy makes without `__init__`
            raise AttributeError(name)
        return getattr(self._of, name)

    def __copy__(self) -> Any:
        return copy.copy(self._of)

    def __deepcopy__(self, memo: Any) -> Any:
        return copy.deepcopy(self._of, memo)  # a method of a generator takes a copy of that with it

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._of.__reduce_ex__(protocol)

    def __eq__(self, other: object) -> bool:
        return bool(self._of == (other._of if isinstance(other, Delegate) else other))

    def __hash__(self) -> int:
        return hash(self._of)


def _like(function: Any, original: Any) -> Any:
    functools.update_wrapper(function, original, updated=())
    return function


def raising(error: Callable[[], BaseException]) -> Callable[..., Any]:
    """A function that raises."""

    def call(*_: Any, **__: Any) -> Any:
        raise error()

    return call


def preceded(function: Callable[..., Any], action: Callable[[], None]) -> Callable[..., Any]:
    """The function, after an action that raises nothing."""

    def call(*args: Any, **kwargs: Any) -> Any:
        action()
        return function(*args, **kwargs)

    return call


def in_step(function: Callable[..., Any], answer: Any, failed: Failed) -> Callable[..., Any]:
    """A function that TensorFlow calls in a running step, as an op or after each op. It returns `answer`, even if it
    fails.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            function(*args, **kwargs)
        except faults() as fault:
            failed(fault)
        return answer

    return call


def held_weakly(function: Callable[..., Any], otherwise: Any) -> Callable[..., Any]:
    """The same function for `tf.numpy_function`, which returns `otherwise` when the function is gone.

    TensorFlow keeps every function that a graph calls until the program ends. So it must not keep what the function
    refers to: the graph and the variables of a model that the program has replaced.
    """
    known = weakref.ref(function)

    def call(*values: Any) -> Any:
        there = known()
        return otherwise if there is None else there(*values)

    return call
