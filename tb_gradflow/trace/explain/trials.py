"""Tries the edits of a step that was kept during a training, for its log."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from tb_gradflow.record.report import Diagnosis, Edit, Tried
from tb_gradflow.record.schema import Trial, TrialNorm, Trials
from tb_gradflow.trace.engine.repeated import NotCompiled, NotRepeatable
from tb_gradflow.trace.experiments.batch_fit import MOST_SECONDS, batch_fit_of
from tb_gradflow.trace.explain.explanation import Explained
from tb_gradflow.trace.explain.outside import nothing_outside
from tb_gradflow.trace.explain.tried_edits import StepOutcome, seen, with_tried
from tb_gradflow.trace.fidelity.rollback import drawing
from tb_gradflow.trace.log.findings import untried


def trials_of(
    explain: Callable[[], Explained],
    step: int,
    until: float | None,
    losses: Sequence[float] = (),
    recorded: Diagnosis | None = None,
) -> Trials:
    """What the edits of a recorded step do, for its log, the best first; if it has no finding, whether its batch can be
    learned. `explain` runs it; it had these losses, and this diagnosis, as far as they are known.

    Raises:
        NotRepeatable: it cannot be run, or its Python code does something that lasts.
    """

    def run(drawn: int = 0) -> StepOutcome:
        with drawing(drawn):
            explained = explain()
        return seen(explained, explained.diagnosis())

    with silent(), nothing_outside() as refused:
        try:
            before = _before(run, recorded, losses)
            # If its loss is another one than its random numbers may be the reason for, its Python code depends on what
            # has changed since.
            if losses and not _are_close(before.losses, losses) and not _may_be_drawn(losses, before.losses, run):
                again = f"{before.losses[0]:.3g}" if before.losses else "unknown"
                raise NotRepeatable(f"its loss would be {again} instead of {losses[0]:.3g}")
            if before.training is not None and is_well(before.diagnosis):
                seconds = MOST_SECONDS if until is None else min(MOST_SECONDS, until - time.monotonic())
                fit = batch_fit_of(before.training, step, seconds)
                return Trials((), () if fit is None else (fit,), before.metrics())
            offered = dict(_edits(before.diagnosis))
            left = dict(_edits(with_tried(before, run, until=until))) if offered else {}
        except Exception:
            if not refused:
                raise
        if refused:
            raise NotRepeatable(f"its Python code would {refused[0]} again")
    found = [_trial(edit, tried, reason, step) for edit, (tried, reason) in left.items() if tried or reason]
    found += [_trial(edit, Tried(False, (), ()), "", step) for edit in offered if edit not in left]
    return Trials(tuple(found))


def _before(run: Callable[[], StepOutcome], recorded: Diagnosis | None, losses: Sequence[float]) -> StepOutcome:
    """The step without edits; as it was recorded where only an edit makes its Python code run without numbers."""
    try:
        return run()
    except NotCompiled:
        if recorded is None:
            raise
        return StepOutcome(recorded, tuple(losses), None, None, None)


def is_well(diagnosis: Diagnosis) -> bool:
    """Whether nothing above information was found."""
    return all(each.severity == "info" for each in diagnosis.findings)


def _may_be_drawn(losses: Sequence[float], first: Sequence[float], run: Callable[[int], StepOutcome]) -> bool:
    """Whether the losses of a step lie about where those with other random numbers lie, of which `first` are one."""
    others = [first, *(run(number).losses for number in range(1, _OTHER_DRAWS + 1))]
    for loss, *drawn in zip(losses, *others, strict=False):
        width = max(drawn) - min(drawn)
        distance = max(min(drawn) - loss, loss - max(drawn), 0.0)
        if not width > _ROUNDING * abs(loss) or not distance <= _WIDTHS * width:
            return False
    return True


_OTHER_DRAWS = 2

# Three draws may lie close together by chance: in one case of a hundred, within a third of their standard deviation.
_WIDTHS = 6.0

_ROUNDING = 1e-5


def _are_close(one: Sequence[float], other: Sequence[float]) -> bool:
    """As far as both are known: as a whole, a step may have more losses than when it was recorded."""
    pairs = list(zip(one, other, strict=False))
    return bool(pairs) and all(np.allclose(*pair, rtol=1e-3, atol=1e-7, equal_nan=True) for pair in pairs)


def _edits(diagnosis: Diagnosis) -> Iterator[tuple[Edit, tuple[Tried | None, str]]]:
    """Each with its result, or the reason why there is none."""
    for finding in diagnosis.findings:
        if finding.edit is not None and finding.severity != "info":
            yield finding.edit, (finding.tried, finding.not_tried)
            yield from ((each.edit, (each.tried, finding.not_tried)) for each in finding.alternatives)


def _trial(edit: Edit, tried: Tried | None, reason: str, step: int) -> Trial:
    if tried is None:
        return untried(edit, reason, step)
    norms = tuple(TrialNorm(each.variable, each.norm) for each in tried.gradient_norm)
    return Trial(
        edit.file,
        edit.line,
        edit.end_line,
        edit.after,
        tried.works,
        tried.loss,
        norms,
        tried.with_others,
        tried.trained,
        tried.not_trained,
        tried.keeps,
        step,
    )


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """While the context is open, neither Python nor TensorFlow prints or logs anything, and no temporary file stays,
    such as those of AutoGraph: the program has finished its output."""
    with contextlib.ExitStack() as undo:
        undo.callback(logging.disable, logging.root.manager.disable)
        logging.disable(sys.maxsize)
        undo.callback(setattr, tempfile, "tempdir", tempfile.tempdir)
        # When Python ends, AutoGraph no longer removes its files.
        tempfile.tempdir = undo.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        nowhere = undo.enter_context(open(os.devnull, "w", encoding="utf-8"))
        # What the program has put in their place may write to a file.
        streams = {name: getattr(sys, name) for name in ("stdout", "stderr", "__stdout__", "__stderr__")}
        _flush(streams.values())
        for number in filter(_is_open, (1, 2)):
            kept = os.dup(number)
            undo.callback(os.close, kept)
            undo.callback(os.dup2, kept, number)
            os.dup2(nowhere.fileno(), number)
        undo.callback(_flush, streams.values())
        for name in ("stdout", "stderr"):
            undo.callback(setattr, sys, name, streams[name])
            setattr(sys, name, nowhere)
        yield


def _flush(streams: Iterable[Any]) -> None:
    for stream in streams:
        with contextlib.suppress(Exception):  # it may be closed, or anything that the program has put in its place
            stream.flush()


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
