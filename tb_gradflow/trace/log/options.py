"""The arguments of the public recorders, checked before any training."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from tb_gradflow.errors import SetupError
from tb_gradflow.store.elsewhere import is_elsewhere, local_path
from tb_gradflow.trace.capture.collector import Tensors
from tb_gradflow.trace.log.cadence import Cadence, UpdateFreq, cadence
from tb_gradflow.trace.log.findings import OnFinding, TryFixes
from tb_gradflow.trace.log.recorder import check_directory
from tb_gradflow.trace.step.settings import Settings

# `pathlib` turns two slashes into one. A Windows drive has one letter.
_ADDRESS_IN_PATH = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]+):/(?P<rest>[^/].*)")


@dataclass(frozen=True, slots=True)
class Options:
    """The arguments of a recorder.

    Attributes:
        log_dir: Absolute, or the address of another filesystem; empty if it is not known yet.
        cadence: Which steps to record.
        expected: Name patterns of variables that are meant to get no gradient.
        settings: What to record of a step.
        on_finding: Called with each new finding.
        try_fixes: Whether edits are tried when the program has ended.
        share: The part of the training's time that this may take if it is `"auto"`.
    """

    log_dir: str
    cadence: Cadence
    expected: tuple[str, ...]
    settings: Settings
    on_finding: OnFinding | None = None
    try_fixes: TryFixes = "auto"
    share: float = 0.01


LATER = PurePath()
"""A directory that is not known yet."""


def checked(
    log_dir: str | os.PathLike[str],
    update_freq: UpdateFreq,
    overhead: float,
    tensors: Tensors,
    catch_nonfinite: bool,
    expected: Sequence[str],
    source: bool,
    terms: bool,
    examples: bool,
    on_finding: OnFinding | None = None,
    try_fixes: TryFixes = "auto",
) -> Options:
    """Raises SetupError if an argument is wrong, or if `log_dir` cannot be written, unless it is `LATER`."""
    if tensors not in ("all", "layers", "variables"):
        raise SetupError(f"tensors must be 'all', 'layers' or 'variables', got {tensors!r}")
    if isinstance(expected, str) or not all(isinstance(pattern, str) for pattern in expected):
        raise SetupError(f"expected must be a sequence of name patterns, got {expected!r}")
    settings = Settings(
        tensors,
        bool(source),
        terms=bool(terms),
        examples=bool(examples),
        guarded=bool(catch_nonfinite),
        each=update_freq == "auto",
    )
    if on_finding is not None and not callable(on_finding):
        raise SetupError(f"on_finding must be a function of one finding, got {on_finding!r}")
    if try_fixes not in (True, False, "auto"):
        raise SetupError(f"try_fixes must be 'auto', True or False, got {try_fixes!r}")
    directory = "" if log_dir is LATER else _writable(log_dir)
    return Options(
        directory, cadence(update_freq, overhead), tuple(expected), settings, on_finding, try_fixes, overhead
    )


def _writable(log_dir: Any) -> str:
    if not isinstance(log_dir, (str, os.PathLike)) or not os.fspath(log_dir):
        raise SetupError(f"log_dir must name a directory, got {log_dir!r}")
    if (address := _ADDRESS_IN_PATH.match(os.fspath(log_dir))) and not isinstance(log_dir, str):
        raise SetupError(
            f"log_dir is the path object {log_dir!r}, which cannot hold the address of another filesystem: give the "
            f"string '{address['scheme']}://{address['rest']}'"
        )
    directory = _fixed(os.fspath(log_dir))
    check_directory(directory)
    return directory


def _fixed(log_dir: str) -> str:
    """The directory that `log_dir` refers to now, whatever the program's working directory is later."""
    return log_dir if is_elsewhere(log_dir) else os.path.abspath(local_path(log_dir))
