"""The public recorders, as the hooks use them. Imports Keras, so it is not imported before something trains."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def _same_random_numbers() -> Iterator[None]:
    """As in `tb_gradflow.__getattr__`: Keras 3 draws numbers from `random` while it is imported, and the program's
    numbers must stay the same."""
    state = random.getstate()
    try:
        yield
    finally:
        random.setstate(state)


with _same_random_numbers():
    from tb_gradflow.trace.callback import GradFlowCallback
    from tb_gradflow.trace.graph.variables import Variables
    from tb_gradflow.trace.program.recording import Place, Recording
    from tb_gradflow.trace.step.instrumented_step import InstrumentedStep
    from tb_gradflow.trace.step.settings import Settings
    from tb_gradflow.trace.watch import Watched
    from tb_gradflow.trace.watched_run import WatchedRun


def watching(recording: Recording, place: Place, function: Any) -> Watched:
    """The replacement of a `tf.function` that is recorded."""
    return Watched(function, WatchedRun(recording.checked(place), compiles=False))


def run_of_loop(recording: Recording, place: Place) -> WatchedRun:
    """The log of an eager loop."""
    return WatchedRun(recording.checked(place), compiles=False)


def step_of_loop(
    recording: Recording, known: Callable[[], Any], on_trace: Callable[..., Any], on_fault: Callable[..., Any]
) -> InstrumentedStep:
    """The recorded steps of an eager loop, which has no function; `known` returns its variables so far."""
    options = recording.options
    settings = Settings(options["tensors"], bool(options["source"]), eager=True, terms=bool(options["terms"]))
    return InstrumentedStep(lambda: None, lambda: Variables(known), settings, on_trace, on_fault=on_fault)


def callback(recording: Recording, place: Place) -> GradFlowCallback:
    """The recorder of each `fit` of one model."""
    return GradFlowCallback(place.log_dir, **recording.options)


def is_recorder(value: Any) -> bool:
    """Whether the program itself records a `fit`."""
    return isinstance(value, GradFlowCallback)
