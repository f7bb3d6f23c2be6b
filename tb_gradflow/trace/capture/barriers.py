"""Ops through which no gradient may be taken, because that raises an error; only in a step that is only measured."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import tensorflow as tf

from tb_gradflow.trace.capture.instruments import Ask, Instrument, Request
from tb_gradflow.trace.graph.differentiable import is_differentiable_dtype
from tb_gradflow.trace.graph.flatten import results_around
from tb_gradflow.trace.graph.variables import raw_variable


class StopsAtBarriers(Instrument):
    """Stops each gradient of a traced step at the results of some ops.

    Args:
        barriers: The names of the flat ops.
    """

    def __init__(self, barriers: Collection[str]) -> None:
        self._barriers = barriers

    def asking(self, request: Request, ask: Ask) -> Ask:
        """For a tape there is no way to say where to stop; `tf.gradients` has one."""
        graph = request.call.flattener.graph

        def stopping(tape: Any, target: Any, sources: Any, grad_ys: Any = None, unconnected: Any = "none") -> Any:
            ends = {tensor.name: tensor for name in self._barriers for tensor in results_around(graph, name)}
            found = tf.gradients(
                tf.nest.flatten(target),
                [raw_variable(source) for source in tf.nest.flatten(sources)],
                None if grad_ys is None else tf.nest.flatten(grad_ys),
                stop_gradients=[tensor for tensor in ends.values() if is_differentiable_dtype(tensor)],
                unconnected_gradients=unconnected,
            )
            return tf.nest.pack_sequence_as(sources, found)

        return stopping if self._barriers else ask
