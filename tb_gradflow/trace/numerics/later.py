"""Statistics of tensors of an observed step, which functions made from it compute together with those of others.

In the graph of a function that trains, a call of another function costs two milliseconds when TensorFlow compiles it,
however small the called one is: so one call measures several tensors. Compiling the called one takes as long as it has
ops, and running it as long as it passes over the elements, above all if it writes as many: memory that is new to the
process costs more than arithmetic. So it has few ops, and one copy of the tensor. What is rare is left to NumPy, in a
branch of one op.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from tb_gradflow.trace.numerics.fusion import behind, is_constant

Array = npt.NDArray[np.float32]

_TOGETHER = 8

_COLUMNS = 6

_LONGEST = 1000

SAFE = (1e-15, 1e15)
"""Largest magnitudes between these have squares and sums of squares inside float32. Squares of elements under 1e-19
vanish, and gradients that small are what we are here to see."""


@dataclass(frozen=True, slots=True)
class Later:
    """The statistics of a tensor.

    Attributes:
        of: Computes float32 `[6]` from it.
        tensor: The tensor.
    """

    of: Callable[[Any], Any]
    tensor: Any


def for_xla(later: Later) -> Later:
    """The same statistics, or what they follow from, without what XLA cannot compile."""
    return Later(sums, later.tensor) if later.of is statistics else later


def wide(tensor: Any) -> Any:
    """A tensor as float32, or as float64 if it has that precision: in half precision squares are lost."""
    return tensor if tensor.dtype in (tf.float32, tf.float64) else tf.cast(tensor, tf.float32)


def sums(tensor: Any) -> Any:
    """float32 `[6]`, from which `gradient_columns` computes the statistics of a gradient.

    Without branches, as XLA needs it: elements are scaled by the largest, as BLAS nrm2 does.
    """
    whole = tf.reshape(wide(tf.abs(tensor)), [-1])
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


def table(listed: Sequence[Any], is_wanted: Any = None) -> Any:
    """float32 `[n, 6]`: the values of `Later`s and of tensors, `[6]` each, in the graph that is open. Those of `Later`s
    are zeros where they are not wanted; `None`: they always are."""
    parts: list[Any] = []
    for kind, grouped in itertools.groupby(listed, _kind):
        group = list(grouped)
        parts += [each[tf.newaxis] for each in group] if kind is None else _together(group, is_wanted)
    return tf.concat(parts, 0) if parts else tf.zeros([0, _COLUMNS])


def _kind(each: Any) -> Any:
    return (each.of, each.tensor.dtype) if isinstance(each, Later) else None


def _together(listed: Sequence[Later], is_wanted: Any) -> Iterator[Any]:
    of, dtype = _kind(listed[0])
    tensors = [_opaque(each.tensor) for each in listed]
    while tensors:
        # Another function for each smaller number would have to be compiled.
        count = 1 if len(tensors) <= _TOGETHER // 4 else _TOGETHER
        here, tensors = tensors[:count], tensors[count:]
        nothing = [behind(tf.zeros([], dtype))] * (count - len(here))
        given = [*here, *nothing] if is_wanted is None else [is_wanted, *here, *nothing]
        rows = _compiled(of, dtype, count, is_wanted is not None)(*given)
        yield rows[: len(here)] if nothing else rows


def _opaque(tensor: Any) -> Any:
    """TensorFlow would specialise a call whose argument turns out to be constant (the gradient of a mean is), and does
    not find the copy then inside a nested function (seen with TensorFlow 2.21)."""
    return behind(tensor) if is_constant(tensor.op, _LONGEST) else tensor


@functools.cache
def _compiled(of: Callable[[Any], Any], dtype: Any, count: int, has_choice: bool) -> Any:
    def measure(*tensors: Any) -> Any:
        return columns_of(tensors) if of is statistics else tf.stack([of(each) for each in tensors])

    def measure_if(is_wanted: Any, *tensors: Any) -> Any:
        return tf.cond(is_wanted, lambda: measure(*tensors), lambda: tf.zeros([count, _COLUMNS]))

    tensors = [tf.TensorSpec(None, dtype)] * count
    if has_choice:
        return shared_function(measure_if, tf.TensorSpec([], tf.bool), *tensors)
    return shared_function(measure, *tensors)


def shared_function(function: Callable[..., Any], *given: Any) -> Any:
    """A function that calls share, and that is not inlined in them, compiled for such arguments."""
    # Outside of any graph that is being built, because the function outlives it.
    with tf.init_scope():
        shared = tf.function(function, autograph=False, experimental_attributes={"_noinline": True})
        return shared.get_concrete_function(*given)


def statistics(tensor: Any) -> Any:
    """float32 `[6]`: the statistics of a gradient, in the order of `GRADIENT_STATISTICS`."""
    return columns_of([tensor])[0]


def columns_of(tensors: Sequence[Any]) -> Any:
    """float32 `[n, 6]`: the `statistics` of several tensors of one type."""
    squares, largest, total, count, size = map(tf.stack, zip(*map(_parts, tensors), strict=True))
    size = tf.cast(size, largest.dtype)
    filled, none = tf.maximum(size, 1), tf.zeros_like(largest)
    columns = [tf.sqrt(2 * squares), largest, total / filled, (size - count) / filled, none, none]
    plain = tf.cast(tf.stack(columns, 1), tf.float32)
    low, high = (tf.constant(limit, largest.dtype) for limit in SAFE)
    # Any NaN or Inf among the elements shows in their sum.
    is_plain = tf.math.is_finite(total) & (largest < high) & ((largest > low) | tf.equal(largest, 0))

    def exact() -> Any:
        return tf.numpy_function(_exact_columns, list(tensors), tf.float32, stateful=False)

    found = tf.cond(tf.reduce_all(is_plain), lambda: plain, exact)
    return tf.ensure_shape(found, plain.shape)


def _parts(tensor: Any) -> tuple[Any, ...]:
    """Half the sum of squares, the largest magnitude and the sum of magnitudes, and the numbers of elements that are
    not zero and of all."""
    magnitude = wide(tf.abs(tf.reshape(tensor, [-1])))
    sums = tf.nn.l2_loss(magnitude), tf.reduce_max(magnitude), tf.reduce_sum(magnitude)
    # When nothing else needs them any more, the signs take the memory of the magnitudes.
    with tf.control_dependencies(sums):
        count = tf.reduce_sum(tf.sign(magnitude))
    return *sums, count, tf.size(magnitude)


@np.errstate(all="ignore")
def _exact_columns(*arrays: Any) -> Array:
    """The `statistics` of arrays, of whatever magnitude; the first three are over the finite elements."""
    rows = []
    for array in arrays:
        magnitude = np.abs(array if np.iscomplexobj(array) else np.asarray(array, np.float64)).ravel()
        finite = magnitude[np.isfinite(magnitude)]
        nans = np.count_nonzero(np.isnan(magnitude))
        largest = finite.max(initial=0.0)
        # Scaled by the largest, as BLAS nrm2 does.
        norm = largest * np.linalg.norm(finite / largest) if largest else 0.0
        zeros = np.count_nonzero(finite == 0) / max(magnitude.size, 1)
        mean = finite.sum() / max(finite.size, 1)
        rows.append([norm, largest, mean, zeros, nans, magnitude.size - finite.size - nans])
    return np.array(rows, np.float32)
