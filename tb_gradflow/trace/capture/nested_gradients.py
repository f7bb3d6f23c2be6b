"""The gradients of tensors inside functions and branches, which cannot be requested from a tape.

When a gradient passes through a `tf.function` or a `tf.cond`, TensorFlow builds a function that computes it, and
requests only the gradients of the forward function's inputs. While it does so, the tensors on the path are requested
too, and functions that are made from that one measure them.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.ops import gradients_util, while_v2

from tb_gradflow.trace.capture.instruments import Ask, Instrument, Request
from tb_gradflow.trace.graph.differentiable import is_differentiable_dtype
from tb_gradflow.trace.graph.flat_ops import FlatOp, Ref
from tb_gradflow.trace.graph.gradient_call import Answer
from tb_gradflow.trace.numerics.statistics_table import Block, Row
from tb_gradflow.trace.protection.foreign import suppressed
from tb_gradflow.trace.tf_internals.patching import replaced

Places = dict[int, list[tuple[Any, Ref]]]
"""By the id of a function's graph: its tensors, and the flat ops' outputs for them."""


class NestedGradients(Instrument):
    """Looks inside functions and branches, in a step that is run once.

    Not inside loops, where an op has a gradient in each iteration, and the record does not show which was first.

    Functions that compute gradients are built once: a second call of `tape.gradient` through one of them is not
    measured. Functions that XLA compiles are left alone.
    """

    def __init__(self) -> None:
        self._request: Request
        self._places: Places = {}
        self._blocks: list[tuple[Block, list[Ref]]] = []
        self._loops = 0

    def asking(self, request: Request, ask: Ask) -> Ask:
        self._request, self._blocks = request, []
        self._places = _nested_places(request) if request.is_of_step() else {}

        def asking(*args: Any) -> Any:
            with contextlib.ExitStack() as undo:
                replaced(undo, gradients_util, "_GradientsHelper", self._differentiating)
                return ask(*args)

        return asking

    def answered(self, asked: Any) -> None:
        for block, refs in self._blocks:
            block.stack(self._request.scale)
            self._request.rows.append(block)
            for place, ref in enumerate(refs):
                self._request.call.tensors[ref] = Answer("value", Row(block, place))

    def _differentiating(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Replaces the function with which TensorFlow differentiates a function, in the graph that will compute it."""

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
                # A fault of ours costs the measurement, but not the step.
                with suppressed():
                    self._keep(places, answers[len(xs) :])
                return answers[: len(xs)]
            finally:
                self._loops -= in_loop

        return helper

    def _keep(self, places: Sequence[tuple[Any, Ref]], inside: Sequence[Any]) -> None:
        """What has arrived in a function that computes gradients, and where."""
        arrived = [(ref, each) for (_, ref), each in zip(places, inside, strict=True) if each is not None]
        if not arrived:
            return
        symbols = self._request.symbols
        with symbols.own_work():
            block = symbols.block()
            for _, each in arrived:
                block.measure(each)
        self._blocks.append((block, [ref for ref, _ in arrived]))


def _nested_places(request: Request) -> Places:
    """The ops between the sources and the target. For a function that is called twice, it is not known to which of its
    calls a gradient belongs."""
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
