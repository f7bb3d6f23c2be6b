"""Observes a step while it is traced, and adds an op for whether one of its gradients is not finite."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import record

from tb_gradflow.trace.capture.patches import is_for_xla, watching
from tb_gradflow.trace.capture.symbols import is_of_graph
from tb_gradflow.trace.numerics.finiteness import not_finite
from tb_gradflow.trace.numerics.fusion import recomputed
from tb_gradflow.trace.numerics.loss_scale import ScaledLosses
from tb_gradflow.trace.numerics.op_names import own_names
from tb_gradflow.trace.protection.beside import Failed
from tb_gradflow.trace.protection.functions import faults_go_to
from tb_gradflow.trace.step.recent_batches import OWN_OP
from tb_gradflow.trace.tf_internals.tapes import flat_gradients

# A second run of these would be visible outside of the step, so a step that contains one is never run twice.
_NOT_TWICE = ("PyFunc", "EagerPyFunc", "WriteSummary", "WriteScalarSummary", "WriteHistogramSummary", "Print", "Queue")


class GradientObserver:
    """Observes one traced step, as a collector does.

    Args:
        found: Called in the step's graph each time the step takes gradients, with a bool scalar: whether one of them,
            or the loss, is not finite.
        failed: Called with an exception of the observer itself.
        in_xla: Whether `found` may be called in a part of the step that XLA compiles. XLA writes kept values in every
            step, so there should be few of them.
        before_update: Called in the step's graph before each update of an optimizer.
    """

    leaves_out_xla = False
    only_observes = False

    def __init__(
        self,
        found: Callable[[Any], None],
        failed: Callable[[Exception], None],
        *,
        in_xla: bool = False,
        before_update: Callable[[], None] = lambda: None,
    ) -> None:
        self._in_xla = in_xla
        self._found = found
        self._failed = failed
        self._before_update = before_update
        self._scales = ScaledLosses()

    def knows(self, tensor: Any) -> bool:
        """Whether a tensor belongs to the step."""
        return is_of_graph(tensor)

    def gradient(self, original: Callable[..., Any], tape: Any, target: Any, sources: Any, *rest: Any) -> Any:
        """Replaces `tape.gradient`."""
        answer = original(tape, target, sources, *rest)
        # For the outer tape, the work of an inner tape is forward computation, and the outer tape sees the same values.
        if not record.could_possibly_record() and (self._in_xla or not is_for_xla()):
            with self._own_work(), record.stop_recording():
                self._found(self._wrong(target, [each for each in flat_gradients(answer) if each is not None]))
        return answer

    def jacobian(
        self, original: Callable[[], tuple[Any, Sequence[bool]]], tape: Any, target: Any, sources: Any, *rest: Any
    ) -> Any:
        """Replaces `tape.jacobian` and its like: gradients computed from their results are checked instead."""
        return original()[0]

    def scaled(self, loss: Any, result: Any) -> None:
        """Called when an optimizer multiplies a loss by a scale before it is differentiated."""
        if result is not loss and self.knows(result) and result.op.type == "Mul":
            self._scales.add(result, (loss, result.op.inputs[1]))

    def applying(self, apply: Callable[[], Any], optimizer: Any, given: Sequence[Any], *, divides: bool) -> Any:
        """Runs an optimizer's update."""
        with self._own_work(), record.stop_recording():
            self._before_update()
        return apply()

    def rated(self, optimizer: Any, rate: Any) -> None:
        """Ignored."""

    def entered(self, layer: Any, scope: str) -> None:
        """Ignored."""

    def given(self, layer: Any, value: Any) -> None:
        """Ignored."""

    def returned(self, layer: Any, outputs: Any) -> None:
        """Ignored."""

    def _wrong(self, target: Any, gradients: Sequence[Any]) -> Any:
        targets = [each for each in tf.nest.flatten(target) if isinstance(each, tf.Tensor) and each.dtype.is_floating]
        scaled = self._scales.behind(targets)
        losses = [recomputed(each) for each in targets]
        if scaled is None:
            return not_finite(losses, gradients)
        loss, scale = scaled
        # A scale that is too large produces infinities all the time, and the optimizer skips those steps.
        return not_finite([recomputed(loss)], []) | (not_finite(losses, gradients) & (tf.cast(scale, tf.float32) < 1.0))

    @contextlib.contextmanager
    def _own_work(self) -> Iterator[None]:
        """Keeps errors of the observer away from the user's step, which is traced to its end."""
        try:
            with own_names():
                yield
        except Exception as error:
            self._failed(error)


@contextlib.contextmanager
def observed(observers: Sequence[GradientObserver], failed: Failed) -> Iterator[None]:
    """Observes what is traced while the context is open, one observer per replica; reports faults to `failed`."""
    with faults_go_to(failed), watching(*observers):
        yield


def may_run_twice(graph: Any) -> bool:
    """Whether the step that was traced to `graph` could run twice without side effects."""
    return not any(node.op.startswith(_NOT_TWICE) and OWN_OP not in node.name for node in _nodes_of(graph))


_DRAWING = (
    "Random",
    "StatelessRandom",
    "StatelessTruncated",
    "TruncatedNormal",
    "Stateful",
    "Multinomial",
    "Stateless",
)


def draws_random_numbers(graph: Any) -> bool:
    """Whether the step that was traced to `graph` draws random numbers: under XLA they differ from those without it."""
    return any(node.op.startswith(_DRAWING) and not node.op.startswith(_CALLING) for node in _nodes_of(graph))


# Calls of functions and branches have these attributes too.
_CALLING = ("StatefulPartitionedCall", "StatelessIf", "StatelessWhile", "StatelessCase")


def _nodes_of(graph: Any) -> list[Any]:
    """Includes the graphs of the functions that it calls."""
    graph_def = graph.as_graph_def()
    return [*graph_def.node, *(node for function in graph_def.library.function for node in function.node_def)]
