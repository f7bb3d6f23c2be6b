"""The tape's answer for each term of a loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tb_gradflow.record.schema import TermKind
from tb_gradflow.trace.graph.flat_ops import Ref
from tb_gradflow.trace.source.frames import Frame


@dataclass(slots=True)
class TermAnswer:
    """One term.

    Attributes:
        name: Its name.
        kind: As in the record.
        ref: The flat op's output that it is; None if there is none, or if several are joined.
        frames: The stack that contains the user's line for it.
        trains: Whether it depends on the sources of the gradient.
        row: The row of its value.
        gradients: By variable, the row with the statistics of its gradient.
    """

    name: str
    kind: TermKind
    ref: Ref | None
    frames: Sequence[Frame]
    trains: bool
    row: int
    gradients: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class TermAnswers:
    """The terms of the target of one call of `tape.gradient`.

    Attributes:
        terms: In the order of the loss.
        cosines: For each variable that several of them reach, the first row with the cosines of all pairs.
        problem: Why they could not be measured; empty if they were, or if that was not needed.
    """

    terms: list[TermAnswer] = field(default_factory=list)
    cosines: dict[int, int] = field(default_factory=dict)
    problem: str = ""

    def move(self, by: int) -> None:
        """Shifts its rows by this number."""
        for term in self.terms:
            term.row += by
            term.gradients = {variable: row + by for variable, row in term.gradients.items()}
        self.cosines = {variable: row + by for variable, row in self.cosines.items()}
