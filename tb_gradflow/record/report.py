"""The form of a report: what `analyse` concludes from a run and `serve` hands out.

`frontend/src/record.ts` has these types too. `Report.to_dict` of the public API is a projection of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tb_gradflow.record.terms import TermKind

REPORT_FORMAT = 1

Status = Literal[
    "connected",
    "disconnected",
    "unused",
    "zero",
    "vanishing",
    "exploding",
    "nan",
    "inf",
    "frozen",
    "error",
    "integer",
    "not_measured",
]
"""What the step gave a variable. Of the last two: a tensor of integers that a gradient was requested for, which has no
derivative; and a gradient that nobody has seen, because no step was completed or because none was requested."""

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True, slots=True)
class GradientReport:
    """Statistics of a variable's gradient at one step, unscaled, over the finite elements."""

    norm: float
    max_abs: float
    mean_abs: float
    zero_fraction: float
    nan_count: int
    inf_count: int


@dataclass(frozen=True, slots=True)
class VariableReport:
    """A variable, and what the training step gave it.

    Attributes:
        gradient: Null if no gradient arrived, or none was measured.
        listed: Whether a report lists it: the model's own, those that were asked for, and others that a finding is
            about. The step may read more.
        written: What the user's code calls it, where it only has TensorFlow's name for variables without one.
    """

    name: str
    status: Status
    shape: tuple[int, ...]
    dtype: str
    gradient: GradientReport | None
    listed: bool = True
    written: str = ""


@dataclass(frozen=True, slots=True)
class OpReport:
    """The op that a finding blames."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class SourceReport:
    """The user's line that a finding speaks of."""

    file: str
    line: int
    code: str


@dataclass(frozen=True, slots=True)
class Edit:
    """A repair as whole lines of the user's source.

    Attributes:
        file: As of a `SourceReport`.
        line: Number of the first line that it replaces, from one.
        end_line: Number of the last one.
        before: Those lines as they were recorded, with their indentation, without the last line break.
        after: What to write in their place; may be more lines or fewer.
    """

    file: str
    line: int
    end_line: int
    before: str
    after: str

    def overlaps(self, other: Edit) -> bool:
        """Whether both change one and the same line."""
        return self.file == other.file and self.line <= other.end_line and other.line <= self.end_line


@dataclass(frozen=True, slots=True)
class VariableNorm:
    """The norm of a variable's gradient."""

    variable: str
    norm: float


@dataclass(frozen=True, slots=True)
class Tried:
    """What an edit did in the step that was explained, run again with the edit applied in memory.

    Attributes:
        works: The program ran, the loss is finite, and each variable of the finding gets a gradient that is finite and
            not zero throughout.
        loss: Before the edit and after it; null where it was not finite or the step did not complete.
        gradient_norm: Of each variable of the finding that gets a gradient now.
        with_others: Whether it works together with the edits of other findings alone.
    """

    works: bool
    loss: tuple[float | None, ...]
    gradient_norm: tuple[VariableNorm, ...]
    with_others: bool = False


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another edit that may fix the same finding.

    Attributes:
        edit: The lines.
        cost: What the user gives up with it, as a sentence.
        tried: What it did; null if it was not run.
    """

    edit: Edit
    cost: str
    tried: Tried | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a person should know about the gradient.

    Attributes:
        cause: A word of the taxonomy (docs/causes.md).
        severity: error: will not train; warning: look at it; info: explained, and probably meant.
        variables: Names of the variables it is about.
        op: The op to blame; null where no op is.
        source: The user's line; null if unknown.
        message: What happens, in the user's words.
        fix: What to write instead.
        target: Index of the target in the trace.
        culprit: Index in the trace of the op to blame; -1 where there is none.
        path: Ops from the first variable to the loss, as indices in the trace, the culprit among them; as far
            as the way goes if it never reaches the loss.
        edit: The fix as an edit; null where it is a decision, or the source is not recorded.
        cost: What the user gives up with the edit, as a sentence; empty where there is none.
        tried: What the edit did; null if it was not run.
        not_tried: Where edits were to be tried and this one was not: why, as a sentence.
        alternatives: Other edits that may fix it, the better ones first.
        examples: The rows of the batch in which it begins, the first of them where they are many; null where that is
            not known.
    """

    cause: str
    severity: Severity
    variables: tuple[str, ...]
    op: OpReport | None
    source: SourceReport | None
    message: str
    fix: str
    target: int
    culprit: int
    path: tuple[int, ...]
    edit: Edit | None = None
    cost: str = ""
    tried: Tried | None = None
    not_tried: str = ""
    alternatives: tuple[Alternative, ...] = ()
    examples: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class ExampleGradients:
    """The gradient of each row of the batch, over all variables.

    Attributes:
        norms: Its norm, as if the row were the whole batch; empty if that is not known.
        shares: What it adds to the gradient of the batch, along that, as a part of the whole: they add up to one, and
            of rows that pull the other way they are negative. Null where the gradient is zero or not finite.
        reason: Why it is not known; empty if it is.
    """

    norms: tuple[float, ...]
    shares: tuple[float, ...] | None
    reason: str


@dataclass(frozen=True, slots=True)
class Cosine:
    """The angle between the gradients that a variable gets from two terms.

    Attributes:
        term: The name of the other one.
        cosine: 1 where both pull the same way, -1 where they pull against each other; null where one of them is zero
            or not finite.
    """

    term: str
    cosine: float | None


@dataclass(frozen=True, slots=True)
class TermVariable:
    """What one term teaches one variable.

    Attributes:
        variable: Its name.
        norm: Of the gradient of that term alone, with the term's weight, over the finite elements.
        share: That norm over the sum of the norms of all terms; null where they are all zero.
        cosine: With each other term that reaches the variable.
        broken: How many elements of it are not finite.
    """

    variable: str
    norm: float
    share: float | None
    cosine: tuple[Cosine, ...]
    broken: int = 0


@dataclass(frozen=True, slots=True)
class TermReport:
    """A summand of a loss.

    Attributes:
        name: What the user's line calls it, or the output or layer that it comes from.
        source: That line; null if unknown.
        value: What it adds to the loss; null if that was not finite.
        target: Index of the target in the trace.
        weight: What it would add if it was one, or minus one, throughout; null if that was not finite.
        variables: Those that its gradient reaches.
        kind: As in the record.
    """

    name: str
    source: SourceReport | None
    value: float | None
    target: int
    weight: float | None
    variables: tuple[TermVariable, ...]
    kind: TermKind = "term"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything that one step says.

    Attributes:
        step: The optimizer step it is about; -1 if no step was completed.
        trace: Index of the trace of that step.
        summary: One sentence that says how the run is.
        variables: In the order of the trace.
        findings: Most severe first.
        unverified: What could not be known, a sentence each.
        terms: The summands of the losses whose gradients were measured apart; none where that was not asked for, or
            no loss is a sum.
    """

    format: int
    step: int
    trace: int
    summary: str
    variables: tuple[VariableReport, ...]
    findings: tuple[Finding, ...]
    unverified: tuple[str, ...]
    terms: tuple[TermReport, ...] = ()
