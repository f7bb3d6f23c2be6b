"""The batches of the latest steps, kept as references without copying. A part of a batch may be None."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from tb_gradflow.trace.graph.variables import replica_here

# Never full: an op that waits for space would stop the training.
_CAPACITY = 1 << 30

OWN_OP = "tb_gradflow_batch"
"""A prefix of the names of the ops that keep batches."""


class Batches:
    """A queue for each replica, which its steps fill while they run.

    Args:
        replicas: Number of replicas in this process.
    """

    def __init__(self, replicas: int) -> None:
        with tf.device("CPU:0"):
            self._queues = [
                tf.queue.FIFOQueue(_CAPACITY, [tf.variant, tf.int32], shapes=[[], []]) for _ in range(replicas)
            ]
        self._specs: list[Any] = []
        self._sizes: dict[int, int] = {}

    def keep(self, batch: Any) -> None:
        """In a step's graph: keeps a batch, tensors in any structure."""
        components = [each for each in tf.nest.flatten(batch, expand_composites=True) if each is not None]
        number = len(self._specs)
        self._specs.append(tf.nest.map_structure(tf.type_spec_from_value, batch))
        kept = tf.raw_ops.OptionalFromValue(components=components)
        self._queues[replica_here()].enqueue([kept, tf.constant(number)], name=OWN_OP)

    def forget(self) -> int:
        """Releases everything; returns how many bytes the batch of a step took."""
        size = 0
        for queue in self._queues:
            kept, numbers = queue.dequeue_many(queue.size())
            if len(numbers):
                size += self._size(kept, numbers.numpy()[0])
        return size

    def taken(self) -> list[list[Any]]:
        """The batches kept since the last call: for each step, those of each replica."""
        by_replica = [self._of(queue) for queue in self._queues]
        return [list(step) for step in zip(*by_replica, strict=True)]

    def _of(self, queue: Any) -> list[Any]:
        kept, numbers = queue.dequeue_many(queue.size())
        return [
            self._value(one, self._specs[int(number)]) for one, number in zip(tf.unstack(kept), numbers, strict=True)
        ]

    def _size(self, kept: Any, number: int) -> int:
        """Bytes of the first batch. Reading it takes a millisecond, so this is not repeated if all have the same
        size.
        """
        if number in self._sizes:
            return self._sizes[number]
        spec = self._specs[number]
        size = bytes_of(self._value(kept[0], spec))
        if all(each.shape.is_fully_defined() for each in _tensors(spec)):
            self._sizes[number] = size
        return size

    def _value(self, kept: Any, spec: Any) -> Any:
        flat = _tensors(spec)
        components = iter(
            tf.raw_ops.OptionalGetValue(
                optional=kept, output_types=[each.dtype for each in flat], output_shapes=[each.shape for each in flat]
            )
        )
        whole = [
            next(components) if isinstance(each, tf.TensorSpec) else None
            for each in tf.nest.flatten(spec, expand_composites=True)
        ]
        return tf.nest.pack_sequence_as(spec, whole, expand_composites=True)


def _tensors(spec: Any) -> list[Any]:
    return [each for each in tf.nest.flatten(spec, expand_composites=True) if isinstance(each, tf.TensorSpec)]


def without_optionals(structure: Any) -> Any:
    """A batch, or the type of one, as Keras passes it to a step: with None where a dataset can only say that a tensor
    is missing.
    """
    optional = (tf.experimental.Optional, tf.OptionalSpec)
    return tf.nest.map_structure(lambda each: None if isinstance(each, optional) else each, structure)


def dataset_of(batches: Iterable[Any], spec: Any) -> Any:
    """A `tf.data.Dataset` of existing batches, of the type `spec`; it can be iterated once. Datasets do not keep the
    lists that `train_on_batch` passes: then the batches themselves, as Keras passes them.
    """
    if _has_list(spec):
        return batches
    flat = tf.nest.flatten(spec)
    # `train_on_batch` of an eager step passes None where there are no sample weights.
    there = [number for number, each in enumerate(flat) if each is not None and not isinstance(each, tf.OptionalSpec)]

    def whole(*parts: Any) -> Any:
        given = iter(parts)

        def part(each: Any) -> Any:
            if isinstance(each, tf.OptionalSpec):
                return tf.experimental.Optional.empty(each._element_spec)
            return None if each is None else next(given)

        return tf.nest.pack_sequence_as(spec, [part(each) for each in flat])

    dataset = tf.data.Dataset.from_generator(
        lambda: (tuple(tf.nest.flatten(batch)[number] for number in there) for batch in batches),
        output_signature=tuple(flat[number] for number in there),
    )
    options = tf.data.Options()
    # There is nothing to tune for a few batches, and autotuning threads take tens of milliseconds to end.
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    return dataset.map(tf.autograph.experimental.do_not_convert(whole)).with_options(options)


def _has_list(spec: Any) -> bool:
    parts = spec.values() if isinstance(spec, dict) else spec if isinstance(spec, (list, tuple)) else ()
    return isinstance(spec, list) or any(map(_has_list, parts))


def bytes_of(batch: Any) -> int:
    """The size of the tensors of a batch, in bytes."""
    flat = tf.nest.flatten(batch, expand_composites=True)
    eager = [each for each in flat if isinstance(each, tf.__internal__.EagerTensor)]
    return sum(each.dtype.size * math.prod(each._shape_tuple()) for each in eager)
