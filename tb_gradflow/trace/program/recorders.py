"""The public recorders, as the hooks use them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tb_gradflow.trace.engine.tracing import Onlooker
from tb_gradflow.trace.graph.variables import Variables
from tb_gradflow.trace.log.watched_run import WatchedRun
from tb_gradflow.trace.program.recording import Place, Recording
from tb_gradflow.trace.step.instrumented_step import InstrumentedStep
from tb_gradflow.trace.step.settings import Settings
from tb_gradflow.trace.watch import Watched

if TYPE_CHECKING:
    from tb_gradflow.trace.callback import GradFlowCallback


def watching(recording: Recording, function: Any, name: str, onlooker: Callable[[Onlooker], Onlooker]) -> Watched:
    """The replacement of a `tf.function`, whose run of this name begins when it takes a gradient. `onlooker` returns
    what looks on in place of the recorder's own."""
    watched = Watched(function, recording.run(name), onlooker)
    recording.keeps(watched)
    return watched


def run_of_loop(recording: Recording, name: str) -> WatchedRun:
    """The log of an eager loop, whose run of this name begins with its first recorded step."""
    run = recording.run(name)
    run.options.cadence.is_eager = True
    return run


def step_of_loop(
    recording: Recording, known: Callable[[], Any], on_trace: Callable[..., Any], on_fault: Callable[..., Any]
) -> InstrumentedStep:
    """The recorded steps of an eager loop, which has no function; `known` returns its variables so far."""
    options = recording.options
    settings = Settings(options["tensors"], bool(options["source"]), terms=bool(options["terms"]))
    return InstrumentedStep(lambda: None, lambda: Variables(known), settings, on_trace, on_fault=on_fault)


def callback(recording: Recording, place: Place) -> GradFlowCallback:
    """The recorder of each `fit` of one model."""
    return _of_keras()(place.log_dir, **recording.options)


def is_recorder(value: Any) -> bool:
    """Whether the program itself records a `fit`."""
    return isinstance(value, _of_keras())


def _of_keras() -> type[GradFlowCallback]:
    """Imports Keras 3, which a program of Keras 2 may not have done: see `tb_gradflow.__getattr__`."""
    state = random.getstate()
    try:
        from tb_gradflow.trace.callback import GradFlowCallback

        return GradFlowCallback
    finally:
        random.setstate(state)
