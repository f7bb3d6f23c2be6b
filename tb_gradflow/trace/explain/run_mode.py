"""How `explain` may run a step: compiled or eagerly."""

from __future__ import annotations

import contextlib
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


@contextlib.contextmanager
def functions_compiled() -> Iterator[None]:
    """While the context is open, functions are compiled even if the program runs them eagerly."""
    eagerly = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(False)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(eagerly)
