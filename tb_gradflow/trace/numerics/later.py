"""Statistics of tensors of an observed step, which functions made from it compute together with those of others.

In the graph of a function that trains, a call of another function costs two milliseconds when TensorFlow compiles it,
however small the called one is: so one call measures several tensors. And it computes only what the statistics follow
from, without branches: elements are scaled by the largest, as BLAS nrm2 does, because squares of elements under 1e-19
vanish.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from tb_gradflow.trace.numerics.fusion import behind, is_constant

Array = npt.NDArray[np.float32]

_TOGETHER = (8, 4, 2, 1)

_COLUMNS = 6

_LONGEST = 1000


@dataclass(frozen=True, slots=True)
class Later:
    """The statistics of a tensor.

    Attributes:
        of: Computes float32 `[6]` from it.
        tensor: The tensor.
    """

    of: Callable[[Any], Any]
    tensor: Any


class _OfThread(threading.local):
    is_later = False


_of_thread = _OfThread()


@contextlib.contextmanager
def measured_later() -> Iterator[None]:
    """While the context is open, statistics are not computed yet."""
    before, _of_thread.is_later = _of_thread.is_later, True
    try:
        yield
    finally:
        _of_thread.is_later = before


def is_later() -> bool:
    return _of_thread.is_later


def sums(tensor: Any) -> Any:
    """float32 `[6]`, from which `gradient_columns` computes the statistics of a gradient."""
    magnitude = tf.abs(tensor)
    if magnitude.dtype not in (tf.float32, tf.float64):
        magnitude = tf.cast(magnitude, tf.float32)
    whole = tf.reshape(magnitude, [-1])
    zero = tf.zeros([], whole.dtype)
    is_finite = tf.math.is_finite(whole)
    flat = tf.where(is_finite, whole, zero)
    largest = tf.maximum(tf.reduce_max(flat), zero)  # -inf if there are no elements
    scaled = tf.math.divide_no_nan(flat, largest)
    size = tf.cast(tf.size(flat), flat.dtype)
    lost = size - tf.reduce_sum(tf.cast(is_finite, flat.dtype))
    has_nan = tf.math.is_nan(tf.reduce_sum(whole))
    count = tf.reduce_sum(tf.sign(flat))
    lost = tf.where(has_nan, -lost, lost)
    columns = [tf.nn.l2_loss(scaled), largest, tf.reduce_sum(flat), count, size, lost]
    return tf.cast(tf.stack(columns), tf.float32)


def gradient_columns(rows: Array) -> Array:
    """`[n, 6]`, in the order of `GRADIENT_STATISTICS`, from as many results of `sums`. Where some elements are NaN,
    those that are infinite are counted with them."""
    squares, largest, total, count, size, lost = (column.astype(np.float64) for column in rows.T)
    infinite, lost = np.maximum(lost, 0.0), np.abs(lost)
    finite = np.maximum(size - lost, 1.0)
    # The sum of finite elements may overflow.
    mean = np.where(np.isinf(total), largest, total / finite)
    zeros = np.maximum(size - lost - count, 0.0) / np.maximum(size, 1.0)
    columns = [largest * np.sqrt(2.0 * squares), largest, mean, zeros, lost - infinite, infinite]
    return np.stack(columns, 1).astype(np.float32)


def table(listed: Sequence[Any]) -> Any:
    """float32 `[n, 6]`: the values of `Later`s and of tensors, `[6]` each, in the graph that is open."""
    parts: list[Any] = []
    waiting: list[Later] = []
    for each in [*listed, None]:
        if waiting and (not isinstance(each, Later) or _kind(each) != _kind(waiting[0])):
            parts += _together(waiting)
            waiting = []
        if isinstance(each, Later):
            waiting.append(each)
        elif each is not None:
            parts.append(each[tf.newaxis])
    return tf.concat(parts, 0) if parts else tf.zeros([0, _COLUMNS])


def _kind(each: Later) -> Any:
    return each.of, each.tensor.dtype


def _together(listed: Sequence[Later]) -> Iterator[Any]:
    tensors = [_opaque(each.tensor) for each in listed]
    for count in _TOGETHER:
        while len(tensors) >= count:
            yield _compiled(listed[0].of, tensors[0].dtype, count)(*tensors[:count])
            tensors = tensors[count:]


def _opaque(tensor: Any) -> Any:
    """TensorFlow would specialise a call whose argument turns out to be constant (the gradient of a mean is), and does
    not find the copy then inside a nested function (seen with TensorFlow 2.21)."""
    return behind(tensor) if is_constant(tensor.op, _LONGEST) else tensor


@functools.cache
def _compiled(of: Callable[[Any], Any], dtype: Any, count: int) -> Any:
    # Outside of any graph that is being built, because the function outlives it.
    with tf.init_scope():

        def measure(*tensors: Any) -> Any:
            return tf.stack([of(each) for each in tensors])

        shared = tf.function(measure, autograph=False, experimental_attributes={"_noinline": True})
        return shared.get_concrete_function(*[tf.TensorSpec(None, dtype)] * count)
