"""Only the sign of a value is used."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.straight_through import through_sign
from tb_gradflow.analyse.evidence.bodies import unrecorded_before
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.words.fields import ZERO, Template
from tb_gradflow.analyse.words.names import Group, Text
from tb_gradflow.analyse.words.soft import passed_through


def rule(suspect: Suspect) -> Verdict | None:
    """Sign: its registered gradient is all zeros."""
    return Verdict("nondiff_sign", "error") if suspect.op.type == "Sign" else None


def sign_unseen(suspect: Suspect) -> Verdict | None:
    """A Sign inside the suspect: its registered gradient is all zeros."""
    signs = [op for op in unrecorded_before(suspect) if suspect.type_of(op) == "Sign"]
    return Verdict("nondiff_sign", "error", signs[-1]) if signs else None


def message_and_fix(group: Group) -> Text:
    message = Template(
        ZERO + "the derivative of {op} is zero everywhere.",
        "Use a steep `{lib}.tanh({bx} / 0.1)`, or a straight-through estimator: ",
    )(group)
    return Text(message.message, message.fix + passed_through(group) + ".")


CAUSE = Cause(
    name="nondiff_sign",
    meaning="Sign: its registered gradient is always zero",
    severity="error",
    fix="a steep `tanh`, or a straight-through estimator",
    text=message_and_fix,
    verb="blocks it",
    edits=(through_sign,),
)
