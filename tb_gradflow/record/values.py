"""What the forward pass of one step computed, measured where its loss or a gradient is not finite."""

from __future__ import annotations

from dataclasses import dataclass

MOST_ROWS = 32
"""How many rows of the batch are listed; of more the number is kept."""

MOST_NUMBERS = 64
"""How many numbers of a row are kept on request."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Places along one axis of a tensor at which something is not finite.

    Attributes:
        count: How many there are.
        first: The first of them, at most `MOST_ROWS`.
    """

    count: int
    first: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OpValue:
    """The statistics of one floating tensor: an output of an op, or an input that no op of the trace makes.

    Attributes:
        op: Index in `Trace.ops`.
        output: Which of its outputs; -1 for an input.
        input: Which of its inputs, one that no op of the trace makes; -1 for an output.
        shape: The sizes that it has in this step.
        smallest: Of the finite elements; 0 where there is none.
        largest: Likewise.
        zeros: How many elements are exactly zero.
        negative: How many are less than zero, infinities among them.
        nan_count: How many are NaN.
        inf_count: How many are infinity.
        negative_inf_count: How many are minus infinity.
        rows: The rows of the batch that are not finite; null where all are, or the first axis is none of examples.
        columns: The places along the last axis that are not finite; null where all are, or it is the only axis.
    """

    op: int
    output: int
    input: int
    shape: tuple[int, ...]
    smallest: float
    largest: float
    zeros: int
    negative: int
    nan_count: int
    inf_count: int
    negative_inf_count: int
    rows: Rows | None = None
    columns: Rows | None = None


@dataclass(frozen=True, slots=True)
class GradientRows:
    """The rows of the batch in which the gradient of a tensor is not finite.

    Attributes:
        target: Index of the target.
        op: Index in `Trace.ops` of the op that makes the tensor.
        output: Which of its outputs.
        rows: The rows.
    """

    target: int
    op: int
    output: int
    rows: Rows


@dataclass(frozen=True, slots=True)
class Example:
    """One row of one part of the batch, the user's own numbers: kept on request alone.

    Attributes:
        input: As of an `Input`.
        row: Which row.
        numbers: The first of its numbers, at most `MOST_NUMBERS`; null where one is not finite.
        count: How many it has.
    """

    input: str
    row: int
    numbers: tuple[float | None, ...]
    count: int


@dataclass(frozen=True, slots=True)
class StepValues:
    """What was measured of a step besides its gradients.

    Attributes:
        step: As of a `StepRecord`.
        batch: How many rows the batch has; -1 where its tensors have no first axis in common.
        values: Of the ops whose value TensorFlow gives away: not of those inside of loops, branches and functions.
        gradient_rows: Of the tensors whose gradient is not finite in some rows.
        examples: The first rows in which something is not finite; none unless they were requested.
    """

    step: int
    batch: int
    values: tuple[OpValue, ...]
    gradient_rows: tuple[GradientRows, ...] = ()
    examples: tuple[Example, ...] = ()
