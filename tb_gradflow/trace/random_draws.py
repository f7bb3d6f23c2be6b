"""Random numbers that the versions of a step draw from one sequence.

An op such as that of `tf.random.normal` with a seed keeps its place in the sequence to itself, and each compiled
function has ops of its own. Steps that record and steps that are guarded take turns: the ops of each would lag behind,
and the training be another one than without the recorder. So the place is kept in a variable that both share, and the
op is replaced by the one without a state that gives the same numbers, bit for bit: Philox, whose key is the first
seed, and whose counter has the second in its upper half and grows, with each drawing, by 256 for each number
(TensorFlow's `GuardedPhiloxRandom::ReserveRandomOutputs`).
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, MutableMapping
from typing import Any
from weakref import WeakKeyDictionary

import tensorflow as tf
from tensorflow.python.ops import gen_random_ops
from tensorflow.python.ops import gen_stateless_random_ops_v2 as stateless
from tensorflow.python.ops.control_flow_v2_func_graphs import CondBranchFuncGraph
from tensorflow.python.ops.parallel_for import control_flow_ops as parallel_for
from tensorflow.python.ops.resource_variable_ops import ResourceVariable

from tb_gradflow.trace.replaced import replaced

_PHILOX = 1
_RESERVED = 256


class RandomDraws:
    """The places of a step's random ops in their sequences.

    Args:
        is_shared: Whether these versions run and no other. XLA has generators of its own.
        by_batch: Whether the user's step is compiled anew for another size of the batch, the first dimension of what it
            is given: its ops are others then.
    """

    def __init__(self, *, is_shared: bool, by_batch: bool) -> None:
        self._is_shared = is_shared
        self._by_batch = by_batch
        self._places: dict[Any, ResourceVariable] = {}

    def shared(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """The step; wherever it is traced, it goes on in the sequences where the last run has ended."""

        @functools.wraps(step)
        def run(*args: Any, **kwargs: Any) -> Any:
            graph = tf.compat.v1.get_default_graph()
            if not graph.building_function or not self._is_shared:
                return step(*args, **kwargs)
            before, _HERE.trace = _HERE.trace, _Traced(graph, self._place, self._signature(args, kwargs))
            try:
                return step(*args, **kwargs)
            finally:
                _HERE.trace = before

        return run

    def _signature(self, args: Any, kwargs: Any) -> Any:
        def of(each: Any) -> Any:
            if not isinstance(each, tf.Tensor):
                return each if isinstance(each, bool | int | float | str) else None
            return each.dtype.name, str(each.shape if self._by_batch else each.shape[1:])

        return tuple(map(of, tf.nest.flatten((args, kwargs), expand_composites=True)))

    def _place(self, key: Any) -> ResourceVariable:
        if key not in self._places:
            # Not a `tf.Variable`: a function that is traced anew, for other shapes, may make none.
            with tf.init_scope():
                self._places[key] = ResourceVariable(0, trainable=False, dtype=tf.int64, name=_NAME)
        return self._places[key]


_of_function: MutableMapping[Any, RandomDraws] = WeakKeyDictionary()


def draws_of(function: Any, *, may_share: bool, has_run: bool) -> RandomDraws:
    """Those of a training function of Keras's: a fit that goes on with it goes on in its sequences, whoever recorded
    the one before. Where it `has_run` itself, nobody knows how far it went."""
    if not may_share or (has_run and function not in _of_function):
        return RandomDraws(is_shared=False, by_batch=False)
    return _of_function.setdefault(function, RandomDraws(is_shared=True, by_batch=False))


_NAME = "tb_gradflow/place"


def is_place(variable: Any) -> bool:
    """Whether a variable is one of these, and none of the user's."""
    return str(variable.name).startswith(_NAME)


class _Traced:
    """A step that is being traced.

    Attributes:
        quiet: Whether what is traced now is to be left as it is.
    """

    def __init__(self, graph: Any, place: Callable[[Any], ResourceVariable], signature: Any) -> None:
        self.quiet = False
        self._graph = graph
        self._place = place
        self._signature = signature
        self._counts: dict[Any, int] = {}

    def has(self, graph: Any) -> bool:
        """Whether an op of a graph runs once in a step at most: it is a part of it, or of a branch in it. A function
        that is called twice has ops of its own in each call, and rounds of a loop may draw in any order."""
        while isinstance(graph, CondBranchFuncGraph):
            graph = graph.outer_graph
        return graph is self._graph

    def next_place(self, *op: Any) -> ResourceVariable:
        """Where such an op of the step, the next one of its kind, is in its sequence."""
        count = self._counts[op] = self._counts.get(op, 0) + 1
        place = self._place((self._signature, op, count))
        self._graph.watch_variable(place)  # a branch would keep it to itself
        return place


class _Here(threading.local):
    trace: _Traced | None = None


_HERE = _Here()


def patch_random(undo: contextlib.ExitStack) -> None:
    """While steps are traced, until `undo` is closed."""
    for name, other in _WITHOUT_STATE.items():
        replaced(undo, gen_random_ops, name, functools.partial(_drawing, other))
    # Turns what is traced in it into other ops, and knows none that writes to a variable.
    replaced(undo, parallel_for, "pfor", _left_alone)


def is_seeded(op: Any) -> bool:
    """Whether a random op gives the same numbers in each run of a program; else nobody expects any."""
    attributes = op.node_def.attr
    return bool(attributes["seed"].i or attributes["seed2"].i)


_WITHOUT_STATE: dict[str, Callable[..., Any]] = {
    "random_uniform": stateless.stateless_random_uniform_v2,
    "random_standard_normal": stateless.stateless_random_normal_v2,
    "truncated_normal": stateless.stateless_truncated_normal_v2,
    "random_uniform_int": stateless.stateless_random_uniform_int_v2,
}


def _drawing(other: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def draw(shape: Any, *args: Any, seed: int | None = 0, seed2: int | None = 0, name: str | None = None) -> Any:
        here, graph = _HERE.trace, tf.compat.v1.get_default_graph()
        if here is None or here.quiet or not (seed or seed2) or not here.has(graph):
            return original(shape, *args, seed=seed, seed2=seed2, name=name)
        seed, seed2 = seed or 0, seed2 or 0
        shape = tf.convert_to_tensor(shape)
        place = here.next_place(original.__name__, seed, seed2)
        low = place.read_value()
        place.assign_add(tf.reduce_prod(tf.cast(shape, tf.int64)) * _RESERVED, read_value=False)
        counter = tf.stack([low, tf.constant(seed2, tf.int64)])
        unsigned = (tf.bitcast(each, tf.uint64) for each in (tf.constant([seed], tf.int64), counter))
        return other(shape, *unsigned, _PHILOX, *args, name=name or original.__name__)

    return draw


def _left_alone(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def pfor(*args: Any, **kwargs: Any) -> Any:
        here = _HERE.trace
        if here is None or here.quiet:
            return original(*args, **kwargs)
        here.quiet = True
        try:
            return original(*args, **kwargs)
        finally:
            here.quiet = False

    return pfor
