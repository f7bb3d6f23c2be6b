"""Whichever function of the recorder fails, the training goes on as it would have: a sample of what `faults` sweeps.

`TB_GRADFLOW_FAULTS=all` tries every function in every kind of training, which takes hours; a number tries so many.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.serve.processes import environment

SCENARIOS = ("fit", "watch", "program_start")

CASES = 4
"""Of each scenario: a training each, of less than a second."""


def swept(*arguments: str) -> subprocess.CompletedProcess[str]:
    wanted = os.environ.get("TB_GRADFLOW_FAULTS", str(CASES))
    scenarios = ["all"] if wanted == "all" else SCENARIOS
    cases = [] if wanted == "all" else ["--cases", wanted, "--small"]
    command = [sys.executable, "-m", "tests.trace.faults", *scenarios, *cases, *arguments]
    return subprocess.run(command, env=environment(True), capture_output=True, text=True)


def test_a_fault_anywhere_in_the_recorder_leaves_the_training_as_it_is() -> None:
    done = swept()

    assert done.returncode == 0, done.stdout + done.stderr[-2000:]


@pytest.mark.skipif("TB_GRADFLOW_FAULTS" not in os.environ, reason="set TB_GRADFLOW_FAULTS: see above")
def test_an_interrupt_anywhere_in_the_recorder_leaves_what_a_step_has_left() -> None:
    done = swept("--interrupt")

    assert done.returncode == 0, done.stdout + done.stderr[-2000:]


def test_a_time_limit_of_the_program_ends_the_training_wherever_the_recorder_is() -> None:
    """A signal handler that raises: its exception is no fault of the recorder's."""
    done = swept("--alarm")

    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
