"""Reads records of any format up to today's, one version at a time; the rest of the code sees only today's, checked.

A change of the schema adds one to `FORMAT` and one `Upgrader` here, whose docstrings say what changed and how old
values are converted. Format 1 is the first, so there is none yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tb_gradflow.errors import DamagedRecord, LogError, NewerLogError
from tb_gradflow.record.checks import check_session, check_trace, check_trials, check_values
from tb_gradflow.record.codec import Json, MalformedRecord, decode
from tb_gradflow.record.schema import FORMAT, Session, StepValues, Trace, Trials


@dataclass(frozen=True, slots=True)
class Upgrader:
    """From one format to the next.

    Attributes:
        session: Takes the JSON of a session to the next format.
        trace: The same for a trace.
    """

    session: Callable[[Json], Json]
    trace: Callable[[Json], Json]


# A number of very many digits is no format, and Python refuses to write it.
_UNLIKELY = 10**9

UPGRADERS: tuple[Upgrader, ...] = ()
"""The first goes from format 1 to 2, the next from 2 to 3, and so on."""


def read_session(value: Json, upgraders: tuple[Upgrader, ...] = UPGRADERS) -> Session:
    """The session in `value`, in any known format. Its `format` remains the one in which it was written."""
    written = value.get("format") if isinstance(value, dict) else None
    if type(written) is not int or written < 1:
        raise LogError("this is not a log of tb-gradflow: its session has no format number")
    if written > FORMAT:
        raise NewerLogError(
            f"log has format {min(written, _UNLIKELY)}, this tb-gradflow reads up to {FORMAT}: "
            "upgrade with `pip install -U tensorboard-plugin-gradflow`"
        )
    for upgrader in upgraders[written - 1 :]:
        value = upgrader.session(value)
    with _told():
        session = decode(Session, value)
        check_session(session)
    return session


def read_trace(value: Json, written: int, upgraders: tuple[Upgrader, ...] = UPGRADERS) -> Trace:
    """The trace in `value`; `written` is the format of its session."""
    for upgrader in upgraders[written - 1 :]:
        value = upgrader.trace(value)
    with _told():
        trace = decode(Trace, value)
        check_trace(trace)
    return trace


def read_values(value: Json, trace: Trace) -> StepValues:
    """The forward values of a step of `trace`: so far only in format 1."""
    with _told():
        values = decode(StepValues, value)
        check_values(values, trace)
    return values


def read_trials(value: Json) -> Trials:
    """The edits that were tried in a session: so far only in format 1."""
    with _told():
        trials = decode(Trials, value)
        check_trials(trials)
    return trials


@contextmanager
def _told() -> Iterator[None]:
    """A record that is malformed is a damaged log."""
    try:
        yield
    except MalformedRecord as malformed:
        raise DamagedRecord(f"damaged log: {malformed}") from malformed
