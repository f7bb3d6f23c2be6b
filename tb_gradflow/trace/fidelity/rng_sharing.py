"""Lets all versions of a step draw random numbers from one sequence.

A stateful op such as that of `tf.random.normal` with a seed keeps its own position in the sequence, and each compiled
function has its own ops. Recorded steps and monitored steps alternate, so the ops of each would lag behind, and the
training would differ from one without the recorder. Therefore the position is kept in a variable that both share, and
the op's consumers get the numbers of the stateless op instead, which are bit-identical: Philox, whose key is the first
seed, and whose counter has the second seed in its upper half and grows, with each draw, by 256 for each number
(TensorFlow's `GuardedPhiloxRandom::ReserveRandomOutputs`).
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.eager import record
from tensorflow.python.ops import gen_stateless_random_ops_v2 as stateless
from tensorflow.python.ops.resource_variable_ops import ResourceVariable

from tb_gradflow.trace.fidelity.warning import warn
from tb_gradflow.trace.graph.random_ops import PLACE_NAME, REPLACED, SEEDED, is_seeded

_PHILOX = 1
_RESERVED = 256

_WITHOUT_STATE: dict[str, Callable[..., Any]] = {
    "RandomUniform": stateless.stateless_random_uniform_v2,
    "RandomStandardNormal": stateless.stateless_random_normal_v2,
    "TruncatedNormal": stateless.stateless_truncated_normal_v2,
    "RandomUniformInt": stateless.stateless_random_uniform_int_v2,
}


class RandomDraws:
    """The positions of a step's random ops in their sequences.

    Args:
        is_shared: Whether only these versions run. XLA has its own generators.
        relaxes: Whether the user's step, after a compilation for tensors of some sizes, is compiled for tensors of any
            size (`reduce_retracing`): which of the two runs, each with its own ops, then depends on the order of the
            sizes. Otherwise it is compiled separately, with separate ops, for each size.
    """

    def __init__(self, *, is_shared: bool, relaxes: bool) -> None:
        self._is_shared = is_shared
        self._relaxes = relaxes
        self._first: dict[Any, Any] = {}
        self._told = False
        self._places: dict[Any, ResourceVariable] = {}

    def shared(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """The step, wrapped so that each trace of it continues the sequences where the last run ended."""

        @functools.wraps(step)
        def run(*args: Any, **kwargs: Any) -> Any:
            graph = tf.compat.v1.get_default_graph()
            if not graph.building_function or not self._is_shared:
                return step(*args, **kwargs)
            before = len(graph.get_operations())
            outputs = step(*args, **kwargs)
            # If it fails, all ops are as in the user's own step, and this is reported.
            with contextlib.suppress(Exception), record.stop_recording(), tf.name_scope("tb_gradflow"):
                return self._given(graph, graph.get_operations()[before:], self._call(args, kwargs), outputs)
            return outputs

        return run

    def _given(self, graph: Any, operations: Sequence[Any], call: Any, outputs: Any) -> Any:
        """The results of a traced step, after consumers of random numbers have been redirected to the shared position.

        A function that the step calls may be called twice, and has its own ops in each call; iterations of a loop may
        draw in any order. Those are not changed. Neither is a trace that creates variables: TensorFlow computes their
        initial values separately from the step, and traces it a second time.
        """
        if any(op.type == "VarIsInitializedOp" for op in operations):
            return outputs
        if call is None:
            if not self._told and any(op.type in _WITHOUT_STATE and is_seeded(op) for op in operations):
                self._told = True
                warn(SEEDED)
            return outputs
        counts: dict[Any, int] = {}
        draws: list[_Draw] = []
        for op in operations:
            if op.type in _WITHOUT_STATE and is_seeded(op) and _is_on_the_host(op):
                kind = op.type, op.get_attr("seed"), op.get_attr("seed2")
                counts[kind] = counts.get(kind, 0) + 1
                place = self._place((call, kind, counts[kind]))
                graph.watch_variable(place)
                draws.append(_Draw(op, place, _drawn(op, place)))
        with contextlib.ExitStack() as undo:
            for draw in draws:
                _rewire(draw, undo)
            for draw in draws:
                _move_on(draw)
            undo.pop_all()  # all or none: with numbers from both sequences it would be a different step
        for draw in draws:
            draw.op._set_attr(REPLACED, attr_value_pb2.AttrValue(b=True))
        new = {id(draw.op.outputs[0]): draw.numbers for draw in draws}
        flat = [new.get(id(each), each) for each in tf.nest.flatten(outputs, expand_composites=True)]
        return tf.nest.pack_sequence_as(outputs, flat, expand_composites=True)

    def _call(self, args: Any, kwargs: Any) -> Any:
        """Identifies calls for which the user's step has separate ops; None if that is not known."""
        flat = tf.nest.flatten((args, kwargs), expand_composites=True)
        kinds, sizes = tuple(map(_kind, flat)), tuple(map(_sizes, flat))
        if not self._relaxes:
            return kinds, sizes
        first = self._first.setdefault(kinds, sizes)
        pairs = (pair for tensors in zip(first, sizes, strict=True) for pair in zip(*tensors, strict=True))
        return kinds if all(known is None or known == size for known, size in pairs) else None

    def _place(self, key: Any) -> ResourceVariable:
        if key not in self._places:
            # Not a `tf.Variable`: a function that is traced again, for other shapes, may not create one.
            with tf.init_scope(), tf.device("CPU:0"):
                self._places[key] = ResourceVariable(0, trainable=False, dtype=tf.int64, name=PLACE_NAME)
        return self._places[key]


def _kind(each: Any) -> Any:
    if isinstance(each, tf.Variable):  # each trace gets its own copy instead
        return each.dtype.name, str(each.shape)
    if isinstance(each, tf.Tensor):
        return each.dtype.name, each.shape.rank
    return each if isinstance(each, bool | int | float | str | None) else _Same(each)


def _sizes(each: Any) -> tuple[int | None, ...]:
    is_known = isinstance(each, tf.Tensor) and not isinstance(each, tf.Variable) and each.shape.rank is not None
    return tuple(each.shape) if is_known else ()


class _Same:
    """An argument for whose identity a step is compiled again: a model, an optimizer. It is not kept alive."""

    def __init__(self, argument: Any) -> None:
        self._hash = id(argument)
        self._argument: Callable[[], Any]
        try:
            self._argument = weakref.ref(argument)
        except TypeError:
            self._argument = lambda: argument

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._argument() is not None and self._argument() is other._argument()


_of_function: MutableMapping[Any, RandomDraws] = WeakKeyDictionary()


def draws_of(function: Any, *, may_share: bool, has_run: bool) -> RandomDraws:
    """The positions of a Keras training function: a later fit with the same function continues its sequences, even if
    another recorder recorded the earlier one. If the function itself `has_run`, its position is not known.
    """
    if not may_share or (has_run and function not in _of_function):
        return RandomDraws(is_shared=False, relaxes=True)
    return _of_function.setdefault(function, RandomDraws(is_shared=True, relaxes=True))


def _is_on_the_host(op: Any) -> bool:
    """Whether it runs on one replica, without an accelerator."""
    return not op.device or op.device.upper().endswith("CPU:0")


@dataclass(frozen=True, slots=True)
class _Draw:
    """A random op of a step.

    Attributes:
        op: The user's own.
        place: Its position in its sequence.
        numbers: The numbers that it would draw there.
    """

    op: Any
    place: ResourceVariable
    numbers: Any


def _rewire(draw: _Draw, undo: contextlib.ExitStack) -> None:
    """Passes the numbers of the shared position to the consumers of an op, until `undo` is closed."""
    old = draw.op.outputs[0]
    for consumer in old.consumers():
        for slot, tensor in enumerate(consumer.inputs):
            if tensor is old:
                consumer._update_input(slot, draw.numbers)
                undo.callback(consumer._update_input, slot, old)


def _move_on(draw: _Draw) -> None:
    """In an op's graph: the next run draws the numbers that follow."""
    count = tf.reduce_prod(tf.cast(draw.op.inputs[0], tf.int64))
    draw.place.assign_add(count * _RESERVED, read_value=False)


def _drawn(op: Any, place: ResourceVariable) -> Any:
    """In an op's graph: the numbers that it would draw at a place."""
    shape, *others = op.inputs
    low = place.read_value()
    halves = tf.stack([low, tf.constant(op.get_attr("seed2"), tf.int64)])
    key, counter = (tf.bitcast(each, tf.uint64) for each in (tf.constant([op.get_attr("seed")], tf.int64), halves))
    numbers = _WITHOUT_STATE[op.type](shape, key, counter, _PHILOX, *(others or [op.get_attr("dtype")]))
    numbers.set_shape(op.outputs[0].shape)
    return numbers
