"""The tape's result for each term of a loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tb_gradflow.record.schema import TermKind
from tb_gradflow.trace.graph.flat_ops import Ref
from tb_gradflow.trace.numerics.statistics_table import Row
from tb_gradflow.trace.source.frames import Frame

UNMEASURED = "The gradient of each term of the loss could not be measured. Please report this:"


@dataclass(slots=True)
class TermAnswer:
    """One term.

    Attributes:
        name: Its name.
        kind: As in the record.
        ref: Its output of a flat op; None if there is none, or if several are joined.
        frames: The stack that contains the user's line for it.
        trains: Whether it depends on the sources of the gradient.
        row: With its value.
        gradients: By variable, the statistics of its gradient.
        tensors: The same by the output of a layer; null where none arrives.
    """

    name: str
    kind: TermKind
    ref: Ref | None
    frames: Sequence[Frame]
    trains: bool
    row: Row
    gradients: dict[int, Row] = field(default_factory=dict)
    tensors: dict[Ref, Row | None] = field(default_factory=dict)


@dataclass(slots=True)
class TermAnswers:
    """The terms of the target of one call of `tape.gradient`.

    Attributes:
        terms: In the order of the loss.
        cosines: For each variable that several of them reach, the first row with the cosines of all pairs.
        problem: Why they could not be measured; empty if they were, or if that was not needed.
    """

    terms: list[TermAnswer] = field(default_factory=list)
    cosines: dict[int, Row] = field(default_factory=dict)
    problem: str = ""
