"""A cause: its name, and all texts about it."""

from __future__ import annotations

from dataclasses import dataclass

from tb_gradflow.analyse.user_code.candidate import Maker
from tb_gradflow.analyse.words.names import Writer


@dataclass(frozen=True, slots=True)
class Cause:
    """A reason why a variable does not train as it should, or does not train at all.

    Attributes:
        name: Its name in findings, in `docs/causes.md` and on the command line. Its module has the same name.
        meaning: What it is, and the evidence for it.
        severity: How severe it is, and when.
        fix: What to change, in a few words.
        text: Writes message and fix of a finding; None if the cause writes its findings itself.
        text_of_given: Writes them for a gradient that was passed to the recorder, where no op is known; None if those
            of `text` are suitable.
        plight: What a variable gets according to the summary, if its gradient is finite and not zero.
        subject: How the summary names the culprit, `{op}`.
        verb: What the culprit does according to the summary; `{them}` are the variables.
        shows_forward_op: Whether the culprit belongs to an inner gradient, so that the summary names the user's op that
            it differentiates.
        without_op: What the summary says if there is no culprit; `{line}` is the line that the finding shows, `{since}`
            the first step. Empty if it says nothing.
        headline: The summary of a step whose only problem is this one, which concerns no single variable.
        shows_request: Whether a finding without an op shows the line that requests the gradient.
        told_at_once: Whether one finding covers all variables with this cause, whichever ops are involved.
        leaves_noise: Whether a small gradient is rounding noise, and its true value is zero.
        explains_one_path: Whether it explains only one path, so that other paths have their own cause.
        edits: The functions that write edits which may fix it, the best first. Empty if the fix needs a decision:
            another loss, another architecture.
        quotes: How advice begins that goes on with the code of the edit, if there is one.
    """

    name: str
    meaning: str
    severity: str
    fix: str
    text: Writer | None = None
    text_of_given: Writer | None = None
    plight: str = "a gradient that carries no information"
    subject: str = "{op}"
    verb: str = "is the cause"
    shows_forward_op: bool = False
    without_op: str = ""
    headline: str = "There is a problem that concerns no single variable."
    shows_request: bool = False
    told_at_once: bool = False
    leaves_noise: bool = False
    explains_one_path: bool = False
    edits: tuple[Maker, ...] = ()
    quotes: tuple[str, ...] = ()
