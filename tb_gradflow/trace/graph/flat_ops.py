"""Flat ops: the records of a step's forward graph, with functions inlined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf
from tensorflow.python.ops import handle_data_util

from tb_gradflow.record.schema import Passes
from tb_gradflow.trace.graph.custom_gradients import OwnGradient
from tb_gradflow.trace.source.frames import Frame, frames_of


@dataclass(frozen=True, slots=True)
class Known:
    """Facts about an op that the graph does not contain.

    Attributes:
        type: Its real type.
        passes: Whether it propagates its gradient: the same for all inputs, or input by input; None if only TensorFlow
            can tell.
        api: The function in the user's code; None if its traceback shows it.
        frames: The stack under which it was created; None if that is its traceback.
        own: Its gradient, if it is a custom gradient.
    """

    type: str
    passes: Passes | Sequence[Passes] | None = None
    api: str | None = None
    frames: Sequence[Frame] | None = None
    own: OwnGradient | None = None

    def passes_to(self, slot: int) -> Passes | None:
        """Whether it propagates its gradient to one input; None if not known here."""
        if self.passes is None or isinstance(self.passes, str):
            return self.passes
        return self.passes[slot] if slot < len(self.passes) else None


@dataclass(frozen=True, slots=True)
class Ref:
    """An output of a flat op."""

    op: int
    output: int


@dataclass(slots=True)
class Input:
    """The origin of an input of a flat op.

    Attributes:
        ref: The producer.
        slot: Which input of the consumer.
        passes: Whether the consumer propagates its gradient, if the structure shows it; None if only TensorFlow can
            tell.
        carried: Whether the value comes from the previous iteration of a loop.
    """

    ref: Ref
    slot: int
    passes: Passes | None = None
    carried: bool = False


@dataclass(slots=True)
class FlatOp:
    """An op of the step's graph, or of a function that the step calls.

    Attributes:
        op: TensorFlow's op.
        tensors: Its outputs; for an output of an `If` or a loop variable, only that tensor.
        nested: Whether it is inside a function's body, where the tape records only the call.
        reads: Variable that it reads; None for most.
        writes: Variable that it assigns; None for most.
        backward: Whether it was created while a gradient was computed or applied.
        derived: Whether its value was computed from a gradient.
        compiled: Whether it is inside a function that XLA compiles.
        updated: Whether the step had already updated the variable that it reads.
        known: Facts that its graph does not contain; None for most.
        place: Its position among the others by index, if it is not its own.
    """

    name: str
    type: str
    op: Any
    tensors: tuple[Any, ...]
    nested: bool
    inputs: list[Input] = field(default_factory=list)
    reads: int | None = None
    writes: int | None = None
    backward: bool = False
    derived: bool = False
    compiled: bool = False
    updated: bool = False
    known: Known | None = None
    place: float | None = None

    @property
    def frames(self) -> Sequence[Frame]:
        """The stack under which it was created."""
        if self.known is not None and self.known.frames is not None:
            return self.known.frames
        return frames_of(self.op.traceback)


@dataclass(slots=True)
class Scope:
    """One graph being flattened: what its tensors, its variable handles and its data placeholders represent."""

    caller: str
    nested: bool
    refs: dict[str, Ref] = field(default_factory=dict)
    handles: dict[str, int] = field(default_factory=dict)
    given: dict[str, str] = field(default_factory=dict)

    def hand_on(self, name: str, other: Scope, new_name: str) -> None:
        """Makes one name here resolve to what another name resolves to there."""
        if name in self.refs:
            other.refs[new_name] = self.refs[name]
        if name in self.handles:
            other.handles[new_name] = self.handles[name]
        if name in self.given:
            other.given[new_name] = self.given[name]


def runs_functions(op: Any) -> bool:
    """Whether an op runs functions through which no gradient passes, such as those of `tf.data`."""
    return str(op.type).endswith(("Dataset", "DatasetV2", "DatasetV3")) or op.type == "MapDefun"


def held_by(handle: Any) -> Any:
    """Shape and type of the variable behind a handle; any shape if unknown."""
    data = handle_data_util.get_resource_handle_data(handle)
    if data is None or not data.shape_and_type:
        return tf.TensorSpec(None, tf.float32)
    return tf.TensorSpec(tf.TensorShape(data.shape_and_type[0].shape), tf.as_dtype(data.shape_and_type[0].dtype))


def readers(ops: Sequence[FlatOp]) -> dict[int, list[int]]:
    """For each variable, the ops that read it."""
    found: dict[int, list[int]] = {}
    for index, op in enumerate(ops):
        if op.reads is not None:
            found.setdefault(op.reads, []).append(index)
    return found


def consumers(ops: Sequence[FlatOp]) -> Mapping[int, list[int]]:
    """For each op, the ops that consume one of its outputs."""
    found: dict[int, list[int]] = {}
    for index, op in enumerate(ops):
        for item in op.inputs:
            found.setdefault(item.ref.op, []).append(index)
    return found
