"""Uses of tb_gradflow in the program itself: the hooks leave those parts alone."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tb_gradflow.trace.program import eager_loops, functions
from tb_gradflow.trace.program.attention import left_alone
from tb_gradflow.trace.program.faults import report
from tb_gradflow.trace.protection.functions import protected


def install(module: Any, names: Sequence[str]) -> None:
    """Makes the hooks ignore the thread while functions of a module, `name` or `Class.name`, run."""
    for name in names:
        owner, _, last = name.rpartition(".")
        place = getattr(module, owner) if owner else module
        if last == "opened":
            setattr(place, last, _opened_alone(vars(place)[last]))
        else:
            wrap = _recording_alone if last == "record_gradients" else _alone
            setattr(place, last, protected(vars(place)[last], wrap, report))


def _alone(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def run(*args: Any, **kwargs: Any) -> Any:
        with left_alone():
            return original(*args, **kwargs)

    return run


def _opened_alone(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    @contextlib.contextmanager
    def opened(*args: Any, **kwargs: Any) -> Iterator[Any]:
        with left_alone(), original(*args, **kwargs) as found:
            yield found

    return opened


def _recording_alone(original: Callable[..., Any]) -> Callable[..., Any]:
    """`summary.gradients`: the step that calls it is recorded by its author."""

    @functools.wraps(original)
    def record(*args: Any, **kwargs: Any) -> Any:
        functions.is_recorded_by_its_author()
        eager_loops.is_recorded_by_its_author()
        with left_alone():
            return original(*args, **kwargs)

    return record
