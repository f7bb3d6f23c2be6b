"""The terms of a loss that is a sum, and the gradient of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

TermKind = Literal["term", "regularizers", "others"]
"""A term in the user's code, or a loss of one output; the penalties of all weight regularizers together; or the last
ones of many, measured together.
"""

COSINES_IN_ROW = 6
"""As many as there are columns in a row of `Chunk.gradients`."""


@dataclass(frozen=True, slots=True)
class Term:
    """A summand of a target, with its weight.

    Attributes:
        target: Index in `Trace.targets`.
        name: Its name in the user's line; otherwise the output, the layer or the loss function that it comes from.
        kind: What it is.
        op: Index in `Trace.ops` of the op that computes it; -1 if it depends on no variable, or if several ops compute
            it.
        source: Index in `Trace.sources` of the user's line; null if unknown.
        row: Row of `Chunk.gradients`, whose first two columns are its contribution to the loss, and its weight: its
            contribution if it were one, or minus one, throughout.
        trains: Whether it depends on the sources of the gradient.
    """

    target: int
    name: str
    kind: TermKind
    op: int
    source: int | None
    row: int
    trains: bool


@dataclass(frozen=True, slots=True)
class TermGradient:
    """A gradient from a single term: the gradients of all terms of a target add up to the target's.

    Attributes:
        term: Index in `Trace.terms`.
        variable: Index in `Trace.variables`.
        row: Row of `Chunk.gradients` with its statistics.
    """

    term: int
    variable: int
    row: int


@dataclass(frozen=True, slots=True)
class TermTensor:
    """The gradient that arrives at a layer's output from a single term. It is measured at no other tensor.

    Attributes:
        term: Index in `Trace.terms`.
        op: Index in `Trace.ops` of the op that produces the tensor.
        output: Which of its outputs.
        row: Row of `Chunk.gradients` with its statistics; null if none arrives from this term.
    """

    term: int
    op: int
    output: int
    row: int | None


@dataclass(frozen=True, slots=True)
class TermCosines:
    """The cosines between the gradients of terms, for a variable that several of them reach.

    Attributes:
        target: Index in `Trace.targets`.
        variable: Index in `Trace.variables`.
        row: The first row of `Chunk.gradients` with the cosine of each pair of terms that have a `TermGradient` there,
            in order: the first with each later one, the second with each later one, and so on; `COSINES_IN_ROW` in a
            row. NaN if one of the two is zero or not finite.
    """

    target: int
    variable: int
    row: int
