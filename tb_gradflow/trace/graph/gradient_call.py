"""The request of one call of `tape.gradient`, and the tape's result, also for each term of the loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tb_gradflow.record.schema import Outcome, TermKind
from tb_gradflow.trace.graph.dropped_masks import Dropped
from tb_gradflow.trace.graph.flat_ops import Ref
from tb_gradflow.trace.graph.flatten import Flattener
from tb_gradflow.trace.numerics.statistics_table import Block, Row
from tb_gradflow.trace.source.frames import Frame

UNMEASURED = "The gradient of each term of the loss could not be measured. Please report this:"


@dataclass(frozen=True, slots=True)
class Answer:
    """The tape's result for one source. `row` has its statistics; `None` if there are none."""

    outcome: Outcome
    row: Row | None


@dataclass(frozen=True, slots=True)
class Checked:
    """What shows whether a request's answer is finite.

    Attributes:
        targets: The floating tensors that were differentiated.
        gradients: The answer, without what is missing.
        scale: The factor by which an optimizer has multiplied the loss; `None` if it has not.
        unscaled: The loss without it, if known.
    """

    targets: Sequence[Any]
    gradients: Sequence[Any]
    scale: Any
    unscaled: Sequence[Any]


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


@dataclass(slots=True, eq=False)  # the loss is a tensor, and equality of tensors is an op
class Call:
    """One call of `tape.gradient`.

    Attributes:
        flattener: The graph of the target.
        targets: The flat ops' outputs that were differentiated.
        loss: Their unscaled sum.
        frames: The stack at the call.
        unconnected: What the caller requested for a missing gradient.
        watched: Indices of the variables that the tape watched.
        scaled: Whether an optimizer had scaled the loss.
        measured: Whether `loss` is its value.
        automatic: Whether the tape watches all trainable variables that are read; None if not known.
        inner: Whether another tape recorded the computation of this call.
        weighted: Whether the caller gave the gradients of what is differentiated, which is then not a sum.
        sources: The number of its sources.
        of_variable: Whether it differentiates a variable.
        by_hand: Whether its gradients were passed to the recorder, not computed by a tape.
        passed: Whether its answers were passed to the recorder: whatever computed them was not observed.
        rows: The statistics of all results that are gradients, unscaled; without a tensor until there is a result.
        aliases: For tensors that were not requested, the one whose gradient has the same statistics.
        variables: The result for each requested variable, by index.
        tensors: The result for each requested tensor on the path.
        gradients: The gradients of the tensors on the path, if the rows of the batch are needed.
        padded: For each dropped mask, its tensor and the row of the gradient at padded steps.
        terms: If the target is a sum, the results for its terms; without terms if they were not requested.
        given: The tensor of the graph for the gradient that the caller got, by index of the variable.
        indices: If these are slices: the rows of the variable that they belong to.
        checked: See `Checked`; `None` before the answer, for a Jacobian, and in a branch of a target from before it.
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
    weighted: bool = False
    sources: int | None = None
    of_variable: bool = False
    by_hand: bool = False
    passed: bool = False
    rows: Block = field(default_factory=Block)
    aliases: dict[Ref, Ref] = field(default_factory=dict)
    variables: dict[int, Answer] = field(default_factory=dict)
    tensors: dict[Ref, Answer] = field(default_factory=dict)
    gradients: dict[Ref, Any] = field(default_factory=dict)
    padded: list[tuple[Dropped, Ref, Row]] = field(default_factory=list)
    terms: TermAnswers = field(default_factory=TermAnswers)
    given: dict[int, Any] = field(default_factory=dict)
    indices: dict[int, Any] = field(default_factory=dict)
    checked: Checked | None = None
