"""Flat ops: the records that a step's forward graph becomes, functions inlined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf
from tensorflow.python.ops import handle_data_util

from tb_gradflow.record.schema import Passes
from tb_gradflow.trace.graph.custom_gradients import OwnGradient
from tb_gradflow.trace.source.frames import Frame


@dataclass(frozen=True, slots=True)
class Known:
    """What the graph does not say of an op.

    Attributes:
        type: What it really is.
        passes: Whether it hands its gradient on: to all of its inputs alike, or input by input; null where
            TensorFlow is to be asked.
        api: How the user's code called it; null if its traceback says so.
        frames: The stack that it was made under; null if that is its traceback.
        own: Its gradient, if the user wrote that.
    """

    type: str
    passes: Passes | Sequence[Passes] | None = None
    api: str | None = None
    frames: Sequence[Frame] | None = None
    own: OwnGradient | None = None

    def passes_to(self, slot: int) -> Passes | None:
        """Whether it hands its gradient on to one input; null if that is not known here."""
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
    """Where an input of a flat op comes from.

    Attributes:
        ref: The producer.
        slot: Which input of the consumer.
        passes: Whether the consumer passes its gradient on, where that is known from the structure; null where
            TensorFlow is to be asked.
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
        tensors: Its outputs, or for an output of an `If` or a loop variable that one tensor.
        nested: Whether it lies inside a function's body, where the tape sees only the call.
        reads: Variable that it reads; null for most.
        writes: Variable that it assigns; null for most.
        backward: Whether it was made while a gradient was computed or applied.
        derived: Whether its value was made from a gradient.
        compiled: Whether it lies inside a function that XLA compiles.
        updated: Whether the step has trained the variable that it reads before.
        known: What its graph does not say of it; null for most.
        place: Where it stands among the others by their indices, if that is not its own.
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


@dataclass(slots=True)
class Scope:
    """One graph being flattened: what its tensors, its variable handles and its placeholders of data stand for."""

    caller: str
    nested: bool
    refs: dict[str, Ref] = field(default_factory=dict)
    handles: dict[str, int] = field(default_factory=dict)
    given: dict[str, str] = field(default_factory=dict)

    def hand_on(self, name: str, other: Scope, new_name: str) -> None:
        """Has what a name stands for here stand behind another name there."""
        if name in self.refs:
            other.refs[new_name] = self.refs[name]
        if name in self.handles:
            other.handles[new_name] = self.handles[name]
        if name in self.given:
            other.given[new_name] = self.given[name]


def runs_functions(op: Any) -> bool:
    """Whether an op of TensorFlow's runs functions that no gradient passes through: those of `tf.data`."""
    return str(op.type).endswith(("Dataset", "DatasetV2", "DatasetV3")) or op.type == "MapDefun"


def held_by(handle: Any) -> Any:
    """Shape and type of the variable behind a handle; of any shape if nobody knows."""
    data = handle_data_util.get_resource_handle_data(handle)
    if data is None or not data.shape_and_type:
        return tf.TensorSpec(None, tf.float32)
    return tf.TensorSpec(tf.TensorShape(data.shape_and_type[0].shape), tf.as_dtype(data.shape_and_type[0].dtype))


def consumers(ops: Sequence[FlatOp]) -> Mapping[int, list[int]]:
    """For each op, the ops that take one of its outputs."""
    found: dict[int, list[int]] = {}
    for index, op in enumerate(ops):
        for item in op.inputs:
            found.setdefault(item.ref.op, []).append(index)
    return found
