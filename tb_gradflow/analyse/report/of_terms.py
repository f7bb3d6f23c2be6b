"""The findings about the terms of a loss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tb_gradflow.analyse.causes.catalogue import BY_FAMILY
from tb_gradflow.analyse.causes.loss_terms.posterior_collapse import collapsed
from tb_gradflow.analyse.causes.loss_terms.term_dominates import dominating
from tb_gradflow.analyse.causes.loss_terms.term_teaches_nothing import silent
from tb_gradflow.analyse.causes.loss_terms.terms_in_conflict import conflicting
from tb_gradflow.analyse.step.measured import Measured
from tb_gradflow.analyse.step.terms import terms_in
from tb_gradflow.record.report import SEVERITIES, Finding

# Causes of the other families do not keep a gradient from a term.
_CUTTING = frozenset(
    cause.name
    for family in ("no_derivative", "left_graph", "tape", "unused", "exact_zero", "flat")
    for cause in BY_FAMILY[family]
)


def with_terms(measured: Measured, others: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings of a step, including those about its terms, the most severe first. Nothing is concluded from
    gradients that are not finite."""
    if not terms_in(measured) or any(each.severity == "error" for each in others):
        return tuple(others)
    found = [*others, *_found(measured, others)]
    return tuple(sorted(found, key=lambda finding: SEVERITIES.index(finding.severity)))


def _found(measured: Measured, others: Sequence[Finding]) -> Iterator[Finding]:
    yield from collapsed(measured)
    yield from dominating(measured)
    yield from conflicting(measured)
    yield from silent(measured, [each for each in others if each.cause in _CUTTING])
