"""The gradient of each row of a batch, on request: the loss is computed for one row at a time, and compared with that
of the whole batch.

The gradient of a row is defined if the loss is a mean or a sum over the rows. This is checked: the gradients of the
rows must add up to that of the batch. They do not if rows depend on each other (BatchNormalization, contrastive
losses), or draw different random numbers than in the batch (dropout). Then only the reason is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from tb_gradflow.record.report import ExampleGradients
from tb_gradflow.trace.explain.run_mode import compiled_once

# For float32 sums in a different order.
_TOLERANCE = 1e-3

Array = npt.NDArray[Any]

Differentiate = Callable[..., Any]
"""Maps the arguments of a loss to its gradients, one for each variable; `None` for variables without one."""


def gradients_of_rows(differentiate: Differentiate, args: Sequence[Any]) -> ExampleGradients:
    """The norm of the gradient of each row of the batch, and its share of the batch's gradient.

    Runs the loss once for each row, in addition to the batch; the caller must restore whatever that changes.
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
