"""Trainings that are killed lose no flushed step: a few of those that `kills` kills.

`TB_GRADFLOW_KILLS=200` kills so many.
"""

from __future__ import annotations

import os
import subprocess
import sys

from tests.serve.processes import environment

KILLS = os.environ.get("TB_GRADFLOW_KILLS", "2")


def test_a_killed_training_has_lost_no_flushed_step() -> None:
    command = [sys.executable, "-m", "tests.trace.kills", KILLS, "--seed", "1"]

    done = subprocess.run(command, env=environment(True), capture_output=True, text=True)

    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
