"""Applies the rules to suspects: the first verdict stands."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tb_gradflow.analyse.causes.catalogue import CATALOGUE
from tb_gradflow.analyse.causes.precedence import CUT, CUT_PRECEDENCE, ZERO
from tb_gradflow.analyse.evidence.parts import cuts_behind
from tb_gradflow.analyse.evidence.penalties import is_made_of_it_alone
from tb_gradflow.analyse.evidence.stops import is_stopped_behind
from tb_gradflow.analyse.evidence.suspects import Rule, Suspect, Verdict
from tb_gradflow.record.schema import PYTHON


def judge(suspects: Iterable[Suspect], rules: tuple[Rule, ...]) -> tuple[Suspect, Verdict] | None:
    """The first verdict, by rule and then by suspect; None if there is none."""
    listed = tuple(suspects)
    for rule in rules:
        for suspect in listed:
            verdict = rule(suspect)
            if verdict is not None:
                return suspect, verdict
    return None


def judge_zeros(suspects: Iterable[Suspect]) -> tuple[Suspect, Verdict] | None:
    """The first verdict. Exception: a branch that was not chosen explains only its own path, and so does a second
    derivative of zero; then the cause of the zeros on the other paths is reported. A penalty that is switched off
    explains nothing if there is another path."""
    every = tuple(suspects)
    listed = tuple(each for each in every if not _is_penalty(each)) or every
    found = judge(listed, ZERO)
    if found is None:
        return None
    cause = found[1].cause
    if cause == "zero_gradient":
        return judge_cuts(cut for each in listed for cut in cuts_behind(each)) or found
    if not CATALOGUE[cause].explains_one_path:
        return found
    rest = [each for each in listed if (own := judge((each,), ZERO)) and own[1].cause != cause]
    other = judge(rest, ZERO)
    return other if other is not None and other[1].cause != "zero_gradient" else found


def _is_penalty(suspect: Suspect) -> bool:
    topology, variable = suspect.topology, suspect.state.variable
    return suspect.culprit >= 0 and is_made_of_it_alone(topology, variable, suspect.culprit)


def judge_cuts(suspects: Iterable[Suspect]) -> tuple[Suspect, Verdict] | None:
    """Chooses among the verdicts on all cuts around one variable: the first by `CUT_PRECEDENCE`, then a value before an
    index used in Python, then the nearest to the loss.

    A cut with a `stop_gradient` behind it on every path comes last: fixing it alone would not help.
    """
    judged = [found for suspect in suspects if (found := judge((suspect,), CUT)) is not None]
    return min(judged, key=_precedence, default=None)


def _precedence(judged: tuple[Suspect, Verdict]) -> tuple[bool, int, bool, int, int]:
    suspect, verdict = judged
    hops = suspect.topology.influence(suspect.target).hops[suspect.culprit]
    chosen = suspect.op.type == PYTHON and _is_index(suspect)
    return is_stopped_behind(suspect), CUT_PRECEDENCE.index(verdict.cause), chosen, hops, suspect.culprit


# Functions that return an index; the values that they search are a separate suspect.
_CHOOSING = re.compile(r"\b(?:argmax|argmin|argsort|searchsorted|random\.choice)\b")


def _is_index(suspect: Suspect) -> bool:
    source = suspect.op.source
    return source is not None and bool(_CHOOSING.search(suspect.topology.trace.sources[source].code))
