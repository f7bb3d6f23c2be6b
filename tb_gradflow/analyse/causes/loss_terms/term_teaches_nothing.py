"""A term of the loss that contributes to its value but to no gradient."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.causes.loss_terms.term_findings import Told, called, finding_of
from tb_gradflow.analyse.step.measured import Measured
from tb_gradflow.analyse.step.terms import terms_in
from tb_gradflow.record.report import Finding, TermReport


def silent(measured: Measured, others: Sequence[Finding]) -> Iterator[Finding]:
    """Terms with a weight of zero, without a variable, or whose gradient reaches none. If another finding explains the
    loss, that one is reported instead."""
    trace = measured.topology.trace
    explained = {finding.target for finding in others}
    for place, term in enumerate(terms_in(measured)):
        trains = len(trace.terms) != len(terms_in(measured)) or trace.terms[place].trains
        told = _told(term, trains, _stops(measured, place))
        if told is not None and (term.weight == 0 or not trains or term.target not in explained):
            yield finding_of(measured, CAUSE.name, "info", place, (), told)


def _stops(measured: Measured, place: int) -> str:
    """The user's lines with a `tf.stop_gradient` on the path to a term; empty if there is none or many."""
    topology, terms = measured.topology, measured.topology.trace.terms
    op = terms[place].op if len(terms) == len(terms_in(measured)) else -1
    ops, sources = topology.trace.ops, topology.trace.sources
    made = topology.made_by(op) if op >= 0 else ()
    lines = {ops[each].source for each in made if ops[each].type == "StopGradient"} - {None}
    listed = [sources[each] for each in sorted(line for line in lines if line is not None)]
    places = [f"{each.file.rpartition('/')[2]}:{each.line}" for each in listed]
    return " and ".join(places) if len(places) <= _FEW else ""


_FEW = 2


def _told(term: TermReport, trains: bool, stops: str) -> Told | None:
    if term.weight == 0:
        return Told(
            f"The term {called(term)} has a weight of zero in this step, so it contributes no gradient.",
            "Nothing to fix if a schedule raises the weight later. Otherwise, give the term a weight, or remove it to "
            "save its computation.",
        )
    if not trains:
        return Told(
            f"The term {called(term)} adds {_number(term.value)} to the loss, but depends on none of the variables: "
            f"it contributes no gradient.",
            "If it should train something, compute it from the model's outputs with TensorFlow functions, not from a "
            "metric, `.numpy()`, or a value that an earlier step stored.",
        )
    if all(each.norm == 0 and not each.broken for each in term.variables):
        return Told(
            f"The term {called(term)} adds {_number(term.value)} to the loss, but contributes no gradient.",
            (
                f"It passes through `tf.stop_gradient` ({stops}), which blocks the gradient: remove that if the term "
                "should train something."
            )
            if stops
            else "If it should train something, look for a `tf.stop_gradient` or an op without a derivative between it "
            "and the variables, or for variables whose gradient is not requested.",
        )
    return None


def _number(value: float | None) -> str:
    return "a non-finite value" if value is None else f"{value:.3g}"


CAUSE = Cause(
    name="term_teaches_nothing",
    meaning="the loss is a sum, and one of its terms has a weight of zero, depends on no variable, or has no gradient "
    "for any",
    severity="info",
    fix="a weight, or a path from the variables to the term",
    headline="A term of the loss contributes no gradient.",
)
