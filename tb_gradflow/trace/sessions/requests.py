"""The gradients that a program requests in a `tf.compat.v1` graph, noted while TensorFlow builds them.

`minimize`, `compute_gradients` and `tf.gradients` all call one function of TensorFlow. It builds the gradient of each
tensor between loss and variables, and these tensors are what a recorded step fetches later: nothing is added to the
graph.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import composite_tensor
from tensorflow.python.ops import gradients_util

from tb_gradflow.trace.graph_v1.variables_v1 import source_of
from tb_gradflow.trace.protection.beside import Failed
from tb_gradflow.trace.protection.functions import protected
from tb_gradflow.trace.source.frames import Frame, stack_now


@dataclass(frozen=True, slots=True)
class OpGradients:
    """The gradients around one op.

    Attributes:
        arriving: The gradient of each output.
        passed: What its gradient function returned, for each input; `None` where nothing is propagated.
    """

    arriving: tuple[Any, ...]
    passed: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Request:
    """One gradient that the program has requested.

    Attributes:
        targets: The tensors that are differentiated.
        weights: For each target the gradient that it starts with; `None` for ones.
        sources: What the gradient is requested for: handles or references of variables, or tensors.
        answers: The gradient of each source: a tensor, `IndexedSlices`, or `None`.
        frames: The stack at the request.
        zeros: Whether zeros stand for a missing gradient.
        first: The first id of an op that was created for it.
        last: The last one.
        ops: The ops on the path, by name.
    """

    targets: tuple[Any, ...]
    weights: tuple[Any, ...]
    sources: tuple[Any, ...]
    answers: tuple[Any, ...]
    frames: Sequence[Frame]
    zeros: bool
    first: int
    last: int
    ops: Mapping[str, OpGradients]

    def has_made(self, op: Any) -> bool:
        """Whether an op belongs to the gradient."""
        return bool(self.first <= op._id <= self.last)

    def results(self) -> list[Any]:
        """The tensors that the gradients of the sources consist of."""
        return [part for answer in self.answers if answer is not None for part in parts_of(answer)]


def parts_of(gradient: Any) -> tuple[Any, ...]:
    """The tensors of a dense or sparse gradient."""
    return (gradient.values, gradient.indices) if isinstance(gradient, tf.IndexedSlices) else (gradient,)


class _OfThread(threading.local):
    open: _Open | None = None


class _Open:
    """A request that TensorFlow is working on."""

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self.ops: dict[str, OpGradients] = {}


_of_thread = _OfThread()

Noted = Callable[[Any, Request], None]
"""Called with a graph and a request in it."""


def install(is_recording: Callable[[], bool], noted: Noted, failed: Failed) -> None:
    """Permanently replaces the functions of TensorFlow that build a gradient in a graph."""
    helper, log = vars(gradients_util)["_GradientsHelper"], vars(gradients_util)["_LogOpGradients"]
    gradients_util._GradientsHelper = protected(helper, lambda each: _noting(each, is_recording, noted), failed)
    gradients_util._LogOpGradients = protected(log, _following, failed)


def _noting(original: Callable[..., Any], is_recording: Callable[[], bool], noted: Noted) -> Callable[..., Any]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def helper(*args: Any, **kwargs: Any) -> Any:
        graph = tf.compat.v1.get_default_graph()
        # A gradient that is built for another one is a part of that.
        if _of_thread.open is not None or tf.executing_eagerly() or graph.building_function or not is_recording():
            return original(*args, **kwargs)
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        if any(map(_is_composite, (*_listed(given.arguments["ys"]), *_listed(given.arguments["xs"])))):
            return original(*args, **kwargs)  # which calls this function again, with their tensors
        frames, first = stack_now(), _last_id(graph) + 1
        opened = _of_thread.open = _Open(graph)
        try:
            answers = original(*args, **kwargs)
        finally:
            _of_thread.open = None
        targets = _listed(given.arguments["ys"])
        weights = _listed(given.arguments["grad_ys"]) if given.arguments["grad_ys"] is not None else []
        if all(isinstance(each, tf.Tensor) for each in targets):
            request = Request(
                targets=tuple(targets),
                weights=(*weights, *[None] * (len(targets) - len(weights))),
                sources=tuple(map(source_of, _listed(given.arguments["xs"]))),
                answers=tuple(answers),
                frames=frames,
                zeros=given.arguments["unconnected_gradients"] in _ZERO,
                first=first,
                last=_last_id(graph),
                ops=opened.ops,
            )
            noted(graph, request)
        return answers

    return helper


_ZERO = (tf.UnconnectedGradients.ZERO, tf.UnconnectedGradients.ZERO.value)


def _following(original: Callable[..., Any]) -> Callable[..., Any]:
    """Keeps what TensorFlow reports after it has called the gradient function of an op."""

    @functools.wraps(original)
    def follow(op: Any, out_grads: Any, in_grads: Any) -> Any:
        opened = _of_thread.open
        if opened is not None and op.graph is opened.graph:
            opened.ops[op.name] = OpGradients(tuple(map(_gradient, out_grads)), tuple(map(_gradient, in_grads)))
        return original(op, out_grads, in_grads)

    return follow


def _gradient(value: Any) -> Any:
    """A gradient; `None` for what TensorFlow takes for none."""
    return value if isinstance(value, (tf.Tensor, tf.IndexedSlices)) else None


def _listed(value: Any) -> Sequence[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _is_composite(value: Any) -> bool:
    return isinstance(value, composite_tensor.CompositeTensor) and not isinstance(value, tf.Variable)


def _last_id(graph: Any) -> int:
    operations = graph.get_operations()
    return int(operations[-1]._id) if operations else -1
