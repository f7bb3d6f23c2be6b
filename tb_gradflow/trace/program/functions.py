"""Records each `tf.function` that takes a gradient, like `watch`, when the program calls it."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import polymorphic_function
from tensorflow.python.util import traceback_utils

from tb_gradflow.trace.engine.tracing import Onlooker, onlooker_here
from tb_gradflow.trace.program import eager_loops, hooks
from tb_gradflow.trace.program.recording import Recording, keep_with, kept_with
from tb_gradflow.trace.protection.attention import is_left_alone
from tb_gradflow.trace.protection.faults import report
from tb_gradflow.trace.protection.functions import chosen, protected
from tb_gradflow.trace.protection.substitutes import Ours
from tb_gradflow.trace.source.user_line import name_of_line
from tb_gradflow.trace.tf_internals.tapes import REQUESTS
from tb_gradflow.trace.watch import Watched

_LIBRARIES = frozenset({"tensorflow", "keras", "tf_keras", "numpy", "tb_gradflow", "builtins"})


def install() -> None:
    """Permanently replaces the functions that call a `tf.function`, or take a gradient."""
    kind = polymorphic_function.Function
    original = vars(kind)["__call__"]
    kind.__call__ = chosen(original, functools.partial(_chosen, original), report)
    kind.__getstate__ = protected(vars(kind)["__getstate__"], _without_kept, report)
    for name in REQUESTS:
        own = vars(tf.GradientTape)[name]
        setattr(tf.GradientTape, name, chosen(own, functools.partial(_taking, name, _taken(own)), report))


def is_recorded_by_its_author() -> None:
    """Called when the program has called `summary.gradients`."""
    trainer = onlooker_here()
    if isinstance(trainer, Trainer):
        trainer.leaves_alone()


class Trainer:
    """What looks on while a function is traced and called that may take a gradient: see `engine.tracing.Onlooker`.

    Args:
        steps: Looks on in its place.
        leave_alone: Called if the program records the function itself.
    """

    def __init__(self, steps: Onlooker, leave_alone: Callable[[], None]) -> None:
        self._steps = steps
        self._leave_alone = leave_alone
        self._is_left_alone = False
        self._waiting: contextlib.ExitStack | None = None
        self.is_own, self.failed = steps.is_own, steps.failed

    @contextlib.contextmanager
    def tracing(self) -> Iterator[None]:
        with contextlib.ExitStack() as opened:
            if eager_loops.is_open():
                self._waiting = opened  # a function without gradients is a part of that step
            else:
                opened.enter_context(self._steps.tracing())
            try:
                yield
            finally:
                self._waiting = None

    def traced(self, function: Any) -> None:
        self._steps.traced(function)

    def choose(self, function: Any) -> Ours | None:
        eager_loops.close()  # it takes a gradient
        return None if self._is_left_alone else self._steps.choose(function)

    def leaves_alone(self) -> None:
        """The program records the function itself."""
        self._is_left_alone = True
        self._leave_alone()

    def takes_a_gradient(self) -> bool:
        """Called before a gradient is requested. Whether from now on more is observed than before."""
        waiting, self._waiting = self._waiting, None
        if waiting is None:
            return False
        eager_loops.close()
        waiting.enter_context(self._steps.tracing())
        return True


def _taking(name: str, take: Callable[..., Any], *_: Any, **__: Any) -> Callable[..., Any]:
    """Chooses how a gradient is taken."""
    trainer = onlooker_here()
    begins = isinstance(trainer, Trainer) and trainer.takes_a_gradient()
    return getattr(tf.GradientTape, name) if begins else take


def _taken(original: Callable[..., Any]) -> Callable[..., Any]:
    def take(*args: Any, **kwargs: Any) -> Any:
        with eager_loops.taking_gradient():
            return original(*args, **kwargs)

    return take


def _chosen(original: Callable[..., Any], function: Any, *_: Any, **__: Any) -> Callable[..., Any]:
    """Chooses how a `tf.function` is called."""
    recording = hooks.current()
    if recording is None or is_left_alone() or not tf.executing_eagerly() or eager_loops.is_part_of_a_step():
        return original
    kept = kept_with(function, recording) or keep_with(function, recording, _watched(recording, function))
    if kept.value is None:
        return original
    watched = kept.value
    return lambda _, /, *args, **kwargs: watched(*args, **kwargs)


def _watched(recording: Recording, function: Any) -> Any:
    """The replacement of a function; `None` if it is left alone."""
    plain = _taken_apart(function.python_function)
    if str(getattr(plain, "__module__", "")).partition(".")[0] in _LIBRARIES:
        return None

    def leave_alone() -> None:
        watched.discard()
        keep_with(function, recording, None)

    name = name_of(function.python_function)
    watched = Watched(function, recording.run(name), lambda steps: Trainer(steps, leave_alone))
    # An exception has the traceback that TensorFlow gives those of a `tf.function`.
    return traceback_utils.filter_traceback(watched)


def name_of(function: Any) -> str:
    """The name that its author uses; for a lambda, the line that contains it."""
    plain = _taken_apart(function)
    name = str(getattr(plain, "__name__", type(plain).__name__))
    if name != "<lambda>":
        return name
    return name_of_line(plain.__code__.co_filename, plain.__code__.co_firstlineno)


def _taken_apart(function: Any) -> Any:
    """The Python function in a method, a partial function or a decorated one."""
    plain = inspect.unwrap(function)
    while isinstance(plain, functools.partial):
        plain = inspect.unwrap(plain.func)
    return getattr(plain, "__func__", plain)


def _without_kept(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def getstate(self: Any) -> Any:
        state = original(self)
        state.pop("_tb_gradflow_kept", None)
        return state

    return getstate
