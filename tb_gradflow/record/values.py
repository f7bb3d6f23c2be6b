"""What is measured of a step besides its gradients: its forward values, if its loss or a gradient is not finite, and
experiments with it, if a variable gets no gradient."""

from __future__ import annotations

from dataclasses import dataclass

from tb_gradflow.record.experiments import Influence, Intervention, LineSearch, Reaction, Slope, Spike

MOST_ROWS = 32
"""Number of batch rows that are listed; for more, only their number is kept."""

MOST_NUMBERS = 64
"""Number of elements of a row that are kept on request."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Positions along one axis of a tensor at which an element is not finite.

    Attributes:
        count: Number of positions.
        first: The first of them, at most `MOST_ROWS`.
    """

    count: int
    first: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OpValue:
    """The statistics of one floating tensor: an output of an op, or an input that no op of the trace produces.

    Attributes:
        op: Index in `Trace.ops`.
        output: Which of its outputs; -1 for an input.
        input: Which of its inputs, if no op of the trace produces it; -1 for an output.
        shape: Its sizes in this step.
        smallest: The smallest finite element; 0 if there is none.
        largest: The largest finite element; 0 if there is none.
        zeros: Number of elements that are exactly zero.
        negative: Number of elements below zero, including infinities.
        nan_count: Number of NaN elements.
        inf_count: Number of elements that are plus infinity.
        negative_inf_count: Number of elements that are minus infinity.
        rows: The rows of the batch that are not finite; null if all are, or if the first axis is not the batch.
        columns: The positions along the last axis that are not finite; null if all are, or if it is the only axis.
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
        op: Index in `Trace.ops` of the op that produces the tensor.
        output: Which of its outputs.
        rows: The rows.
    """

    target: int
    op: int
    output: int
    rows: Rows


@dataclass(frozen=True, slots=True)
class Example:
    """One row of one tensor of the batch, that is, user data: kept only on request.

    Attributes:
        input: Name, as in an `Input`.
        row: Which row.
        numbers: Its first elements, at most `MOST_NUMBERS`; null for elements that are not finite.
        count: Number of its elements.
    """

    input: str
    row: int
    numbers: tuple[float | None, ...]
    count: int


@dataclass(frozen=True, slots=True)
class DataRow:
    """Where a row of the batch is in the data that `fit` was given: in its arrays, or in the first source of a
    `tf.data.Dataset`. Only its number is kept.

    Attributes:
        row: The row of the batch.
        index: Its number in the data; the first of them if several rows of the data are the same in every bit.
        equal: How many these are; 1 if the row is known by its position.
    """

    row: int
    index: int
    equal: int = 1


@dataclass(frozen=True, slots=True)
class KeptNumber:
    """A plain Python number that a compiled step has read: it keeps the value from when it was compiled.

    Attributes:
        name: As written, such as `self.beta`.
        file: The file of the code that reads it.
        line: The first line that does.
        kept: Its value just after the step was compiled.
        now: Its value in this step. Equal to `kept` if the code of the step itself updates it: compiled code does that
            only once.
    """

    name: str
    file: str
    line: int
    kept: float
    now: float


@dataclass(frozen=True, slots=True)
class WeightsBefore:
    """A variable before a step, of which no earlier step is recorded.

    Attributes:
        variable: Index in `Trace.variables`.
        norm: Its L2 norm, over the finite elements.
        sum: The sum of its finite elements.
    """

    variable: int
    norm: float
    sum: float


@dataclass(frozen=True, slots=True)
class StepValues:
    """The measurements of a step other than its gradients.

    Attributes:
        step: As of a `StepRecord`.
        batch: Number of rows of the batch; -1 if its tensors have no common first axis, or that was not measured.
        values: Of ops whose value can be read: not of those inside loops, branches and functions.
        gradient_rows: For tensors whose gradient is not finite in some rows.
        examples: The first rows that are not finite; none unless requested.
        influences: Of variables that get no gradient, or one of zero; none in older logs.
        not_moved: Why these could not be measured; empty if they could, or there are none.
        reactions: Of ops that may be the reason; none in older logs.
        line_searches: Of a step whose loss does not fall; none in older logs.
        interventions: That change a gradient which is not finite, or too small; none in older logs.
        slopes: Of variables whose gradient is in question; none in older logs.
        weights: Of the first step of a trace, its variables before it; none in older logs.
        spike: Of a step whose loss or gradient was not usual; null in others, and in older logs.
        data_rows: Of the rows that the others name, where they are in the data set; none if that is not certain, and in
            older logs.
        kept_numbers: Of a compiled step: those that are others by now, or that it should update; none in older logs.
    """

    step: int
    batch: int
    values: tuple[OpValue, ...]
    gradient_rows: tuple[GradientRows, ...] = ()
    examples: tuple[Example, ...] = ()
    influences: tuple[Influence, ...] = ()
    not_moved: str = ""
    reactions: tuple[Reaction, ...] = ()
    line_searches: tuple[LineSearch, ...] = ()
    interventions: tuple[Intervention, ...] = ()
    slopes: tuple[Slope, ...] = ()
    weights: tuple[WeightsBefore, ...] = ()
    spike: Spike | None = None
    data_rows: tuple[DataRow, ...] = ()
    kept_numbers: tuple[KeptNumber, ...] = ()
