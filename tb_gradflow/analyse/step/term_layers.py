"""Terms of a loss by layer: which of them trains a layer, and whether their gradients point in the same direction."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from tb_gradflow.record.report import TermReport, TermVariable


@dataclass(frozen=True, slots=True)
class Pair:
    """Two terms, for the variables that both reach.

    Attributes:
        one: Index of the first one among the terms.
        other: Of the second.
        norms: Of their gradients there.
        cosine: Of the angle between these; None where one is zero, or it is not known.
        variables: Names of those variables.
    """

    one: int
    other: int
    norms: tuple[float, float]
    cosine: float | None
    variables: tuple[str, ...]

    @property
    def together(self) -> float | None:
        """The norm of both gradients added up."""
        if self.cosine is None:
            return None
        one, other = self.norms
        return math.sqrt(max(0.0, one * one + other * other + 2 * one * other * self.cosine))


@dataclass(frozen=True, slots=True)
class LayerTerms:
    """The gradients of the terms of one loss for a layer.

    Attributes:
        layer: The common start of its variables' names; for a variable without a layer, its name.
        target: Index of the loss in the trace.
        norms: The norm of the gradient that each term gives it, by the term's index.
        shares: Those norms divided by their sum; empty if all are zero.
        conflict: The two terms that oppose each other most; None if no two have an angle.
    """

    layer: str
    target: int
    norms: Mapping[int, float]
    shares: Mapping[int, float]
    conflict: Pair | None


def layers_of(terms: Sequence[TermReport]) -> tuple[LayerTerms, ...]:
    """By loss and by layer, in the order of the variables."""
    grouped: dict[tuple[int, str], dict[str, None]] = {}
    for term in terms:
        for each in term.variables:
            grouped.setdefault((term.target, layer_of(each.variable)), {})[each.variable] = None
    return tuple(
        _layer(terms, target, layer, tuple(names))
        for (target, layer), names in sorted(grouped.items(), key=lambda item: item[0][0])
    )


def layer_of(variable: str) -> str:
    """What the variables of one layer have in common."""
    return variable.rpartition("/")[0] or variable


def pairs_of(terms: Sequence[TermReport], variables: Sequence[str] | None = None) -> Iterator[Pair]:
    """The pairs of terms of one loss, for the variables that both reach, or those of them that are listed."""
    known = [{each.variable: each for each in term.variables} for term in terms]
    for one, other in combinations(range(len(terms)), 2):
        if terms[one].target != terms[other].target:
            continue
        shared = [name for name in known[one] if name in known[other] and (variables is None or name in variables)]
        if shared:
            yield _pair(terms, one, other, [(known[one][name], known[other][name]) for name in shared])


def _pair(
    terms: Sequence[TermReport], one: int, other: int, shared: Sequence[tuple[TermVariable, TermVariable]]
) -> Pair:
    product, known = 0.0, False
    for first, second in shared:
        cosine = next((each.cosine for each in first.cosine if each.term == terms[other].name), None)
        if cosine is not None:
            product, known = product + first.norm * second.norm * cosine, True
    norms = _norm(each.norm for each, _ in shared), _norm(each.norm for _, each in shared)
    size = norms[0] * norms[1]
    # The gradients of some layers may be so small that their product vanishes.
    angle = max(-1.0, min(1.0, product / size)) if known and 0 < size < math.inf else None
    return Pair(one, other, norms, angle, tuple(each.variable for each, _ in shared))


def _layer(terms: Sequence[TermReport], target: int, layer: str, names: Sequence[str]) -> LayerTerms:
    norms = {
        number: _norm(each.norm for each in reached)
        for number, term in enumerate(terms)
        if term.target == target and (reached := [each for each in term.variables if each.variable in names])
    }
    total = sum(norms.values())
    shares = {number: norm / total for number, norm in norms.items()} if 0 < total < math.inf else {}
    angles = [pair for pair in pairs_of(terms, names) if terms[pair.one].target == target and pair.cosine is not None]
    conflict = min(angles, key=lambda pair: pair.cosine or 0.0, default=None)
    return LayerTerms(layer, target, norms, shares, conflict)


def _norm(norms: Iterator[float]) -> float:
    return math.hypot(*norms)
