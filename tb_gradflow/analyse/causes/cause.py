"""What a cause is: a word, and all that is said where it is found."""

from __future__ import annotations

from dataclasses import dataclass

from tb_gradflow.analyse.user_code.candidate import Maker
from tb_gradflow.analyse.words.names import Writer


@dataclass(frozen=True, slots=True)
class Cause:
    """A reason why a variable does not train as it should, or does not train at all.

    Attributes:
        name: Its word in findings, in `docs/causes.md` and on the command line. Its module has the same name.
        meaning: What it is, and by what evidence it is recognised.
        severity: How severe it is, and when.
        fix: What to change, in a few words.
        text: Writes message and fix of a finding; None if the cause writes its findings itself.
        text_of_given: Writes them for a gradient that the recorder was given, where no op is known; None if the words
            of `text` do.
        plight: What the summary says that a variable gets whose gradient is finite and not zero.
        subject: What the summary says of the op to blame, `{op}`.
        verb: What the summary says that it does; `{them}` are the variables.
        shows_forward_op: Whether the op to blame belongs to an inner gradient, so that the summary names the op of the
            user's own that it differentiates.
        without_op: What the summary says where no op is to blame; `{line}` is the line that the finding shows,
            `{since}` the step since which it is so. Empty if it says nothing.
        headline: The summary of a step in which nothing is wrong but this, which is of no variable.
        shows_request: Whether a finding without an op shows the line that requests the gradient.
        told_at_once: Whether one finding is about all variables with this cause, whatever ops play a part.
        leaves_noise: Whether a small gradient is rounding noise, and its true value is zero.
        explains_one_path: Whether it says why one path brings nothing, so that other paths have their own cause.
        edits: What makes the edits that may fix it, the best first. None where the fix is a decision: another loss,
            another architecture.
    """

    name: str
    meaning: str
    severity: str
    fix: str
    text: Writer | None = None
    text_of_given: Writer | None = None
    plight: str = "a gradient without information"
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
