"""Tensors that a compiled function leaves for Python, many at once."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tb_gradflow.trace.engine.cells import Bundle


@pytest.mark.parametrize("count", [1, 16, 17, 300])
def test_a_bundle_gives_back_what_was_put_in_and_holds_few_values_in_each_optional(count: int) -> None:
    bundle = Bundle()

    @tf.function(autograph=False)
    def step(x: tf.Tensor) -> tf.Tensor:
        kinds = (tf.float32, tf.int64, tf.complex64)
        values = [tf.fill([place % 3], tf.cast(x, kinds[place % 3])) + place for place in range(count)]
        return bundle.packed(values)

    graph = step.get_concrete_function(tf.TensorSpec([], tf.float32)).graph
    optionals = [op for op in graph.get_operations() if op.type == "OptionalFromValue"]
    assert max(len(op.inputs) for op in optionals) <= 16
    bundle.cell.write(step(tf.constant(2.0)))

    found = bundle.take()

    assert found is not None
    assert len(found) == count
    for place, value in enumerate(found):
        np.testing.assert_array_equal(value.numpy(), np.full(place % 3, 2 + place))
    assert bundle.take() is None
