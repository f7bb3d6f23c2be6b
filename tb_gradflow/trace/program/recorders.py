"""The public recorders, as the hooks use them. Imports Keras, so it is not imported before something trains."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

# As in `tb_gradflow.__getattr__`: Keras 3 draws numbers from `random` while it is imported, and the program's numbers
# must stay the same. So these imports are between the two statements that keep the state.
_state = random.getstate()
from tb_gradflow.trace.callback import GradFlowCallback  # noqa: E402
from tb_gradflow.trace.graph.variables import Variables  # noqa: E402
from tb_gradflow.trace.program.recording import Place, Recording  # noqa: E402
from tb_gradflow.trace.step.instrumented_step import InstrumentedStep, Settings  # noqa: E402
from tb_gradflow.trace.watch import Watched  # noqa: E402
from tb_gradflow.trace.watched_run import WatchedRun  # noqa: E402

random.setstate(_state)


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
