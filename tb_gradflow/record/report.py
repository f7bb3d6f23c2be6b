"""The form of a report: what `analyse` concludes from a run and `serve` presents.

`frontend/src/record.ts` has these types too. `Report.to_dict` of the public API is a projection of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tb_gradflow.record.graph import BatchFit, Kept, Trained
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
"""The result for a variable in a step. `integer` is a tensor of integers for which a gradient was requested, which has
no derivative. `not_measured` means that no gradient was recorded, because no step was completed or none was requested.
"""

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
"""The worst first."""


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
    """A variable and its result in the training step.

    Attributes:
        gradient: Null if no gradient arrived, or none was measured.
        listed: Whether a report lists it: the model's variables, those for which a gradient was requested, and others
            with a finding. The step may read more.
        written: Its name in the user's code, if it only has TensorFlow's default name.
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
    """The op that a finding names as the cause."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class SourceReport:
    """The line of the user's code in a finding."""

    file: str
    line: int
    code: str


@dataclass(frozen=True, slots=True)
class Edit:
    """A fix as whole lines of the user's source.

    Attributes:
        file: As of a `SourceReport`.
        line: Number of the first line that it replaces, from one.
        end_line: Number of the last one.
        before: Those lines as they were recorded, with their indentation, without the last line break.
        after: The new lines; may be more or fewer.
    """

    file: str
    line: int
    end_line: int
    before: str
    after: str

    def overlaps(self, other: Edit) -> bool:
        """Whether both change a common line."""
        return self.file == other.file and self.line <= other.end_line and other.line <= self.end_line


@dataclass(frozen=True, slots=True)
class VariableNorm:
    """The norm of a variable's gradient.

    Attributes:
        variable: Its name.
        norm: The norm.
        written: As of a `VariableReport`.
    """

    variable: str
    norm: float
    written: str = ""


@dataclass(frozen=True, slots=True)
class Tried:
    """The result of an edit in the step that was explained, which was run again with the edit applied in memory.

    Attributes:
        works: The program ran, the loss is finite, and each variable of the finding gets a gradient that is finite and
            not zero throughout. If it was trained: it trains these variables.
        loss: The loss before and after the edit; null if it was not finite or the step did not complete.
        gradient_norm: For each variable of the finding that now gets a gradient.
        with_others: Whether it works only together with the edits of other findings.
        step: The step of the training whose batch and weights were used; null for the step that was explained.
        trained: What some steps of training did; null if there were none.
        not_trained: The reason, as a sentence; empty if it was trained.
        keeps: What the edit leaves as it was.
    """

    works: bool
    loss: tuple[float | None, ...]
    gradient_norm: tuple[VariableNorm, ...]
    with_others: bool = False
    step: int | None = None
    trained: Trained | None = None
    not_trained: str = ""
    keeps: tuple[Kept, ...] = ()


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another edit that may fix the same finding.

    Attributes:
        edit: The lines.
        cost: What the user gives up with it, as a sentence.
        tried: Its result; null if it was not run.
    """

    edit: Edit
    cost: str
    tried: Tried | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was measured for a finding by running the step once more with one thing changed.

    Attributes:
        kind: influence: a variable was moved, and the loss computed again. reaction: the input of an op was moved, and
            its output computed again. intervention: what goes into an op was changed, or rows of the batch, and
            the gradients computed again. slope: a variable was moved along its gradient, and the loss computed again.
        of: The name of what was changed.
        on: The name of what was looked at.
        change: By how much that changed; null if it could not be measured.
        gradient: The largest element of the gradient that TensorFlow returned for what was changed; null for None.
        text: A sentence.
    """

    kind: Literal["influence", "reaction", "intervention", "slope"]
    of: str
    on: str
    change: float | None
    gradient: float | None
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a person should know about the gradient.

    Attributes:
        cause: The name of the cause (docs/causes.md).
        severity: error: will not train; warning: check it; info: explained; it may be meant.
        variables: Names of the variables it is about.
        op: The op that causes it; null if there is none.
        source: The user's line: that of the op; where Keras calls a layer or a loss, the one that creates the layer or
            compiles the model; null if unknown.
        message: What happens, in the user's words.
        fix: What to write instead.
        target: Index of the target in the trace.
        culprit: Index in the trace of this op; -1 if there is none.
        path: Ops from the first variable to the loss, as indices in the trace, including the culprit; only as far as
            the path goes if it never reaches the loss.
        edit: The fix as an edit; null if it is a decision, or if the source is not recorded.
        cost: What the user gives up with the edit, as a sentence; empty if there is no edit.
        tried: The result of the edit; null if it was not run.
        not_tried: If edits were to be tried but this one was not: the reason, as a sentence.
        alternatives: Other edits that may fix it, the better ones first.
        examples: The rows of the batch in which it begins, or the first of them if there are many; null if not known.
        evidence: What experiments with the step say; none if there were none.
        began: The recorded step in which it was found, if that is an earlier one than the report's; otherwise null.
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
    evidence: tuple[Evidence, ...] = ()
    began: int | None = None


@dataclass(frozen=True, slots=True)
class ExampleGradients:
    """The gradient of each row of the batch, over all variables.

    Attributes:
        norms: The norm for each row, as if that row were the whole batch; empty if not known.
        shares: The contribution of each row to the gradient of the batch, in its direction: they add up to one, and are
            negative for rows with an opposing gradient. Null if the gradient is zero or not finite.
        reason: Why the norms are not known; empty if they are.
    """

    norms: tuple[float, ...]
    shares: tuple[float, ...] | None
    reason: str


@dataclass(frozen=True, slots=True)
class Cosine:
    """The angle between the gradients that a variable gets from two terms.

    Attributes:
        term: The name of the other term.
        cosine: 1 if both have the same direction, -1 if they are opposite; null if one of them is zero or not finite.
    """

    term: str
    cosine: float | None


@dataclass(frozen=True, slots=True)
class TermVariable:
    """The gradient of one term for one variable.

    Attributes:
        variable: Its name.
        norm: Norm of the gradient from this term alone, including the term's weight, over the finite elements.
        share: This norm divided by the sum of the norms of all terms; null if they are all zero.
        cosine: The angle to each other term that reaches the variable.
        broken: Number of elements that are not finite.
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
        name: Its name in the user's line, or the output or layer that it comes from.
        source: That line; null if unknown.
        value: Its contribution to the loss; null if that was not finite.
        target: Index of the target in the trace.
        weight: Its contribution if it were one, or minus one, throughout; null if that was not finite.
        variables: The variables that its gradient reaches.
        kind: As in the record.
    """

    name: str
    source: SourceReport | None
    value: float | None
    target: int
    weight: float | None
    variables: tuple[TermVariable, ...]
    kind: TermKind = "term"


VerdictKind = Literal["gradient", "rate", "inputs", "labels", "updates", "terms", "batch", "learned", "nothing_found"]
"""What a run suffers from: missing or wrong gradients; steps that are too long or too short; what it is given; how the
weights are updated; a term of the loss; a batch of which the model learns nothing; nothing, because there is nothing
left to learn, or because nothing was found.
"""


@dataclass(frozen=True, slots=True)
class OverallVerdict:
    """One answer for the whole step.

    Attributes:
        kind: See `VerdictKind`.
        text: A sentence.
        ruled_out: What was measured and is not the reason, one sentence each; none if there is a finding.
    """

    kind: VerdictKind
    text: str
    ruled_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The result of one step.

    Attributes:
        step: The optimizer step; -1 if no step was completed.
        trace: Index of the trace of that step.
        summary: The state of the run in one sentence.
        variables: In the order of the trace.
        findings: Most severe first.
        unverified: Facts that could not be determined, one sentence each.
        terms: The summands of the losses whose gradients were measured separately; none if that was not requested, or
            no loss is a sum.
        verdict: What the run suffers from, if anything.
        fit: What experiments with one batch have found; null if there were none, or only later in the run.
    """

    format: int
    step: int
    trace: int
    summary: str
    variables: tuple[VariableReport, ...]
    findings: tuple[Finding, ...]
    unverified: tuple[str, ...]
    terms: tuple[TermReport, ...] = ()
    verdict: OverallVerdict = OverallVerdict("nothing_found", "", ())
    fit: BatchFit | None = None
