"""How `explain` may run a step: compiled or eagerly."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from tb_gradflow.trace.fidelity.object_graph import Bindings
from tb_gradflow.trace.graph.variables import Variables
from tb_gradflow.trace.step.named_inputs import NameInputs


@dataclass(frozen=True, slots=True)
class Plan:
    """The ways in which a step may be run.

    Attributes:
        traced: The step that TensorFlow traces.
        compiled: Compiles an instrumented version of it and runs that.
        eager: The step that runs eagerly.
        args: Its arguments.
        variables: The model's variables.
        name: Its name in a log.
        inputs: The names of its arguments.
        undone: Restores what a run changes.
        terms: Whether the gradient of each term of a loss is measured.
    """

    traced: Callable[..., Any]
    compiled: Callable[[Callable[..., Any]], Any]
    eager: Callable[..., Any]
    args: tuple[Any, ...]
    variables: Callable[[], Variables]
    name: str
    inputs: NameInputs
    undone: Callable[[], contextlib.AbstractContextManager[Bindings]]
    terms: bool = False


def compiled_once(step: Callable[..., Any]) -> Any:
    """A compiled step that is run only once."""
    function = tf.function(step, autograph=False)
    # Each is traced once, and TensorFlow would warn about repeated tracing.
    function._omit_frequent_tracing_warning = True
    return function


class _Switch:
    """TensorFlow has one switch for all threads: the first one to enter turns it off, and the last one to leave turns
    it back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._eagerly = False

    def enter(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._eagerly = tf.config.functions_run_eagerly()
                tf.config.run_functions_eagerly(False)
            self._inside += 1

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                tf.config.run_functions_eagerly(self._eagerly)


_SWITCH = _Switch()


@contextlib.contextmanager
def functions_compiled() -> Iterator[None]:
    """While the context is open, functions are compiled even if the program runs them eagerly."""
    _SWITCH.enter()
    try:
        yield
    finally:
        _SWITCH.leave()
