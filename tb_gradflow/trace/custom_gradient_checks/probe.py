"""The values that a step must return so that a custom gradient can be compared with the derivative.

Everything here is symbolic: the gradient function is called twice more in the step's own graph, and the inputs of its
forward computation become outputs of the step. `comparison` does the comparing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from tb_gradflow.record.schema import InputCheck
from tb_gradflow.trace.custom_gradient_checks.subgraph import CannotCutError, Part, cut_out
from tb_gradflow.trace.graph.custom_gradients import OwnGradient
from tb_gradflow.trace.graph.differentiable import is_differentiable_dtype, shape_of
from tb_gradflow.trace.protection.foreign import faults

# A power of two, so that a linear function returns exactly the same digits; small, so that clipping does not apply;
# negative, because some functions depend on the sign.
SMALL_FACTOR = -1.0 / 1024

# In one step, at most this many calls of one gradient function are checked: if it is right there, it is right
# elsewhere.
PLACES_OF_ONE = 4
PLACES = 32

# The prefix of `problem` for a function that raised.
RAISED = "it raises"

# Larger values are not returned from the step.
_LARGEST = 50_000_000


@dataclass(slots=True)
class Probe:
    """One op with a custom gradient.

    Attributes:
        own: The op.
        part: Its forward computation; None if that cannot run separately.
        slots: For each argument of the part, the indices of the op's inputs that it feeds.
        upstream: The gradient of each result; None if there is none.
        returned: For each argument, the output of the gradient function, summed over its slots; None if there is none.
        answered: The same for an upstream gradient that is smaller by `SMALL_FACTOR`.
        problem: Why there is nothing to compare, or what the gradient function raised; empty if neither happened.
        wrong_shapes: The inputs whose gradient cannot have their shape, whatever the values are.
    """

    own: OwnGradient
    part: Part | None = None
    slots: list[tuple[int, ...]] = field(default_factory=list)
    upstream: list[Any] = field(default_factory=list)
    returned: list[Any] = field(default_factory=list)
    answered: list[Any] = field(default_factory=list)
    problem: str = ""
    wrong_shapes: tuple[InputCheck, ...] = ()

    @property
    def fetches(self) -> dict[str, list[Any]]:
        """Tensors of the step whose values the comparison needs."""
        if self.part is None:
            return {}
        groups = {"upstream": self.upstream, "returned": self.returned, "answered": self.answered}
        present = {name: [each for each in tensors if each is not None] for name, tensors in groups.items()}
        return {"fed": list(self.part.fed), "results": list(self.part.results), **present}

    def take(self, part: Part, upstream: Sequence[Any], returned: Sequence[Any], answered: Sequence[Any]) -> None:
        """What the gradient function got for each result, and what it returned for each input, for this gradient and
        for the smaller one. The inputs that feed each argument are known by now."""
        first = self.own.result_count or 0
        self.upstream = [tf.convert_to_tensor(each) if each.dtype.is_floating else None for each in upstream]
        self.returned = [_summed([returned[slot - first] for slot in slots]) for slots in self.slots]
        self.answered = [_summed([answered[slot - first] for slot in slots]) for slots in self.slots]
        self.part = part


def probe_of(own: OwnGradient, upstream: Sequence[Any]) -> Probe:
    """Prepares the comparison for an op whose results have the gradients `upstream`, None where none arrived.

    Creates ops in the default graph, which must be the op's own.
    """
    probe = Probe(own)
    try:
        _prepare(probe, upstream)
    except CannotCutError as reason:
        probe.part, probe.problem = None, str(reason)
    # The user's function may raise anything, and the report contains what it raised.
    except faults() as error:
        probe.part, probe.problem = None, raised_by(error)
    return probe


def raised_by(error: Exception) -> str:
    """The problem of a gradient function that has raised something."""
    first = (str(error).strip().splitlines() or [""])[0]
    return f"{RAISED} {type(error).__name__}: {first}"


def _prepare(probe: Probe, upstream: Sequence[Any]) -> None:
    results = probe.own.results
    full = [
        tf.convert_to_tensor(gradient) if gradient is not None else tf.zeros_like(result)
        for gradient, result in zip(upstream, results, strict=True)
    ]
    returned = probe.own.returned(full)
    probe.wrong_shapes = tuple(_wrong_shapes(probe.own, returned))
    if all(gradient is None for gradient in upstream):
        return
    part, probe.slots = part_of(probe.own)
    answered = probe.own.returned([smaller(each) for each in full])
    probe.take(part, full, returned, answered)


def part_of(own: OwnGradient) -> tuple[Part, list[tuple[int, ...]]]:
    """The forward computation, and for each of its arguments the indices of the op's inputs that it feeds."""
    groups = _groups(own)
    part = cut_out([tensors for tensors, _ in groups], own.results)
    if any(tensor.dtype.is_complex for tensor in (*part.fed, *own.results)):
        raise CannotCutError("it computes with complex numbers")
    if any((tensor.shape.num_elements() or 0) > _LARGEST for tensor in part.fed):
        raise CannotCutError("its inputs are too large")
    return part, [slots for _, slots in groups]


def _wrong_shapes(own: OwnGradient, returned: Sequence[Any]) -> Iterator[InputCheck]:
    for (slot, tensor), gradient in zip(own.arguments, returned, strict=True):
        if gradient is None or isinstance(gradient, tf.IndexedSlices):
            continue
        shape = tf.convert_to_tensor(gradient).shape
        if shape.is_fully_defined() and not shape.is_compatible_with(tensor.shape):
            yield InputCheck(slot, shape_of(tensor), tuple(shape.as_list()), None, None, ())


def _groups(own: OwnGradient) -> list[tuple[list[Any], tuple[int, ...]]]:
    """The tensors of each argument, with the inputs that it feeds.

    A variable that the function uses is an argument too: its value is used wherever the function reads it.
    """
    groups: dict[str, tuple[list[Any], list[int]]] = {}
    arguments = {tensor.name for _, tensor in own.arguments[: len(own.arguments) - own.variable_count]}
    for slot, tensor in own.arguments:
        if is_differentiable_dtype(tensor) and tensor.dtype != tf.resource:
            tensors = [tensor] if tensor.name in arguments else [tensor, *_other_reads(tensor, arguments)]
            groups.setdefault(tensor.name, (tensors, []))[1].append(slot)
    if not groups:
        raise CannotCutError("it has no floating input")
    return [(tensors, tuple(slots)) for tensors, slots in groups.values()]


def _other_reads(read: Any, arguments: set[str]) -> list[Any]:
    handles = [tensor for tensor in read.op.inputs if tensor.dtype == tf.resource]
    reads = [op for handle in handles for op in handle.consumers() if op.type == "ReadVariableOp"]
    return [op.outputs[0] for op in reads if op.outputs[0].name not in {read.name, *arguments}]


def smaller(gradient: Any) -> Any:
    """A gradient of a result, times `SMALL_FACTOR`."""
    return gradient * tf.cast(SMALL_FACTOR, gradient.dtype) if gradient.dtype.is_floating else gradient


def _summed(gradients: Sequence[Any]) -> Any:
    """Their sum; None if all are None."""
    present = [tf.convert_to_tensor(each) for each in gradients if each is not None]
    if len(present) < 2:
        return present[0] if present else None
    return tf.add_n(present)
