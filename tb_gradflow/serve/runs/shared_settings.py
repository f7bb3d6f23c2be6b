"""Settings that broken runs share: hyperparameters that all of them have and few healthy runs have, beyond chance."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tb_gradflow.serve.runs.standing import Standing
from tb_gradflow.store.hyperparameters import Value

MOST_SAID = 2
"""For each group of runs."""


@dataclass(frozen=True, slots=True)
class _Setting:
    """A condition on one hyperparameter, and how many runs meet it.

    Attributes:
        words: `lr ≥ 0.1`, with the name as code.
        name: The hyperparameter.
        healthy_with: Number of healthy runs that meet it; all broken runs do.
        healthy: Number of healthy runs that have the hyperparameter.
        chance: The probability that all broken runs meet such a condition if it is unrelated to health.
    """

    words: str
    name: str
    healthy_with: int
    healthy: int
    chance: float


def shared_settings(standings: Sequence[Standing], *, chance: float = 0.05) -> list[str]:
    """A sentence for each setting that all broken runs share, or all runs with the same worst finding, and few others
    have.

    With few runs and many hyperparameters, something always fits. A sentence is given only if it would occur with a
    probability below `chance` if health were random: the probability of drawing the broken runs only from those with
    the setting (hypergeometric), times the number of conditions that were tried (Bonferroni).
    """
    broken = [each for each in standings if each.health in ("error", "warning")]
    healthy = [each for each in standings if each.health == "healthy"]
    if not broken or not healthy:
        return []
    by_all = _settings(broken, healthy, chance)
    said = [_sentence(_runs(len(broken)), each) for each in by_all]
    known = {each.words for each in by_all}
    causes = sorted({each.cause for each in broken} - {""})
    for cause in causes if len(causes) > 1 else ():
        some = [each for each in broken if each.cause == cause]
        subject = _runs(len(some), f" with {cause.replace('_', ' ')}")
        new = [each for each in _settings(some, healthy, chance) if each.words not in known]
        said += [_sentence(subject, each) for each in new]
    return said


def _settings(broken: Sequence[Standing], healthy: Sequence[Standing], chance: float) -> list[_Setting]:
    """The settings that are beyond chance, the clearest first; one for each hyperparameter."""
    names = sorted({name for each in (*broken, *healthy) for name in each.hyperparameters})
    tried = [setting for name in names for setting in _conditions(name, broken, healthy)]
    sure = [each for each in tried if each.chance * len(tried) <= chance and 2 * each.healthy_with <= each.healthy]
    best: dict[str, _Setting] = {}
    for each in sorted(sure, key=lambda each: each.chance):
        best.setdefault(each.name, each)
    return list(best.values())[:MOST_SAID]


def _conditions(name: str, broken: Sequence[Standing], healthy: Sequence[Standing]) -> Iterator[_Setting]:
    """Conditions that all broken runs meet; none if one of them lacks this hyperparameter."""
    own = [each.hyperparameters.get(name) for each in broken]
    others = [each.hyperparameters[name] for each in healthy if name in each.hyperparameters]
    if None in own or not others:
        return
    values: list[Value] = [value for value in own if value is not None]

    def setting(words: str, holds: Callable[[Value], bool]) -> _Setting:
        met = sum(map(holds, others))
        drawn = math.comb(len(own) + met, len(own)) / math.comb(len(own) + len(others), len(own))
        return _Setting(f"`{name}` {words}", name, met, len(others), drawn)

    numbers = [value for value in (*values, *others) if isinstance(value, (int, float)) and not isinstance(value, bool)]
    if len(numbers) == len(values) + len(others):
        least, most = min(map(float, values)), max(map(float, values))
        yield setting(f"≥ {least:.6g}", lambda value: float(value) >= least)
        yield setting(f"≤ {most:.6g}", lambda value: float(value) <= most)
    if len(set(values)) == 1:
        yield setting(f"= {written(values[0])}", lambda value: value == values[0])


def written(value: Value) -> str:
    """A hyperparameter in readable form."""
    return value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else f"{value:.6g}"


def _runs(number: int, which: str = "") -> str:
    adjective = "" if which else "broken "
    return f"All {number} {adjective}runs{which} have" if number > 1 else f"The one {adjective}run{which} has"


def _sentence(subject: str, setting: _Setting) -> str:
    if setting.healthy == 1:
        return f"{subject} {setting.words}; the healthy one does not."
    if not setting.healthy_with:
        return f"{subject} {setting.words}; none of the {setting.healthy} healthy ones does."
    do = "does" if setting.healthy_with == 1 else "do"
    return f"{subject} {setting.words}; so {do} {setting.healthy_with} of the {setting.healthy} healthy ones."


def varying(standings: Sequence[Standing], said: Sequence[str]) -> list[str]:
    """The hyperparameters that differ between runs: those in the sentences first, then by name."""
    values: dict[str, set[Value | None]] = {}
    for each in standings:
        for name in each.hyperparameters:
            values.setdefault(name, set())
    for name, found in values.items():
        found.update(each.hyperparameters.get(name) for each in standings)
    differing = [name for name, found in values.items() if len(found) > 1]
    return sorted(differing, key=lambda name: (not any(f"`{name}` " in sentence for sentence in said), name))
