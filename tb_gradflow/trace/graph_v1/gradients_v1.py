"""Builds the gradients of a loss in a copy of its graph, and runs them there."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from tb_gradflow.trace.custom_gradient_checks.probe import PLACES, Probe, probe_of
from tb_gradflow.trace.graph.custom_gradients import OwnGradient
from tb_gradflow.trace.graph.flat_ops import Ref
from tb_gradflow.trace.graph_v1.graph_copy import copied, twin_of
from tb_gradflow.trace.graph_v1.values_v1 import CannotMeasureError, Values
from tb_gradflow.trace.protection.foreign import faults, suppressed

Array = npt.NDArray[Any]


@dataclass(slots=True)
class Built:
    """Gradients in the copy of a graph.

    Attributes:
        twin: The copy.
        loss: The loss in it.
        variables: The gradient of each source; None where `tf.gradients` returns None.
        tensors: The same for tensors on the path.
        probes: The values for comparing custom gradients, by the name of their op.
        error: The exception of `tf.gradients`; None if it did not raise.
        is_partial: Whether gradients were built nevertheless, except those through the ops that raise.
    """

    twin: Any
    loss: Any
    variables: dict[int, Any] = field(default_factory=dict)
    tensors: dict[Ref, Any] = field(default_factory=dict)
    probes: dict[str, Probe] = field(default_factory=dict)
    error: Exception | None = None
    is_partial: bool = False


def build(
    loss: Any,
    sources: Mapping[int, Any],
    on_the_way: Mapping[Ref, Any],
    own: Sequence[OwnGradient],
    raising: Callable[[], Sequence[Any]],
) -> Built:
    """The gradients of `loss` with respect to its variables, tensors on the path, and the results of functions with
    custom gradients. `raising` returns the ops through which no gradient can be requested.
    """
    twin = copied(loss.graph)
    built = Built(twin, twin_of(loss, twin))
    places = [replace(each, op=twin.get_operation_by_name(each.op.name)) for each in own[:PLACES]]
    outputs = [list(each.op.outputs)[: len(each.results)] for each in places]
    asked = [twin_of(tensor, twin) for tensor in (*sources.values(), *on_the_way.values())]
    flat = [tensor for tensors in outputs for tensor in tensors]
    with twin.as_default():
        try:
            # The gradients of tensor arrays in loops look for a name scope with this prefix.
            found = tf.compat.v1.gradients([built.loss], [*asked, *flat], name="gradients_gradflow")
        # No gradient is registered for an op, or a custom gradient function raised.
        except faults() as error:
            built.error = error
            found = _found_in_part(
                built, [*asked, *flat], [twin_of(end, twin) for op in raising() for end in op.outputs]
            )
        dense = [None if each is None else tf.convert_to_tensor(each) for each in found]
        built.variables = dict(zip(sources, dense, strict=False))
        built.tensors = dict(zip(on_the_way, dense[len(sources) :], strict=False))
        arrived = iter(dense[len(asked) :])
        for place, tensors in zip(places, outputs, strict=True):
            built.probes[place.op.name] = probe_of(place, [next(arrived) for _ in tensors])
    return built


def _found_in_part(built: Built, requested: Sequence[Any], ends: Sequence[Any]) -> list[Any]:
    """The gradients that do not pass through `ends`."""
    if ends:
        with suppressed():
            found = tf.compat.v1.gradients([built.loss], requested, name="gradients_gradflow_part", stop_gradients=ends)
            built.is_partial = True
            return list(found)
    return [None] * len(requested)


def run(built: Built, values: Values, fetches: Mapping[str, Any]) -> dict[str, Any]:
    """The values of `fetches`, tensors of the copy, with the user's variables in it. Raises CannotMeasureError if
    TensorFlow cannot run them."""
    with opened(built, values) as session:
        return dict(session.run(dict(fetches), values.fed))


@contextlib.contextmanager
def opened(built: Built, values: Values) -> Iterator[Any]:
    """A session of the copy, in which its variables have their values. Raises CannotMeasureError if TensorFlow cannot
    run the ops.
    """
    with built.twin.as_default():
        given = {name: tf.compat.v1.placeholder(tf.as_dtype(value.dtype)) for name, value in values.variables.items()}
        assigned = [_assign(built.twin.get_operation_by_name(name).outputs[0], each) for name, each in given.items()]
    options = tf.compat.v1.ConfigProto(allow_soft_placement=True)
    options.gpu_options.allow_growth = True
    try:
        with tf.compat.v1.Session(graph=built.twin, config=options) as session:
            session.run(assigned, {tensor: values.variables[name] for name, tensor in given.items()})
            yield session
    except tf.errors.OpError as error:
        said = (error.message.strip().splitlines() or [""])[0]
        raise CannotMeasureError(f"The loss could not be run, so nothing was measured: {said}") from error


def _assign(made: Any, value: Any) -> Any:
    if made.dtype == tf.resource:
        return tf.raw_ops.AssignVariableOp(resource=made, value=value)
    return tf.raw_ops.Assign(ref=made, value=value, validate_shape=False)


def statistics_of(gradient: Array) -> list[float]:
    """The statistics of `record.schema.GRADIENT_STATISTICS`, as `statistics` computes them in a step."""
    values = np.abs(np.asarray(gradient)).astype(np.float64).ravel()
    finite = values[np.isfinite(values)]
    zeros = np.count_nonzero(values == 0) / max(values.size, 1)
    return [
        float(np.linalg.norm(finite)),
        float(np.max(finite, initial=0.0)),
        float(finite.mean()) if finite.size else 0.0,
        float(zeros),
        float(np.count_nonzero(np.isnan(values))),
        float(np.count_nonzero(np.isinf(values))),
    ]


def norms_of(value: Any) -> list[float]:
    """The statistics of `record.schema.VARIABLE_STATISTICS` for a variable that no step has changed."""
    array = np.asarray(value)
    if array.dtype.kind not in "fc" and array.dtype.name != "bfloat16":
        return [float("nan")] * 4
    values = np.abs(array).astype(np.float64)
    nonfinite = float(np.count_nonzero(~np.isfinite(values)))
    return [float(np.linalg.norm(values[np.isfinite(values)])), float("nan"), nonfinite, nonfinite]
