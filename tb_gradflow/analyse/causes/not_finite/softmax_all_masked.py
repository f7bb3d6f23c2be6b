"""A softmax whose entries are all masked with minus infinity."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.not_finite import finite_mask
from tb_gradflow.analyse.words.broken import BROKEN
from tb_gradflow.analyse.words.fields import Template

CAUSE = Cause(
    name="softmax_all_masked",
    meaning="the gradient becomes NaN at a softmax",
    severity="error",
    fix="mask with a finite number",
    text=Template(
        BROKEN + "{op} is given a row in which every entry is masked.",
        "Mask with a large negative number, `-1e9`, instead of `-inf`.",
    ),
    edits=(finite_mask,),
)
