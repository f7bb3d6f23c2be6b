"""The terms of a loss that is a sum, and the gradient of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

TermKind = Literal["term", "regularizers", "others"]
"""A term that somebody wrote, or a loss of one output; the penalties of all regularizers of weights together; or the
last ones of many, measured together."""

COSINES_IN_ROW = 6
"""As many as a row of `Chunk.gradients` has columns."""


@dataclass(frozen=True, slots=True)
class Term:
    """A summand of a target, with its weight.

    Attributes:
        target: Index in `Trace.targets`.
        name: What the user's line calls it; else the output, the layer or the loss function that it comes from.
        kind: What it is.
        op: Index in `Trace.ops` of the op that makes it; -1 where it depends on no variable, or is made by several.
        source: Index in `Trace.sources` of the user's line; null if unknown.
        row: Row of `Chunk.gradients`, whose first two columns are its value, as it adds to the loss, and its weight:
            what it would add if it was one, or minus one, throughout.
        trains: Whether it depends on what the gradient was requested for.
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
    """A gradient that arrived from one term alone: those of all terms of a target add up to its own.

    Attributes:
        term: Index in `Trace.terms`.
        variable: Index in `Trace.variables`.
        row: Row of `Chunk.gradients` with its statistics.
    """

    term: int
    variable: int
    row: int


@dataclass(frozen=True, slots=True)
class TermCosines:
    """The angles between the gradients of terms, for a variable that several of them reach.

    Attributes:
        target: Index in `Trace.targets`.
        variable: Index in `Trace.variables`.
        row: The first row of `Chunk.gradients` with the cosine of each two: of the terms that have a `TermGradient`
            there, in their order, the first with each later one, the second with each later one, and so on;
            `COSINES_IN_ROW` to a row. NaN where one of the two is zero or not finite.
    """

    target: int
    variable: int
    row: int
