"""A term whose gradient dominates that of another one on all variables that both reach."""

from __future__ import annotations

from collections.abc import Iterator

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.causes.loss_terms.term_findings import Told, called, finding_of, is_penalty, pairs_in, times
from tb_gradflow.analyse.step.measured import Measured
from tb_gradflow.analyse.step.terms import terms_in
from tb_gradflow.record.report import Finding, Severity

# From three decades on, one learning rate no longer suits both, as between the layers of a deep network. For the
# residual and boundary terms of physics-informed networks, Wang, Teng and Perdikaris (2021, "Understanding and
# mitigating gradient flow pathologies in physics-informed neural networks") report ratios of some hundreds to thousands
# where training fails.
DROWNED_ABOVE = 1e3

# From here on the sum equals the larger one: float32 has no digits left for the smaller.
ROUNDED_AWAY_ABOVE = 2.0**24


def dominating(measured: Measured) -> Iterator[Finding]:
    """For each loss, the term that dominates others, which one finding names. A regularizer is meant to be small."""
    terms = terms_in(measured)
    drowned: dict[int, dict[int, float]] = {}
    for pair in pairs_in(measured):
        (large, small), (most, least) = (pair.one, pair.other), pair.norms
        if most < least:
            large, small, most, least = small, large, least, most
        # A gradient of zero has a different cause.
        if least > 0 and most / least >= DROWNED_ABOVE and not is_penalty(terms[small]):
            drowned.setdefault(large, {})[small] = most / least
    for large, ratios in drowned.items():
        # A term that is itself dominated by a third one is not the cause.
        if any(large in others for others in drowned.values()):
            continue
        small, ratio = max(ratios.items(), key=lambda item: item[1])
        severity: Severity = "warning" if ratio >= ROUNDED_AWAY_ABOVE else "info"
        reached = {each.variable for each in terms[large].variables}
        shared = [each.variable for each in terms[small].variables if each.variable in reached]
        others = ", ".join(called(terms[each]) for each in ratios)
        lost = " and is rounded away in the sum" * (severity == "warning")
        yield finding_of(
            measured,
            CAUSE.name,
            severity,
            large,
            shared,
            Told(
                f"The gradient of the term {called(terms[large])} is {times(ratio)} that of {others}, on all variables "
                f"that both reach: the smaller one has almost no effect on them{lost}.",
                "If both should be learned, bring their gradients to a similar size: use a weight for each term (`loss "
                f"= {terms[small].name} + weight * {terms[large].name}`), divide quantities and residuals by their "
                "typical size, or use adaptive weights: learned ones (uncertainty weighting, Kendall et al. 2018) or "
                "ones that balance the gradients (GradNorm, Chen et al. 2018).",
            ),
        )


CAUSE = Cause(
    name="term_dominates",
    meaning="the loss is a sum, and the gradient of one term is at least a thousand times that of another, over the "
    "variables that both reach; a regularizer is allowed to be small",
    severity="info; warning from 2^24 times on, where the smaller one is rounded away in float32",
    fix="a weight for each term, normalised quantities, uncertainty weighting, GradNorm",
    headline="One term of the loss dominates another.",
)
