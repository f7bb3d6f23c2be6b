"""Warns about trainings that run without `Session.run`, and so cannot be recorded."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import tensorflow as tf
from tensorflow.python.client import session

from tb_gradflow.trace.protection.beside import Failed
from tb_gradflow.trace.protection.functions import protected
from tb_gradflow.trace.sessions.executions import Execution
from tb_gradflow.trace.sessions.notes import bypassed, notes_of
from tb_gradflow.trace.sessions.runs import Current
from tb_gradflow.trace.sessions.steps_in_runs import steps_in


def install(current: Current, failed: Failed) -> None:
    """Permanently replaces the functions that make something which runs a graph."""
    kind = session.BaseSession

    def replace(name: str, elements: Callable[..., Iterable[Any]]) -> None:
        setattr(kind, name, protected(vars(kind)[name], lambda each: _warning(each, current, elements), failed))

    replace("make_callable", _of_callable)
    replace("_make_callable_from_options", _of_options)


def _of_callable(fetches: Any, feed_list: Any = None, accept_options: bool = False) -> Iterable[Any]:
    return () if feed_list is not None else tf.nest.flatten(fetches)  # which `Session.run` carries out


def _of_options(options: Any) -> Iterable[Any]:
    return [*options.fetch, *options.target]


def _warning(
    original: Callable[..., Any], current: Current, elements: Callable[..., Iterable[Any]]
) -> Callable[..., Any]:
    @functools.wraps(original)
    def make(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = original(self, *args, **kwargs)
        recording = current()
        notes = None if recording is None else notes_of(self._graph, recording)
        if recording is not None and notes is not None:
            found = [self._graph.as_graph_element(each) for each in elements(*args, **kwargs)]
            operations = [each.op if isinstance(each, tf.Tensor) else each for each in found]
            for step in steps_in(Execution(self._graph, targets=operations), notes.requests):
                if step.updates:
                    recording.warn_once(bypassed(notes, step, "make_callable"))
        return made

    return make
