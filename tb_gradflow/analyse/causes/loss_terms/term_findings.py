"""What findings about terms share: the line of a term, the losses that have terms, and how terms are named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tb_gradflow.analyse.step.measured import Measured
from tb_gradflow.analyse.step.term_layers import Pair, pairs_of
from tb_gradflow.analyse.step.terms import terms_in
from tb_gradflow.record.report import Finding, OpReport, Severity, TermReport


@dataclass(frozen=True, slots=True)
class Told:
    """The words of a finding."""

    message: str
    fix: str


def finding_of(
    measured: Measured, cause: str, severity: Severity, place: int, variables: Sequence[str], told: Told
) -> Finding:
    """A finding about the term with that index, shown at its line."""
    term, op = terms_in(measured)[place], _op_of(measured, place)
    trace, topology = measured.topology.trace, measured.topology
    return Finding(
        cause=cause,
        severity=severity,
        variables=tuple(variables),
        op=OpReport(trace.ops[op].name, trace.ops[op].type) if op >= 0 else None,
        source=term.source,
        message=told.message,
        fix=told.fix,
        target=term.target,
        culprit=op,
        path=topology.influence(term.target).from_op(op) if op >= 0 else (),
    )


def _op_of(measured: Measured, place: int) -> int:
    """The op that computes a term; -1 if several do, or if it depends on no variable."""
    shown = [term.op for term in measured.topology.trace.terms]
    return shown[place] if len(shown) == len(terms_in(measured)) else -1


def pairs_in(measured: Measured) -> Sequence[Pair]:
    """The pairs of terms of a loss that reach the same variables."""
    return measured.once("pairs of terms", lambda: list(pairs_of(terms_in(measured))))


def own_variables(terms: Sequence[TermReport], one: int, other: int) -> Iterator[str]:
    """The variables that a term reaches and another one does not."""
    known = {each.variable for each in terms[other].variables}
    return (each.variable for each in terms[one].variables if each.variable not in known)


def is_penalty(term: TermReport) -> bool:
    """Whether a term is a regularizer: meant to be small, and opposed to the gradient from the data."""
    return term.kind == "regularizers"


def called(term: TermReport) -> str:
    """`` `kl` (vae.py:41) ``."""
    place = f" ({term.source.file.rpartition('/')[2]}:{term.source.line})" if term.source is not None else ""
    return f"`{term.name}`{place}"


def times(ratio: float) -> str:
    """How many times larger one is: `300 times`, `2e+05 times`."""
    return f"{ratio:.0f} times" if ratio < 10_000 else f"{ratio:.0e} times"
