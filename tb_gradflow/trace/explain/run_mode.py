"""How `explain` may run a step: compiled or eagerly."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
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
        compiled: Compiles a function of its arguments, and calls that once.
        eager: The step that runs eagerly.
        args: Its arguments.
        variables: The model's variables.
        name: Its name in a log.
        inputs: The names of its arguments.
        undone: Restores what a run changes.
        terms: Whether the gradient of each term of a loss is measured.
        trains: Whether the step may be trained afterwards: see `experiments.training`.
        descended: What is trained then, if the step has no optimizer: it returns their gradients, in this order, after
            the loss.
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
    trains: bool = False
    descended: Sequence[Any] | None = None


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
        self._inside: list[threading.Thread] = []
        self._eagerly = False
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._in_fork)

    def enter(self) -> None:
        with self._lock:
            if not self._inside:
                self._eagerly = tf.config.functions_run_eagerly()
                tf.config.run_functions_eagerly(False)
            self._inside.append(threading.current_thread())

    def leave(self) -> None:
        with self._lock:
            self._inside.remove(threading.current_thread())
            if not self._inside:
                tf.config.run_functions_eagerly(self._eagerly)

    def _in_fork(self) -> None:
        """In a forked process, which has none of the other threads."""
        self._lock = threading.Lock()
        was_inside, self._inside = self._inside, [each for each in self._inside if each is threading.current_thread()]
        if was_inside and not self._inside:
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
