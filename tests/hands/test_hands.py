"""Ordinary things around a training leave the same bits, output, errors, warnings and files with a recorder as without.

A sample of the hands, as one program for each mode. `TB_GRADFLOW_HANDS=all` tries all of them; a few names try these.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.hands.hand import MODES
from tests.serve.processes import environment

SAMPLE = (
    "callback_compiled_batch",
    "callback_frozen_batch",
    "callback_other_step_epoch",
    "callback_raised_batch",
    "backup",
    "callback_copied_by_pickled",
    "callback_copied_in_fit_by_deepcopy",
    "saved",
    "exported",
    "step_in_module_saved",
    "step_reads_numpy_random",
    "nan_after_effects",
    "signal_sigalrm_timelimit",
    "exception_set_in_thread",
    "generator_that_raises",
    "log_made_unwritable",
    "local_variables_stay",
    "exits",
)
"""At least one of each kind."""

COMPARED = ("error", "results", "output", "warnings", "files")


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the hands have left in each mode, and what another process can load of that."""
    directory = tmp_path_factory.mktemp("hands")
    asked = os.environ.get("TB_GRADFLOW_HANDS", " ".join(SAMPLE))
    names = [] if asked == "all" else asked.split()
    found: dict[str, Any] = {}
    for mode in MODES:
        path = directory / f"{mode}.json"
        program = ["-m", "tests.hands", "plain" if mode == "run" else mode, str(path), *names]
        command = ["-m", "tb_gradflow.cli.main", "run", "--try-fixes", "--logdir", str(directory / "logs")]
        runner = command if mode == "run" else []
        done = subprocess.run(
            [sys.executable, *runner, *program],
            env=environment(True),
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
        )
        assert path.exists(), done.stderr[-3000:]
        found[mode] = json.loads(path.read_text())
        subprocess.run(
            [sys.executable, "-m", "tests.hands.load", str(path), str(directory / "loaded.json")],
            env=environment(True),
            check=True,
            capture_output=True,
        )
        for name, loaded in json.loads((directory / "loaded.json").read_text()).items():
            found[mode][name]["loaded"] = loaded
    return found


@pytest.mark.parametrize("mode", MODES[1:])
def test_a_recorder_leaves_no_trace_in_what_people_do_around_a_training(mode: str, left: dict[str, Any]) -> None:
    differences = [
        f"{name}: {part}: {plain.get(part)} is {left[mode][name].get(part)}"
        for name, plain in left["plain"].items()
        for part in (*COMPARED, "loaded")
        if plain.get(part) != left[mode][name].get(part)
    ]

    assert not differences, "\n".join(differences)
