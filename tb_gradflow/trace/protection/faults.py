"""Keeps faults of the hooks away from the program."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tb_gradflow.trace.protection.foreign import faults
from tb_gradflow.trace.protection.warning import warn


@contextlib.contextmanager
def reported() -> Iterator[None]:
    """A fault inside this context is reported, and the program continues."""
    try:
        yield
    except faults() as error:
        report(error)


def report(fault: Exception) -> None:
    """The same for a fault that was already caught."""
    warn(
        "tb_gradflow could not record part of this program; the program continues. Please report this: "
        f"{type(fault).__name__}: {fault}"
    )
