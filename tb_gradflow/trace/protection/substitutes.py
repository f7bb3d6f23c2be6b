"""A function of the recorder's that is run in the place of a compiled function of the user's, once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tb_gradflow.trace.protection.beside import Failed
from tb_gradflow.trace.protection.foreign import faults

_NOTHING = object()


class Run:
    """One call of a compiled function.

    Attributes:
        results: What it has returned.
        error: The exception that it has raised; `None` if it has not.
    """

    def __init__(self) -> None:
        self.results: Any = _NOTHING
        self.error: BaseException | None = None

    @property
    def has_run(self) -> bool:
        return self.results is not _NOTHING

    def of(self, function: Callable[..., Any], *args: Any) -> None:
        """Calls it."""
        try:
            self.results = function(*args)
        except BaseException as error:
            self.error = error
            raise


Ours = Callable[[Run, Sequence[Any]], None]
"""Runs a function by `Run.of`, which does what the user's does for these arguments."""


def substituted(
    plain: Callable[[Sequence[Any]], Any],
    choose: Callable[[], Ours | None],
    args: Sequence[Any],
    failed: Failed,
    is_own: Callable[[BaseException], bool],
) -> Any:
    """Returns or raises what the user's function `plain` does, while the one that `choose` returns is run, if it
    returns one. `is_own` tells whether the recorder is to blame for an error that a run has raised."""
    run = Run()
    own: Exception | None = None
    try:
        ours = choose()
        if ours is not None:
            ours(run, args)
    except faults() as fault:
        if fault is run.error and not is_own(fault):
            raise
        own = fault
    if own is not None and own is not run.error:
        failed(own)
        own = None
    results = run.results if run.has_run else plain(args)
    # An index that is out of range for the user's op is so for the recorder's too, which may run first.
    if own is not None:
        failed(own)
    return results
