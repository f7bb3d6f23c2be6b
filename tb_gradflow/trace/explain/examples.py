"""The gradient of each row of a batch, on request: the same loss of one row at a time, compared with that of all.

A gradient of one row is defined where the loss is a mean or a sum over the rows. Whether it is, is seen: the rows'
gradients must add up to that of the batch. They do not where rows depend on each other (BatchNormalization, contrastive
losses) or draw other random numbers than together (dropout). Then nothing is told but why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from tb_gradflow.record.report import ExampleGradients
from tb_gradflow.trace.explain.run_mode import compiled_once

# Of sums in float32 in another order.
_TOLERANCE = 1e-3

Array = npt.NDArray[Any]

Differentiate = Callable[..., Any]
"""From the arguments of a loss to its gradients, one for each variable; `None` for those that get none."""


def gradients_of_rows(differentiate: Differentiate, args: Sequence[Any]) -> ExampleGradients:
    """For each row of the batch the norm of its gradient, and its share of that of the batch.

    Runs the loss of one row as often as there are rows, besides that of the batch: whatever that changes is the
    caller's to put back.
    """
    flat = [each if isinstance(each, tf.Tensor) else _tensor(each) for each in tf.nest.flatten(args)]
    lengths = {each.shape[0] for each in flat if each is not None and each.shape.rank}
    if len(lengths) != 1 or None in lengths:
        return _unknown("the arguments have no common first axis that could be the batch")
    [count] = lengths
    function = compiled_once(lambda *given: _present(differentiate(*given)))
    whole = _vector(function(*args))
    norms, along, total = np.zeros(count), np.zeros(count), np.zeros_like(whole)
    for row in range(count):
        own = _vector(function(*_row_of(args, flat, row)))
        norms[row], along[row] = np.linalg.norm(own), own @ whole
        total += own
    if not np.isfinite(whole).all():
        return ExampleGradients(tuple(map(float, norms)), None, "")
    divisor = next((each for each in (count, 1) if _agrees(total / each, whole, norms.sum() / each)), None)
    if divisor is None:
        return _unknown(
            "the gradients of the rows do not add up to the gradient of the batch: rows depend on each other, as "
            "with BatchNormalization or in a contrastive loss, or draw random numbers, as with dropout"
        )
    length = float(whole @ whole)
    shares = tuple(map(float, along / divisor / length)) if length else None
    return ExampleGradients(tuple(map(float, norms)), shares, "")


def _unknown(reason: str) -> ExampleGradients:
    return ExampleGradients((), None, reason)


def _agrees(one: Array, other: Array, size: float) -> bool:
    return bool(np.linalg.norm(one - other) <= _TOLERANCE * max(size, float(np.linalg.norm(other))))


def _tensor(value: Any) -> Any:
    return tf.convert_to_tensor(value) if isinstance(value, np.ndarray) else None


def _row_of(args: Sequence[Any], flat: Sequence[Any], row: int) -> Any:
    """The arguments with one row of each tensor."""
    parts = [
        each if tensor is None or not tensor.shape.rank else tensor[row : row + 1]
        for each, tensor in zip(tf.nest.flatten(args), flat, strict=True)
    ]
    return tf.nest.pack_sequence_as(args, parts)


def _present(gradients: Sequence[Any]) -> list[Any]:
    return [tf.convert_to_tensor(each) for each in gradients if each is not None]


def _vector(gradients: Sequence[Any]) -> Array:
    flat = [each.numpy().astype(np.float64).ravel() for each in gradients]
    return np.concatenate(flat) if flat else np.zeros(0)
