"""The gradient of tensors inside of functions and branches, which no tape can be asked for.

Where a gradient passes through a `tf.function` or a `tf.cond`, TensorFlow builds a function that computes it, and asks
for no more than what goes into the forward one. While it does so, the tensors on the way are asked for too, and their
statistics are left where the step can read them afterwards.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.ops import gradients_util, while_v2

from tb_gradflow.trace.capture.instruments import Ask, Instrument, Reading, Request
from tb_gradflow.trace.graph.differentiable import is_differentiable_dtype
from tb_gradflow.trace.graph.flat_ops import FlatOp, Ref
from tb_gradflow.trace.graph.gradient_call import Answer
from tb_gradflow.trace.numerics.statistics import GRADIENT_COLUMNS, gradient_statistics
from tb_gradflow.trace.tf_internals.patching import replaced
from tb_gradflow.trace.tf_internals.resource_cells import Sink

Places = dict[int, list[tuple[Any, Ref]]]
"""By the id of a function's graph: tensors in there, and the flat ops' outputs that they are."""


class Inside:
    """What one call of `tape.gradient` goes through.

    Args:
        places: What to ask for.
    """

    def __init__(self, places: Places) -> None:
        self._places = places
        self._found: list[tuple[Sink, list[Ref]]] = []
        self._loops = 0

    def differentiating(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Stands in for what TensorFlow differentiates a function with, in the graph that is to compute it."""

        @functools.wraps(original)
        def helper(ys: Any, xs: Any, *args: Any, src_graph: Any = None, **options: Any) -> Any:
            in_loop = isinstance(tf.compat.v1.get_default_graph(), while_v2._WhileBodyGradFuncGraph)
            self._loops += in_loop
            try:
                ends = {id(each) for each in (*tf.nest.flatten(ys), *tf.nest.flatten(xs))}
                places = [place for place in self._places.get(id(src_graph), ()) if id(place[0]) not in ends]
                if not places or self._loops:
                    return original(ys, xs, *args, src_graph=src_graph, **options)
                wanted = [*xs, *(tensor for tensor, _ in places)]
                answers = original(ys, wanted, *args, src_graph=src_graph, **options)
                # A fault of ours costs the measurement, and not the step.
                with contextlib.suppress(Exception):
                    return self._kept(places, answers[len(xs) :], answers[: len(xs)])
                return answers[: len(xs)]
            finally:
                self._loops -= in_loop

        return helper

    def _kept(self, places: Sequence[tuple[Any, Ref]], inside: Sequence[Any], own: list[Any]) -> list[Any]:
        """The function's own gradients, none of them there before the statistics of those inside are kept."""
        arrived = [(ref, each) for (_, ref), each in zip(places, inside, strict=True) if each is not None]
        if not arrived:
            return own
        sink = Sink((len(arrived), GRADIENT_COLUMNS))
        kept = sink.write(tf.stack([gradient_statistics(each) for _, each in arrived]))
        self._found.append((sink, [ref for ref, _ in arrived]))
        with tf.control_dependencies([kept]):
            return [tf.identity(each) if isinstance(each, tf.Tensor) else each for each in own]

    def rows(self) -> Iterator[tuple[Ref, Any]]:
        """In the step, once the gradient is there: where something arrived, and its statistics."""
        for sink, refs in self._found:
            yield from zip(refs, tf.unstack(sink.take()), strict=True)


class NestedGradients(Instrument):
    """Looks inside of functions and branches, in a step that is run once.

    Not of loops, where an op has a gradient in each round, and which of them was first the record does not tell.

    Functions that compute gradients are built once: of a second call of `tape.gradient` that goes through one of
    them nothing is told. XLA's own are left alone.
    """

    def reading(self, request: Request) -> Reading:
        return _Nested(request)


class _Nested(Reading):
    def __init__(self, request: Request) -> None:
        self._request = request
        self._inside = Inside(_nested_places(request) if request.is_of_step() else {})

    def asking(self, ask: Ask) -> Ask:
        def asking(*args: Any) -> Any:
            with contextlib.ExitStack() as undo:
                replaced(undo, gradients_util, "_GradientsHelper", self._inside.differentiating)
                return ask(*args)

        return asking

    def answered(self, asked: Any) -> None:
        call = self._request.call
        for ref, statistics in self._inside.rows():
            call.tensors[ref] = Answer("value", call.rows.add(statistics))
        call.rows.stack(self._request.scale)


def _nested_places(request: Request) -> Places:
    """What lies between the sources and the target. Of a function that is called twice nobody could tell apart which of
    its calls a gradient belongs to."""
    found: dict[tuple[int, str], list[tuple[Any, Ref]]] = {}
    for index in sorted(request.between()):
        flat = request.call.flattener.ops[index]
        for number, tensor in enumerate(flat.tensors if _is_open(flat) else ()):
            if isinstance(tensor, tf.Tensor) and _has_gradient(tensor):
                found.setdefault((id(tensor.graph), tensor.name), []).append((tensor, Ref(index, number)))
    places: Places = {}
    for (graph, _), calls in found.items():
        if len(calls) == 1:
            places.setdefault(graph, []).extend(calls)
    return places


def _is_open(flat: FlatOp) -> bool:
    return flat.nested and not flat.compiled and not flat.backward and flat.writes is None


def _has_gradient(tensor: Any) -> bool:
    return is_differentiable_dtype(tensor) and tensor.dtype not in (tf.resource, tf.variant)
