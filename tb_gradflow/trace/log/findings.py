"""What follows from the findings of recorded steps while the program trains: somebody is told, and the step is kept in
which their edits are tried when the program has ended. If there are none and the loss does not fall, it is tried then
whether the batch can be learned."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from types import FrameType, MethodType
from typing import Any, Literal

import keras as keras

from tb_gradflow.record.report import Diagnosis, Edit, Finding
from tb_gradflow.record.schema import Trial, Trials
from tb_gradflow.trace.engine.repeated import NotRepeatable
from tb_gradflow.trace.log.fall import Fall
from tb_gradflow.trace.protection.foreign import faults
from tb_gradflow.trace.protection.warning import warn
from tb_gradflow.trace.source.user_line import is_users

TryFixes = bool | Literal["auto"]

OnFinding = Callable[[Finding], object]

MOST_KEPT = 4
"""The steps of a program in which edits are tried: each is a copy of a model's weights."""

_MOST_SECONDS = 60.0
"""The longest time for what was not asked for."""

_LEAST_TRACES = 2
"""How often a step is compiled at least to try an edit: without it and with it."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """Tries the edits of a step that was kept, or whether its batch can be learned.

    Attributes:
        run: Does so, for the step with this number; until this time on the monotonic clock, if it is given; with what
            was found in the step, if edits are tried. Raises NotRepeatable if it cannot be run.
        repeats_python: Whether Python code runs that has run in the step, not only when it was traced. It may change
            objects of the program.
    """

    run: Callable[[int, float | None, Diagnosis | None], Trials]
    repeats_python: bool = False


Fell = tuple[float, float] | tuple[()]

Keep = Callable[[], Attempt]
"""Keeps the step that was recorded last. Raises NotRepeatable if that is impossible."""


@dataclass(frozen=True, slots=True)
class _Ending:
    """A step to try something in.

    Attributes:
        recorder: The log.
        step: Its number.
        began: When the training began, on the monotonic clock.
        share: The part of the time since then that this may take; None if it may take as long as it takes.
        attempt: Tries its edits.
        edits: Those of its findings.
        recorded: These.
        fell: `None` if edits are to be tried, otherwise whether the batch can be learned: if the loss has not fallen
            until then, from what to what; empty if it has.
    """

    recorder: Any
    step: int
    began: float
    share: float | None
    attempt: Attempt
    edits: Collection[Edit]
    recorded: Diagnosis | None = None
    fell: Fell | None = None


_endings: list[_Ending] = []
_untried: list[tuple[Any, Trial]] = []
"""Of edits whose step cannot be kept: the log and the reason."""

_process = os.getpid()


class Findings:
    """Those of one training.

    Args:
        on_finding: Called with each new one.
        try_fixes: Whether edits are tried.
        share: The part of the training's time that they may take, if that is `"auto"`.
        keep: See `Keep`.
    """

    def __init__(self, on_finding: OnFinding | None, try_fixes: TryFixes, share: float, keep: Keep) -> None:
        self._on_finding = on_finding
        self._try_fixes = try_fixes
        self._share = None if try_fixes is True else share
        # A log lives as long as its recorder, and must not keep that: its model would never be freed.
        self._keep = weakref.WeakMethod(keep) if isinstance(keep, MethodType) else lambda: keep
        self._began = time.monotonic()
        self._known: set[tuple[object, ...]] = set()
        self._kept: set[Edit] = set()
        self._fall = Fall()

    @property
    def follows_all(self) -> bool:
        """Whether every recorded step is diagnosed, not only the first one and one that is not finite."""
        return self._on_finding is not None or self._try_fixes is True

    def recorded(self, recorder: Any, step: int, losses: Sequence[float]) -> None:
        """A step was recorded with these losses."""
        is_missing = self._fall.is_missing(losses) if self._try_fixes else None
        if is_missing is None:
            return
        # Copies of weights: that of an earlier step is let go first.
        _endings[:] = [each for each in _endings if each.recorder is not recorder or each.fell is None]
        is_told = any(each.recorder is recorder for each in _endings)
        if (is_missing or self._try_fixes is True) and not is_told and _has_room(asked=False):
            fell: Fell = (self._fall.began, self._fall.ended) if is_missing else ()
            self._keep_now(recorder, step, (), fell=fell)

    def diagnosed(self, recorder: Any, step: int, diagnosis: Diagnosis) -> None:
        """A recorded step has this diagnosis."""
        if self._on_finding is not None:
            for finding in diagnosis.findings:
                key = finding.cause, finding.severity, finding.variables, finding.op
                if key not in self._known:
                    self._known.add(key)
                    self._tell(finding)
        if self._try_fixes:
            edits = {
                edit
                for finding in diagnosis.findings
                if finding.severity != "info"
                for edit in (finding.edit, *(each.edit for each in finding.alternatives))
                if edit is not None
            }
            if not edits <= self._kept and _has_room(asked=self._share is None):
                new = edits - self._kept
                self._kept |= edits
                # A step that raises while it is traced has no number; it is the first one, or the first of its shapes.
                self._keep_now(recorder, max(step, 0), new, diagnosis)

    def _tell(self, finding: Finding) -> None:
        assert self._on_finding is not None
        try:
            self._on_finding(finding)
        except (Exception, SystemExit) as error:  # of the user's, which is none of the training's
            warn(f"tb_gradflow: on_finding raised {type(error).__name__}: {error}. The training goes on.")

    def _keep_now(
        self,
        recorder: Any,
        step: int,
        edits: Collection[Edit],
        recorded: Diagnosis | None = None,
        fell: Fell | None = None,
    ) -> None:
        try:
            keep = self._keep()
            if keep is None:
                return
            attempt = keep()
        except NotRepeatable as reason:
            if self._try_fixes is True and edits:
                warn(f"tb_gradflow: the fixes for this step are not tried: {reason}.")
            _untried.extend((recorder, trial) for trial in _not_run(edits, reason, step))
            return
        except faults() as fault:
            if edits:
                warn(f"tb_gradflow: the fixes are not tried. Please report this: {type(fault).__name__}: {fault}")
            return
        _endings.append(_Ending(recorder, step, self._began, self._share, attempt, edits, recorded, fell))


def _has_room(*, asked: bool) -> bool:
    """Whether another step can be kept; for one that is `asked` for, another one is given up if need be."""
    if asked and len(_endings) >= MOST_KEPT:
        unasked = next((each for each in _endings if each.share is not None or each.fell is not None), None)
        _endings[:] = [each for each in _endings if each is not unasked]
    return len(_endings) < MOST_KEPT


def untried(edit: Edit, reason: str, step: int) -> Trial:
    """For the log: an edit is not tried, for this reason, a sentence."""
    return Trial(edit.file, edit.line, edit.end_line, edit.after, works=False, step=step, not_tried=reason)


def _not_run(edits: Collection[Edit], reason: NotRepeatable, step: int) -> list[Trial]:
    return [untried(each, f"It was not tried in this step: {reason}.", step) for each in edits]


def never_kept() -> Attempt:
    """Of steps that cannot be run again."""
    raise NotRepeatable("a session runs its graph, and Python has built that graph before")


def try_fixes(*, program_continues: bool = False) -> None:
    """Tries the edits of the steps that were kept: when the program has ended, so that nothing in it is changed, or
    between two trainings of one that `program_continues`, such as a notebook."""
    listed, _endings[:] = list(_endings), []
    found, _untried[:] = [(recorder, Trials((trial,))) for recorder, trial in _untried], []
    if os.getpid() != _process or getattr(sys, "last_type", None) is KeyboardInterrupt:
        return  # another process has the log, or somebody is waiting for the end
    if listed and _others_run():
        if any(each.share is None and each.edits for each in listed):
            warn("tb_gradflow: the fixes are not tried: another thread of the program runs, and may use its weights.")
        listed = []
    for ending in listed:
        try:
            trials = _tried(ending, program_continues=program_continues)
        except KeyboardInterrupt:
            break
        except NotRepeatable as reason:
            trials = Trials(tuple(_not_run(ending.edits, reason, ending.step)))
        except Exception as fault:
            if ending.edits:
                warn(f"tb_gradflow: the fixes were not tried. Please report this: {type(fault).__name__}: {fault}")
            continue
        found.append((ending.recorder, trials))
    for recorder in {id(each): each for each, _ in found}.values():
        known = [trials for each, trials in found if each is recorder]
        tried = Trials(*(sum(parts, ()) for parts in zip(*map(_PARTS, known), strict=True)))
        if tried != Trials(()):
            recorder.add_trials(tried)


_PARTS = attrgetter("trials", "fits", "metrics")


def _others_run() -> bool:
    """Whether code of the program runs in another thread: one that Python does not wait for."""
    for thread, frame in sys._current_frames().items():
        inner: FrameType | None = frame if thread != threading.get_ident() else None
        while inner is not None:
            if is_users(inner.f_code.co_filename):
                return True
            inner = inner.f_back
    return False


def _tried(ending: _Ending, *, program_continues: bool) -> Trials:
    until = None
    if program_continues and ending.share is not None and ending.attempt.repeats_python:
        raise NotRepeatable("the program goes on, and its Python code would run again")
    if ending.share is not None:
        seconds = min(ending.share * (time.monotonic() - ending.began), _MOST_SECONDS)
        meter = ending.recorder.meter
        traces = _LEAST_TRACES if ending.edits else 1
        if meter is None or seconds < traces * meter.cost().set_up:
            return Trials(())
        until = time.monotonic() + seconds
    tried = ending.attempt.run(ending.step, until, ending.recorded)
    if ending.fell is None:
        return Trials(tried.trials)
    began, ended = ending.fell or (None, None)
    return Trials((), tuple(replace(each, began=began, ended=ended) for each in tried.fits), tried.metrics)


# Handlers that are registered later run before this one, and must not see what it does: so this is as early as
# possible, but after Keras is imported, which loads libraries that end with handlers of their own.
atexit.register(try_fixes)
