"""All runs of a log directory as a table for a terminal, worst first."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from tb_gradflow.plain import clean
from tb_gradflow.serve.runs.shared_settings import shared_settings, varying, written
from tb_gradflow.serve.runs.standing import WORST_FIRST, Health, Standing
from tb_gradflow.serve.terminal.text import Look, Role, count, table

ROLES: dict[Health, Role] = {"error": "error", "warning": "warning", "unknown": "dim", "healthy": "good"}

# Number of hyperparameter columns, and their width.
_MOST_NAMES, _LONGEST = 4, 14

_HEADINGS = ("", "run", "since step", "loss", "recorded", "worst finding")


def lines_of(standings: Sequence[tuple[str, Standing]], look: Look) -> Iterator[str]:
    """The number of runs for each health, and a line for each run, in the given order; a line is as long as
    necessary.
    """
    all_of_them = [standing for _, standing in standings]
    shared = shared_settings(all_of_them)
    names = varying(all_of_them, shared)[:_MOST_NAMES]
    counts = Counter(standing.health for standing in all_of_them)
    said = ", ".join(f"{counts[health]} {health}" for health in WORST_FIRST if counts[health])
    yield look.paint(f"{count(len(standings), 'run')}: {said}", "strong")
    yield from (clean(sentence.replace("`", "")) for sentence in shared)
    yield ""
    headings = (*_HEADINGS[:-1], *(look.short(clean(name), _LONGEST) for name in names), _HEADINGS[-1])
    heading, *rows = table([headings, *(_row(run, standing, names, look) for run, standing in standings)])
    yield look.paint(f"  {''.join(heading)}".rstrip(), "dim")
    for (mark, *cells), (_, standing) in zip(rows, standings, strict=True):
        yield f"  {look.paint(mark, ROLES[standing.health])}{''.join(cells)}".rstrip()


def _loss(standing: Standing) -> str:
    if not standing.has_loss:
        return ""
    return "not finite" if standing.loss is None else f"{standing.loss:.3g}"


def _row(run: str, standing: Standing, names: Sequence[str], look: Look) -> tuple[str, ...]:
    settings = standing.hyperparameters
    found = f"{standing.cause}  {clean(PurePosixPath(standing.place).name)}".rstrip()
    return (
        standing.health,
        look.short(run, look.width // 3),
        "" if standing.first is None else str(standing.first),
        _loss(standing),
        "" if not standing.recorded else time.strftime("%Y-%m-%d %H:%M", time.localtime(standing.recorded)),
        *(look.short(clean(written(settings[name])), _LONGEST) if name in settings else "" for name in names),
        look.short(standing.summary, look.width) if standing.health == "unknown" else found,
    )
