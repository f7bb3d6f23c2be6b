"""The terms of a loss as lines of text: their values, and the share of each in the gradient of each layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tb_gradflow.analyse.step.term_layers import LayerTerms, layers_of
from tb_gradflow.record.report import TermReport
from tb_gradflow.serve.terminal.text import Look

SHOWN_LAYERS = 20

# A smaller share is not shown if several terms are listed.
_LEAST_SHARE = 0.0005
_MOST_SHARES = 4
# Below this cosine, two terms oppose each other.
_AGAINST = -0.5


def term_lines(terms: Sequence[TermReport], look: Look) -> Iterator[str]:
    """Nothing if no term was measured."""
    layers = layers_of(terms)
    terms = [replace(term, name=look.short(term.name, look.width // 2)) for term in terms]
    for target in dict.fromkeys(term.target for term in terms):
        own = [term for term in terms if term.target == target]
        values = ", ".join(f"{term.name} {_value(term.value)}" for term in own)
        yield ""
        yield from look.wrapped(f"Terms of the loss: {values}", "  ", first="")
        yield from _layer_lines(terms, [layer for layer in layers if layer.target == target], look)


def _layer_lines(terms: Sequence[TermReport], layers: Sequence[LayerTerms], look: Look) -> Iterator[str]:
    shown = layers[:SHOWN_LAYERS]
    room = max(12, min(look.width // 2 - 4, max((len(each.layer) for each in shown), default=0)))
    for each in shown:
        said = ", ".join(_shares(terms, each)) or "no gradient"
        angle = each.conflict
        if angle is not None and angle.cosine is not None:
            names = f" of {terms[angle.one].name} and {terms[angle.other].name}" if len(each.norms) > 2 else ""
            cosine = f"cosine{names} {number(angle.cosine)}"
            said += f"; {look.paint(cosine, 'warning') if angle.cosine < _AGAINST else cosine}"
        yield f"  {look.short(each.layer, room):<{room}}  {said}"
    if len(layers) > len(shown):
        yield look.paint(f"  … and {len(layers) - len(shown)} more layers", "dim")


def _shares(terms: Sequence[TermReport], layer: LayerTerms) -> Iterator[str]:
    """The terms that contribute most to a layer, the largest first."""
    ranked = sorted(layer.shares.items(), key=lambda item: -item[1])
    least = _LEAST_SHARE if len(ranked) > _MOST_SHARES else 0.0
    told = [(place, share) for place, share in ranked[:_MOST_SHARES] if share >= least]
    for place, share in told:
        yield f"{terms[place].name} {percent(share)}"
    if len(ranked) > len(told):
        yield f"{len(ranked) - len(told)} more"


def percent(share: float) -> str:
    """`34.9 %`; never 0 or 100 unless exact."""
    if 0 < share < 0.001:
        return "<0.1%"
    if 0.999 < share < 1:
        return ">99.9%"
    return f"{100 * share:.1f}%".replace(".0%", "%")


def number(value: float) -> str:
    """Two decimals and a true minus sign."""
    return f"{value:.2f}".replace("-", "\N{MINUS SIGN}")


def _value(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.3g}".replace("-", "\N{MINUS SIGN}")
