"""All causes, as they are found in the folders of their families: each module there with a `CAUSE` is one."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping
from importlib import import_module
from types import MappingProxyType

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.evidence.by_hand import is_given
from tb_gradflow.analyse.evidence.suspects import NO_OP
from tb_gradflow.analyse.user_code.candidate import Candidate
from tb_gradflow.analyse.user_code.cut_again import is_cut_again
from tb_gradflow.analyse.words.half_precision import for_half
from tb_gradflow.analyse.words.names import Group, Text, Writer

FAMILIES: Mapping[str, str] = MappingProxyType(
    {
        "no_derivative": "No derivative",
        "left_graph": "Left TensorFlow",
        "tape": "The tape",
        "unused": "Unused and frozen",
        "flat": "Saturated or inactive",
        "exact_zero": "Exactly zero",
        "cancelling": "Cancels to zero",
        "strength": "Too small or too large",
        "not_finite": "Not finite",
        "wrong_value": "Wrong gradient",
        "updates": "Not applied",
        "loss_terms": "Terms of the loss",
    }
)
"""The folder of each family, and its heading, in the order of `docs/causes.md`."""


def _causes_of(family: str) -> Iterator[Cause]:
    package = import_module(f"tb_gradflow.analyse.causes.{family}")
    for each in pkgutil.iter_modules(package.__path__):
        cause = getattr(import_module(f"{package.__name__}.{each.name}"), "CAUSE", None)
        if isinstance(cause, Cause):
            yield cause


BY_FAMILY: Mapping[str, tuple[Cause, ...]] = MappingProxyType(
    {family: tuple(_causes_of(family)) for family in FAMILIES}
)
"""The causes of each family, by name."""

CATALOGUE: Mapping[str, Cause] = MappingProxyType(
    {cause.name: cause for causes in BY_FAMILY.values() for cause in causes}
)
"""Each cause under its name."""


def text_of(group: Group) -> Text:
    """Message and fix of a finding."""
    cause = CATALOGUE[group.verdict.cause]
    by_hand = group.verdict.culprit == NO_OP and is_given(group.suspect.topology, group.suspect.target)
    if by_hand and cause.text_of_given is not None:
        return cause.text_of_given(group)
    writer: Writer | None = group.verdict.text or cause.text
    assert writer is not None, f"{cause.name} writes its findings itself"
    return for_half(group, writer(group))


def fixes_of(group: Group) -> Iterator[Candidate]:
    """The edits that may fix a finding, the best first. None without the user's source."""
    # A part that goes another way may be meant to.
    if group.trace.passages and not (group.suspect.state.zeros and group.verdict.severity == "info"):
        for maker in CATALOGUE[group.verdict.cause].edits:
            yield from (each for each in maker(group) if not is_cut_again(group, each.edit))
