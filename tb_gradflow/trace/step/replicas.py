"""What the replicas of one step measured, brought together.

Each replica of a `tf.distribute` strategy runs the step on its part of the batch. The log shows them as one: the
gradient of a tensor on the way has as many parts as there are replicas, and its statistics are those of all parts
together; the gradient of a variable is the sum over the replicas, which is what the optimizer applies. A NaN that one
replica has shows in both. The structure is that of the first replica.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute.values import PerReplica

from tb_gradflow.record.schema import RANGE_STATISTICS
from tb_gradflow.trace.capture.collector import Collector
from tb_gradflow.trace.capture.instruments import Instrument, Reading, Request
from tb_gradflow.trace.capture.patches import is_for_xla
from tb_gradflow.trace.graph.gradient_call import Call
from tb_gradflow.trace.graph.variables import is_replica
from tb_gradflow.trace.numerics.loss_scale import unscaled
from tb_gradflow.trace.numerics.statistics import gradient_statistics
from tb_gradflow.trace.numerics.statistics_table import Row
from tb_gradflow.trace.tf_internals.resource_cells import Sink, brought_home
from tb_gradflow.trace.tf_internals.tapes import flat_gradients

SMALLEST, LARGEST = (RANGE_STATISTICS.index(name) for name in ("smallest", "largest"))

Measured = dict[str, Any]
"""The numbers of a step, by the names that the recorder knows them by."""


@dataclass(frozen=True, slots=True)
class Part:
    """A replica's own part of a variable's gradient.

    Attributes:
        call: The request.
        variable: Index of the variable.
        gradient: The result of the tape, float32; a sink if it is in the graph of a nested function.
        scale: The factor by which the loss was multiplied; `None` if there was none.
    """

    call: Call
    variable: int
    gradient: Any
    scale: Any

    @property
    def row(self) -> Row:
        """The statistics of the whole gradient."""
        row = self.call.variables[self.variable].row
        assert row is not None
        return row

    def take(self) -> Any:
        return self.gradient.take() if isinstance(self.gradient, Sink) else self.gradient


class ReplicaParts(Instrument):
    """Keeps the gradients of variables where the step is one replica's.

    Attributes:
        parts: Of the variables' gradients.
        replica: The replica that was seen here, in TensorFlow's terms; `None` where there are none.
        for_xla: Whether a gradient was taken in a function inside the step that XLA compiles.
        ranges: The rows with the ranges of values that functions are given.
    """

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.replica: Any = None
        self.for_xla = False
        self.ranges: Sequence[Row] = ()

    def reading(self, request: Request) -> Reading:
        return _OfReplica(self, request)

    def reading_of_jacobian(self, request: Request) -> Reading:
        return self.reading(request)


class _OfReplica(Reading):
    def __init__(self, kept: ReplicaParts, request: Request) -> None:
        self._kept = kept
        self._request = request

    def answered(self, asked: Any) -> None:
        request, kept = self._request, self._kept
        kept.for_xla = kept.for_xla or is_for_xla()
        if not is_replica():
            return
        kept.replica = tf.distribute.get_replica_context()
        given = zip(tf.nest.flatten(request.sources), flat_gradients(asked), strict=True)
        for source, gradient in given:
            index = request.variables.index_of_source(source)
            if index is not None and gradient is not None and not gradient.dtype.is_complex:
                dense = tf.cast(tf.convert_to_tensor(gradient), tf.float32)
                kept.parts.append(Part(request.call, index, brought_home(dense, request.symbols.root), request.scale))


def parts_of(collector: Collector) -> ReplicaParts | None:
    """The parts that a collector keeps for its replica; `None` if its step cannot run on a replica."""
    return next((each for each in collector.instruments if isinstance(each, ReplicaParts)), None)


def is_shared(collector: Collector) -> bool:
    """Whether what a collector saw is one replica of several."""
    kept = parts_of(collector)
    return kept is not None and kept.replica is not None and kept.replica.num_replicas_in_sync > 1


def placed_of(collectors: Sequence[Collector], measured: Sequence[Measured]) -> Sequence[Mapping[str, Any]]:
    """What each replica of this trace brings to the sum over all of them."""
    placed = [_placed(_parts_in_step(each), own) for each, own in zip(collectors, measured, strict=True)]
    if len({tuple(one) for one in placed}) > 1:
        raise ValueError("the replicas of this step run different ops")
    return placed


def summed_over(first: Collector, placed: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The sum of what the replicas bring, where they were started from."""
    strategy = _parts_in_step(first).replica.strategy
    return {
        name: strategy.reduce(tf.distribute.ReduceOp.SUM, PerReplica([one[name] for one in placed]), axis=None)
        for name in placed[0]
    }


def _parts_in_step(collector: Collector) -> ReplicaParts:
    """Those of the gradients that the step takes: a function that was traced and never called has no part in it."""
    kept = parts_of(collector)
    assert kept is not None
    kept.parts = [part for part in kept.parts if any(part.call is call for call in collector.calls)]
    return kept


class Left:
    """Where replicas leave their step's numbers.

    What a replica returns goes through Keras, which adds it up over the replicas or takes the mean, each version in
    another way, and some of them over all elements. So the first replica of this process puts it aside.
    """

    def __init__(self) -> None:
        self._sinks: dict[int, dict[str, Sink]] = {}
        self._last: Sink | None = None

    def leave(self, index: int, measured: Measured) -> None:
        """In the step: the numbers of its trace `index`."""
        if self._last is None:
            self._last = Sink([])
        self._last.write(tf.constant(float(index)))
        self._sinks[index] = {name: Sink(value.shape) for name, value in measured.items()}
        for name, sink in self._sinks[index].items():
            sink.write(measured[name])

    def take(self) -> Measured:
        """After a step: its numbers; none if it left none."""
        if self._last is None:
            return {}
        index = float(self._last.take())
        return {} if math.isnan(index) else {name: sink.take() for name, sink in self._sinks[int(index)].items()}


def _placed(kept: ReplicaParts, measured: Measured) -> Mapping[str, Any]:
    """A replica's tables, each in its place among zeros, so that the sum over the replicas holds all of them; and its
    parts of the variables' gradients."""
    context = kept.replica
    here = tf.equal(tf.range(context.num_replicas_in_sync), tf.cast(context.replica_id_in_sync_group, tf.int32))
    tables = {}
    for name, table in measured.items():
        table = tf.cast(table, tf.float32)
        mask = tf.reshape(here, [-1] + [1] * table.shape.rank)
        tables[name] = tf.where(mask, table[tf.newaxis], tf.zeros_like(table)[tf.newaxis])
    return tables | {f"part {number}": part.take() for number, part in enumerate(kept.parts)}


def combined(first: Collector, total: Mapping[str, Any]) -> Measured:
    """The numbers of the whole step, from the sums over its replicas."""
    kept, number_of = _parts_in_step(first), first.rows.numbers()
    parts, rows = kept.parts, _together(total["gradients"])
    if kept.ranges:
        numbers = [number_of(row) for row in kept.ranges]
        ranges = _widest(tf.gather(total["gradients"], numbers, axis=1))
        rows = tf.tensor_scatter_nd_update(rows, [[number] for number in numbers], ranges)
    if parts:
        summed = [
            unscaled([gradient_statistics(total[f"part {number}"])], part.scale) for number, part in enumerate(parts)
        ]
        places = [[number_of(part.row)] for part in parts]
        rows = tf.tensor_scatter_nd_update(rows, places, tf.concat(summed, 0))
    return {
        "trace": total["trace"][0],
        "losses": tf.reduce_sum(total["losses"], 0),
        "gradients": rows,
        "variables": total["variables"][0],
    }


def _together(tables: Any) -> Any:
    """From `[replicas, rows, 6]` to `[rows, 6]`: the statistics of all replicas' tensors as one. Means and fractions
    count each replica once, even where the last batch was not divided evenly."""
    norm, largest, mean, zeros, nan_count, inf_count = tf.unstack(tables, axis=-1)
    most = tf.reduce_max(norm, 0)
    # As BLAS nrm2 does: squares of small norms vanish.
    whole = most * tf.sqrt(tf.reduce_sum(tf.square(tf.math.divide_no_nan(norm, most)), 0))
    columns = [whole, tf.reduce_max(largest, 0), tf.reduce_mean(mean, 0), tf.reduce_mean(zeros, 0)]
    return tf.stack([*columns, tf.reduce_sum(nan_count, 0), tf.reduce_sum(inf_count, 0)], -1)


def _widest(ranges: Any) -> Any:
    """From `[replicas, ranges, 6]` to `[ranges, 6]`: those over all replicas, NaN where none has a finite value."""
    smallest, largest = ranges[..., SMALLEST], ranges[..., LARGEST]
    known = tf.logical_not(tf.math.is_nan(smallest))
    ends = {
        SMALLEST: tf.reduce_min(tf.where(known, smallest, float("inf")), 0),
        LARGEST: tf.reduce_max(tf.where(known, largest, float("-inf")), 0),
    }
    is_known = tf.reduce_any(known, 0)
    none = tf.zeros_like(ends[SMALLEST])
    columns = [
        tf.where(is_known, ends[place], float("nan")) if place in ends else none
        for place in range(len(RANGE_STATISTICS))
    ]
    return tf.stack(columns, -1)
