"""Two tasks that pull the variables which they share in opposite directions."""

from __future__ import annotations

from collections.abc import Iterator

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.causes.loss_terms.term_findings import Told, called, finding_of, own_variables, pairs_in
from tb_gradflow.analyse.step.measured import Measured
from tb_gradflow.analyse.step.term_layers import Pair
from tb_gradflow.analyse.step.terms import terms_in
from tb_gradflow.record.report import Finding


def conflicting(measured: Measured) -> Iterator[Finding]:
    """The two terms of each loss that conflict most: the sum of their gradients for the shared variables is shorter
    than the shorter of the two. This requires a cosine below -0.5 and similar norms.

    Gradients with a negative cosine are said to conflict (Yu et al. 2020, "Gradient Surgery for Multi-Task Learning").
    But at the minimum of a sum all of its terms cancel: in every good VAE, the divergence pulls against the
    reconstruction, as it should. So only terms that also have separate variables count, such as the heads of several
    tasks.
    """
    terms = terms_in(measured)
    found: dict[int, tuple[float, Pair]] = {}
    for pair in pairs_in(measured):
        together = pair.together
        if together is None or not min(pair.norms) > 0 or together >= min(pair.norms):
            continue
        has_own = [list(own_variables(terms, *order)) for order in ((pair.one, pair.other), (pair.other, pair.one))]
        if not all(has_own):
            continue
        lost = together / sum(pair.norms)
        target = terms[pair.one].target
        if target not in found or lost < found[target][0]:
            found[target] = lost, pair
    for lost, pair in found.values():
        one, other = terms[pair.one], terms[pair.other]
        yield finding_of(
            measured,
            CAUSE.name,
            "info",
            pair.one,
            pair.variables,
            Told(
                f"The terms {called(one)} and {called(other)} pull the variables that they share in opposite "
                f"directions (cosine {pair.cosine:.2f}): the norm of the summed gradient is {lost:.0%} of the sum of "
                "both norms.",
                "In a single step this is not a problem. If it persists while a loss is still high, let the tasks "
                "share fewer layers (add one to each head), weight the terms, or remove the conflicting part of the "
                "gradients before they are applied (PCGrad, Yu et al. 2020).",
            ),
        )


CAUSE = Cause(
    name="terms_in_conflict",
    meaning="the loss is a sum, and two of its terms, each with its own variables such as the head of a task, have "
    "gradients whose sum is shorter than the shorter of the two, over the variables that both reach",
    severity="info: at the minimum of a sum its terms always cancel",
    fix="fewer shared layers, weights, PCGrad",
    headline="Two terms of the loss pull in opposite directions.",
)
