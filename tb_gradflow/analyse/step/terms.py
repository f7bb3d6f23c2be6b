"""The gradient that each term of a loss gave each variable in one step."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from tb_gradflow.analyse.step.measured import INF_COUNT, NAN_COUNT, NORM, Measured
from tb_gradflow.record.report import Cosine, SourceReport, TermReport, TermVariable
from tb_gradflow.record.schema import COSINES_IN_ROW, Term

VALUE, WEIGHT = 0, 1
"""Columns of a term's row."""


def terms_in(measured: Measured) -> tuple[TermReport, ...]:
    """The terms of the losses, in their order; empty if no step was completed."""
    if measured.gradients is None:
        return ()
    return measured.once("terms", lambda: tuple(_reports(measured)))


def _reports(measured: Measured) -> Iterator[TermReport]:
    trace, rows = measured.topology.trace, measured.gradients
    assert rows is not None
    names = term_names(measured)
    by_variable: dict[tuple[int, int], dict[int, int]] = {}
    for each in trace.term_gradients:
        target = trace.terms[each.term].target
        by_variable.setdefault((target, each.variable), {})[each.term] = each.row
    cosines = {(each.target, each.variable): each.row for each in trace.term_cosines}
    for number, term in enumerate(trace.terms):
        if math.isnan(rows[term.row, WEIGHT]) and math.isnan(rows[term.row, VALUE]):
            continue  # this step did not measure it
        variables = []
        for (target, variable), places in by_variable.items():
            if target != term.target or number not in places:
                continue
            norms = {other: float(rows[row, NORM]) for other, row in places.items()}
            total = sum(norms.values())
            angles = _cosines(measured, list(places), cosines.get((target, variable)))
            row = rows[places[number]]
            variables.append(
                TermVariable(
                    variable=trace.variables[variable].name,
                    norm=norms[number],
                    share=norms[number] / total if 0 < total < math.inf else None,
                    cosine=tuple(
                        Cosine(names[other], angles[frozenset((number, other))]) for other in places if other != number
                    ),
                    broken=int(np.nan_to_num(row[NAN_COUNT] + row[INF_COUNT])),
                )
            )
        source = trace.sources[term.source] if term.source is not None else None
        yield TermReport(
            name=names[number],
            source=SourceReport(source.file, source.line, source.code) if source is not None else None,
            value=_finite(rows[term.row, VALUE]),
            target=term.target,
            weight=_finite(rows[term.row, WEIGHT]),
            variables=tuple(variables),
            kind=term.kind,
        )


def term_names(measured: Measured) -> list[str]:
    """The name of each term; with the name of its loss before it if two losses have terms with the same name."""
    trace = measured.topology.trace
    given = [term.name for term in trace.terms]
    return [
        f"{trace.targets[term.target].name}/{term.name}" if _is_ambiguous(term, given) else term.name
        for term in trace.terms
    ]


def _is_ambiguous(term: Term, given: list[str]) -> bool:
    return given.count(term.name) > 1


def _cosines(measured: Measured, terms: list[int], first: int | None) -> Mapping[frozenset[int], float | None]:
    """The cosine of each pair of terms that reach a variable, whose rows are in the order of the trace."""
    assert measured.gradients is not None
    pairs = [frozenset((one, other)) for place, one in enumerate(terms) for other in terms[place + 1 :]]
    if first is None:
        return dict.fromkeys(pairs)
    count = -(-len(pairs) // COSINES_IN_ROW)
    values = measured.gradients[first : first + count].ravel()[: len(pairs)]
    return {pair: _finite(value) for pair, value in zip(pairs, values, strict=True)}


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
