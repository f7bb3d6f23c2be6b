"""All runs of a log directory as a table for a terminal, worst first."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from tb_gradflow.serve.standing import WORST_FIRST, Health, Standing
from tb_gradflow.serve.text import Look, Role, clean, count, table

ROLES: dict[Health, Role] = {"error": "error", "warning": "warning", "unknown": "dim", "healthy": "good"}

_HEADINGS = ("", "run", "since step", "loss", "recorded", "worst finding")


def lines_of(standings: Sequence[tuple[str, Standing]], look: Look) -> Iterator[str]:
    """How many runs are how, and a line for each, in the order that is given; a line is as long as it must be."""
    counts = Counter(standing.health for _, standing in standings)
    said = ", ".join(f"{counts[health]} {health}" for health in WORST_FIRST if counts[health])
    yield look.paint(f"{count(len(standings), 'run')}: {said}", "strong")
    yield ""
    heading, *rows = table([_HEADINGS, *(_row(run, standing, look) for run, standing in standings)])
    yield look.paint(f"  {''.join(heading)}".rstrip(), "dim")
    for (mark, *cells), (_, standing) in zip(rows, standings, strict=True):
        yield f"  {look.paint(mark, ROLES[standing.health])}{''.join(cells)}".rstrip()


def _row(run: str, standing: Standing, look: Look) -> tuple[str, ...]:
    found = f"{standing.cause}  {clean(PurePosixPath(standing.place).name)}".rstrip()
    return (
        standing.health,
        look.short(run, look.width // 3),
        "" if standing.first is None else str(standing.first),
        "" if standing.step < 0 else "not finite" if standing.loss is None else f"{standing.loss:.3g}",
        "" if not standing.recorded else time.strftime("%Y-%m-%d %H:%M", time.localtime(standing.recorded)),
        look.short(standing.summary, look.width) if standing.health == "unknown" else found,
    )
