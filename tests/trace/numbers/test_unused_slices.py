"""Which elements a slice takes, compared with NumPy."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tb_gradflow.trace.graph.flat_ops import FlatOp
from tb_gradflow.trace.graph.flatten import Flattener
from tb_gradflow.trace.graph.unused_slices import _box

SHAPE = (4, 5, 3)
WHOLE = np.arange(np.prod(SHAPE)).reshape(SHAPE)


def op_of(take: Any) -> FlatOp:
    with tf.Graph().as_default() as graph:
        take(tf.zeros(SHAPE) + tf.compat.v1.placeholder(tf.float32, ()))
    flattener = Flattener(graph, lambda graph, handle: None)
    flattener.extend()
    return next(op for op in flattener.ops if op.type in ("StridedSlice", "Slice"))


INDICES: list[Any] = [
    np.s_[1],
    np.s_[-1],
    np.s_[:, 2],
    np.s_[..., 0],
    np.s_[..., -2:],
    np.s_[1:3, ..., 1],
    np.s_[:, ::2],
    np.s_[::-1, 1:-1],
    np.s_[:, None, 3],
    np.s_[None, 0, ..., None],
    np.s_[2:100, :, :2],
    np.s_[:, 4:1:-2],
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_a_slice_takes_what_numpy_takes(index: Any) -> None:
    box = _box(op_of(lambda x: x[index]))

    assert box is not None
    taken = [int(WHOLE[place]) for place in product(*box)]
    assert sorted(taken) == sorted(WHOLE[index].ravel().tolist())


@pytest.mark.parametrize(("begin", "size"), [([0, 1, 0], [-1, 2, 1]), ([3, 0, 2], [1, 5, -1])])
def test_so_does_a_block(begin: list[int], size: list[int]) -> None:
    box = _box(op_of(lambda x: tf.slice(x, begin, size)))

    assert box is not None
    taken = [int(WHOLE[place]) for place in product(*box)]
    ends = [first + count if count >= 0 else None for first, count in zip(begin, size, strict=True)]
    index = tuple(slice(first, end) for first, end in zip(begin, ends, strict=True))
    assert sorted(taken) == sorted(WHOLE[index].ravel().tolist())


def test_what_depends_on_data_is_not_known() -> None:
    assert _box(op_of(lambda x: x[tf.compat.v1.placeholder(tf.int32, ()) :])) is None
