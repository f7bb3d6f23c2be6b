"""The request of one call of `tape.gradient`, and the tape's answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tb_gradflow.record.schema import Outcome
from tb_gradflow.trace.graph.dropped_masks import Dropped
from tb_gradflow.trace.graph.flat_ops import Ref
from tb_gradflow.trace.graph.flatten import Flattener
from tb_gradflow.trace.graph.term_answers import TermAnswers
from tb_gradflow.trace.source.frames import Frame


@dataclass(frozen=True, slots=True)
class Answer:
    """The tape's answer for one source. `row` is its index among the statistics, or None."""

    outcome: Outcome
    row: int | None

    def moved(self, rows: int) -> Answer:
        return self if self.row is None else Answer(self.outcome, self.row + rows)


@dataclass(slots=True)
class Call:
    """One call of `tape.gradient`.

    Attributes:
        flattener: The graph that the target lives in.
        targets: The flat ops' outputs that were differentiated.
        loss: Their unscaled sum.
        frames: The stack at the call.
        unconnected: What the caller requested for a missing gradient.
        watched: Indices of the variables that the tape watched.
        scaled: Whether an optimizer had scaled the loss.
        measured: Whether `loss` is its value.
        automatic: Whether the tape watches all trainable variables that are read; None if not known.
        inner: Whether another tape watched what this call computed.
        sources: Number of sources.
        of_variable: Whether it differentiates a variable.
        by_hand: Whether its gradients were passed in rather than taken from a tape.
        first_row: Index of the first row of `statistics` among all rows.
        statistics: float32 `[rows, 6]`, unscaled: the statistics of all answers that are gradients; None until there is
            an answer. In a nested function's graph, this and the loss are resource cells.
        aliases: For tensors that were not requested, the tensor whose gradient has the same statistics.
        variables: Answer by index of the requested variable.
        tensors: Answer by requested tensor on the path.
        gradients: The gradients of tensors on the path, if the rows of the batch are needed.
        padded: The rows with the gradient at padded steps, for layers that drop a mask.
        terms: The answers for the terms of a target that is a sum; no terms if they were not requested.
    """

    flattener: Flattener
    targets: tuple[Ref, ...]
    loss: Any
    frames: Sequence[Frame]
    unconnected: Literal["none", "zero"]
    watched: frozenset[int]
    scaled: bool = False
    measured: bool = True
    automatic: bool | None = None
    inner: bool = False
    sources: int | None = None
    of_variable: bool = False
    by_hand: bool = False
    first_row: int = 0
    statistics: Any = None
    aliases: dict[Ref, Ref] = field(default_factory=dict)
    variables: dict[int, Answer] = field(default_factory=dict)
    tensors: dict[Ref, Answer] = field(default_factory=dict)
    gradients: dict[Ref, Any] = field(default_factory=dict)
    padded: list[tuple[Dropped, int]] = field(default_factory=list)
    terms: TermAnswers = field(default_factory=TermAnswers)

    def renumber(self, first_row: int) -> None:
        """Renumbers its rows to start at another one."""
        by = first_row - self.first_row
        self.variables = {source: answer.moved(by) for source, answer in self.variables.items()}
        self.tensors = {source: answer.moved(by) for source, answer in self.tensors.items()}
        self.padded = [(dropped, row + by) for dropped, row in self.padded]
        self.terms.move(by)
        self.first_row = first_row
