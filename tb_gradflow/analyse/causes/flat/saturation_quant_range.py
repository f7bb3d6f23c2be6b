"""All values lie inside the range of a fake quantiser."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.words.fields import ZERO, Template


def rule(suspect: Suspect) -> Verdict | None:
    """The ends of a fake quantiser's range learn only from values outside it; the values, only inside of it."""
    ends = suspect.op.type.startswith("FakeQuant") and all(edge.input in (1, 2) for edge in suspect.edges)
    return Verdict("saturation_quant_range", "warning") if ends else None


CAUSE = Cause(
    name="saturation_quant_range",
    meaning="all values lie within the range of a fake quantiser, so that the range gets no gradient",
    severity="warning",
    fix="initialise the range narrower than the values",
    text=Template(
        ZERO + "all values lie within the range of {op}, and only values outside of it give the range a gradient.",
        "Initialise the range so that some values lie outside of it, or set it from a moving minimum and maximum of "
        "the values.",
    ),
)
