"""The directories in which the trainings of one program are recorded, below one log directory."""

from __future__ import annotations

import contextlib
import os
import posixpath
import re
import shutil
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import tensorflow as tf

from tb_gradflow.store.elsewhere import is_elsewhere, local_path
from tb_gradflow.trace.log.options import LATER, checked
from tb_gradflow.trace.log.watched_run import WatchedRun
from tb_gradflow.trace.protection.beside import surely
from tb_gradflow.trace.protection.faults import reported
from tb_gradflow.trace.protection.warning import warn

DEFAULTS: Mapping[str, Any] = {
    "update_freq": "auto",
    "overhead": 0.01,
    "tensors": "all",
    "catch_nonfinite": True,
    "expected": (),
    "source": True,
    "terms": False,
    "examples": False,
    "on_finding": None,
    "try_fixes": False,
}

SHARE = 0.1
"""The part of a program's time that trying its fixes may take at its end, if nobody has asked for that."""

MOST_OF_A_NAME = 999

LONGEST_NAME = 200
"""Bytes. Filesystems allow 255, and a number may follow."""


class Flushable(Protocol):
    """Something that has recorded a training."""

    def flush(self) -> None: ...

    def settle(self, *, has_ended: bool) -> None: ...


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """One training's run.

    Attributes:
        name: The name of the run, relative to the log directory.
        log_dir: The directory for a recorder.
    """

    name: str
    log_dir: str


class Recording:
    """The trainings of one program, or of one cell of a notebook.

    Args:
        log_dir: The directory of the runs: any path that `tf.io.gfile` can write.
        options: Those of `GradFlowCallback`, without `log_dir`.
        tell: Called with the name of each run and True when it begins, and with False when it is dropped.
        see: Called with each sentence about something that may train, and is not recorded so far.

    Attributes:
        runs: Those that have begun, in order.
        loops: The eager loops, by the line that opens their tape: see `eager_loops`.
    """

    def __init__(
        self,
        log_dir: str,
        options: Mapping[str, Any],
        tell: Callable[[str, bool], None] = lambda name, is_there: None,
        see: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        self.log_dir = log_dir if is_elsewhere(log_dir) else os.path.abspath(local_path(log_dir))
        self.options = {**DEFAULTS, **options}
        self.runs: list[RunDirectory] = []
        self.loops: dict[Any, Any] = {}
        self._tell = tell
        self.see = see
        self._recorders: weakref.WeakSet[Any] = weakref.WeakSet()
        self._aside: dict[str, weakref.WeakMethod[Callable[[], None]]] = {}
        self._failed = False
        self._told: set[str] = set()

    def warn_once(self, message: str) -> None:
        """Shows a warning to the user, the first time."""
        if message not in self._told:
            self._told.add(message)
            warn(message)

    def begin(self, name: str) -> RunDirectory | None:
        """A new run with a name like this one: the first unused one. None if it cannot be written, which is reported
        once.
        """
        if self._failed:
            return None
        wanted = _safe(name)
        try:
            for number in range(1, MOST_OF_A_NAME):
                chosen = wanted if number == 1 else f"{wanted}-{number}"
                place = RunDirectory(chosen, posixpath.join(self.log_dir, chosen))
                if _made(place.log_dir):
                    self.runs.append(place)
                    self._tell(place.name, True)
                    return place
            raise OSError(f"{self.log_dir} already contains {MOST_OF_A_NAME} runs named {wanted}")
        except (OSError, tf.errors.OpError) as error:
            self._failed = True
            warn(f"tb_gradflow stopped recording: cannot write to {self.log_dir} ({error})")
            return None

    def drop(self, place: RunDirectory) -> None:
        """Called if nothing was recorded for the run."""
        if place in self.runs:
            self.runs.remove(place)
            self._tell(place.name, False)
            with contextlib.suppress(OSError, tf.errors.OpError):
                if is_elsewhere(place.log_dir):
                    tf.io.gfile.rmtree(place.log_dir)
                else:
                    shutil.rmtree(place.log_dir)

    def set_aside(self, run: WatchedRun) -> None:
        """Registers a run that has begun and is no training: it matters only if the program trains nothing else."""
        self._aside[run.options.log_dir] = weakref.WeakMethod(run.discard)

    def counts(self, run: WatchedRun) -> None:
        """It is a training after all."""
        self._aside.pop(run.options.log_dir, None)

    def settle(self, *, has_ended: bool) -> None:
        """Called at the end, that of the program too if it `has_ended`: reports what it has not caught, and drops what
        was set aside, if there are other runs."""
        for recorder in list(self._recorders):
            with reported():
                recorder.settle(has_ended=has_ended)
        aside = [place for place in self.runs if place.log_dir in self._aside]
        for place in aside if len(aside) < len(self.runs) else ():
            discard = self._aside[place.log_dir]()
            if discard is not None:
                discard()
            self.drop(place)

    def run(self, name: str) -> WatchedRun:
        """The log of a training, whose run of this name begins when there is something to write."""
        options = replace(checked(LATER, **self.options), share=SHARE)
        run = WatchedRun(options, place=PlaceOnDemand(self, name))
        self.keeps(run)
        return run

    def keeps(self, recorder: Flushable) -> None:
        """Registers something to flush when the program ends."""
        self._recorders.add(recorder)

    def flush(self) -> None:
        """Makes everything recorded so far readable."""
        for recorder in list(self._recorders):
            with reported():  # one that failed must not keep the others from being readable
                surely(recorder.flush)


class PlaceOnDemand:
    """A run that begins when there is something to write: see `WatchedRun`."""

    def __init__(self, recording: Recording, name: str) -> None:
        self._recording = recording
        self._name = name
        self._place: RunDirectory | None = None

    def begin(self) -> str | None:
        """Its directory; None if it cannot be written."""
        self._place = self._recording.begin(self._name)
        return None if self._place is None else self._place.log_dir

    def drop(self) -> None:
        """Nothing of it was worth recording."""
        if self._place is not None:
            self._recording.drop(self._place)


class Kept:
    """A value that the hooks attach to an object of the program: a copy of that object does not have it.

    Attributes:
        recording: The recording that it belongs to.
        value: The recorder; None for an object that is left alone.
    """

    def __init__(self, recording: Recording | None, value: Any) -> None:
        self.recording = recording
        self.value = value

    def __deepcopy__(self, memo: Any) -> Kept:
        return Kept(None, None)

    def __reduce__(self) -> Any:
        return Kept, (None, None)


_ATTRIBUTE = "_tb_gradflow_kept"


def kept_with(owner: Any, recording: Recording) -> Kept | None:
    """The value that this recording has attached to an object; None if there is none."""
    found = vars(owner).get(_ATTRIBUTE)
    return found if isinstance(found, Kept) and found.recording is recording else None


def keep_with(owner: Any, recording: Recording, value: Any) -> Kept:
    """Attaches a value to an object, bypassing its `__setattr__`: Keras tracks what is assigned."""
    kept = vars(owner)[_ATTRIBUTE] = Kept(recording, value)
    return kept


def _safe(name: str) -> str:
    """The name in a form that every system allows for a directory."""
    short = re.sub(r"[^\w.-]+", "_", name).encode()[:LONGEST_NAME].decode(errors="ignore")
    return short.strip("._") or "training"


def _made(log_dir: str) -> bool:
    """Creates a directory; returns False if it exists already."""
    if is_elsewhere(log_dir):
        if tf.io.gfile.exists(log_dir):
            return False
        tf.io.gfile.makedirs(log_dir)
        return True
    os.makedirs(os.path.dirname(log_dir), exist_ok=True)
    try:
        os.mkdir(log_dir)
    except FileExistsError:
        return False
    return True
