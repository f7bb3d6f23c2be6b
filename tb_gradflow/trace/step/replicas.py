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

from tb_gradflow.trace.capture.collector import Collector
from tb_gradflow.trace.capture.patches import is_for_xla
from tb_gradflow.trace.graph.flat_ops import Ref
from tb_gradflow.trace.graph.gradient_call import Call
from tb_gradflow.trace.graph.variables import is_replica
from tb_gradflow.trace.numerics.loss_scale import unscaled
from tb_gradflow.trace.numerics.statistics import gradient_statistics
from tb_gradflow.trace.tf_internals.resource_cells import Sink

Measured = dict[str, Any]
"""The numbers of a step, by the names that the recorder knows them by."""


@dataclass(frozen=True, slots=True)
class Part:
    """A replica's own part of a variable's gradient.

    Attributes:
        call: What was asked.
        variable: Index of the variable.
        gradient: As the tape answered, float32; a sink where it lies in a nested function's graph.
        scale: What the loss was multiplied with; null if it was not.
    """

    call: Call
    variable: int
    gradient: Any
    scale: Any

    @property
    def row(self) -> int:
        """Among the step's statistics, once the step is over."""
        row = self.call.variables[self.variable].row
        assert row is not None
        return row

    def take(self) -> Any:
        return self.gradient.take() if isinstance(self.gradient, Sink) else self.gradient


class ReplicaCollector(Collector):
    """Keeps the gradients of variables too where the step is one replica's.

    Attributes:
        parts: Of the variables' gradients.
        replica: The replica that was seen here, in TensorFlow's terms; null where there are none.
        for_xla: Whether a gradient was taken in a function inside of the step that XLA compiles.
    """

    parts: Sequence[Part] = ()
    replica: Any = None
    for_xla: bool = False

    def _keep(
        self, call: Call, sources: Any, asked: Any, extra: dict[Ref, Any], on_the_way: Sequence[Any], scale: Any
    ) -> None:
        super()._keep(call, sources, asked, extra, on_the_way, scale)
        self.for_xla = self.for_xla or is_for_xla()
        if not is_replica():
            return
        self.replica = tf.distribute.get_replica_context()
        given = zip(tf.nest.flatten(sources), tf.nest.flatten(asked, expand_composites=False), strict=True)
        for source, gradient in given:
            index = self.variables.index_of_source(source)
            if index is not None and gradient is not None and not gradient.dtype.is_complex:
                dense = tf.cast(tf.convert_to_tensor(gradient), tf.float32)
                self.parts = [*self.parts, Part(call, index, self._brought_home(dense), scale)]


def is_shared(collector: Collector) -> bool:
    """Whether what a collector saw is one replica of several."""
    replica = getattr(collector, "replica", None)
    return replica is not None and replica.num_replicas_in_sync > 1


def placed_of(collectors: Sequence[Collector], measured: Sequence[Measured]) -> Sequence[Mapping[str, Any]]:
    """What each replica of this trace brings to the sum over all of them."""
    for each in collectors:
        assert isinstance(each, ReplicaCollector)
        # A function that was traced and never called has no part in the step.
        each.parts = [part for part in each.parts if any(part.call is call for call in each.calls)]
    placed = [_placed(each, own) for each, own in zip(collectors, measured, strict=True)]
    if len({tuple(one) for one in placed}) > 1:
        raise ValueError("the replicas of this step do not do the same")
    return placed


def summed_over(first: Collector, placed: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The sum of what the replicas bring, where they were started from."""
    assert isinstance(first, ReplicaCollector)
    strategy = first.replica.strategy
    return {
        name: strategy.reduce(tf.distribute.ReduceOp.SUM, PerReplica([one[name] for one in placed]), axis=None)
        for name in placed[0]
    }


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


def _placed(collector: Collector, measured: Measured) -> Mapping[str, Any]:
    """A replica's tables, each in its place among zeros, so that the sum over the replicas holds all of them; and its
    parts of the variables' gradients."""
    assert isinstance(collector, ReplicaCollector)
    context = collector.replica
    here = tf.equal(tf.range(context.num_replicas_in_sync), tf.cast(context.replica_id_in_sync_group, tf.int32))
    tables = {}
    for name, table in measured.items():
        table = tf.cast(table, tf.float32)
        mask = tf.reshape(here, [-1] + [1] * table.shape.rank)
        tables[name] = tf.where(mask, table[tf.newaxis], tf.zeros_like(table)[tf.newaxis])
    return tables | {f"part {number}": part.take() for number, part in enumerate(collector.parts)}


def combined(first: Collector, total: Mapping[str, Any]) -> Measured:
    """The numbers of the whole step, from the sums over its replicas."""
    assert isinstance(first, ReplicaCollector)
    rows = _together(total["gradients"])
    if first.parts:
        summed = [
            unscaled([gradient_statistics(total[f"part {number}"])], part.scale)
            for number, part in enumerate(first.parts)
        ]
        places = [[part.row] for part in first.parts]
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
