"""The results of edits that were tried before a training: kept for the traces that are recorded next."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from tb_gradflow.record.schema import Trial

_known: list[Trial] = []


@contextlib.contextmanager
def trials_kept(trials: Sequence[Trial]) -> Iterator[None]:
    """While the context is open, each recorded trace contains these."""
    _known.extend(trials)
    try:
        yield
    finally:
        del _known[len(_known) - len(trials) :]


def trials_of_now() -> tuple[Trial, ...]:
    return tuple(_known)
