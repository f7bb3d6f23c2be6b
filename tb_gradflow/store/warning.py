"""Warnings about the damage that is found in a log."""

from __future__ import annotations

import logging

from tb_gradflow.plain import one_line

LOGGER = logging.getLogger("tb_gradflow")

MOST_TOLD = 20
"""Warnings about one log. A report counts all of them."""


def warn_of(problem: str, number: int) -> None:
    """Warns of the problem with that number, from one; not if there were very many."""
    if number <= MOST_TOLD:
        LOGGER.warning("%s%s", one_line(problem), "; further damage is not printed" if number == MOST_TOLD else "")
