"""The user said that this variable gets no gradient."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.words.fields import Template

CAUSE = Cause(
    name="expected",
    meaning="it gets no gradient that trains it, and you listed it in `expected`",
    severity="info",
    fix="nothing",
    text=Template("{they_get} no gradient that trains {them}, as expected.", "Nothing to fix."),
    told_at_once=True,
)
