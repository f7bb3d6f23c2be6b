"""Logs that nobody recorded are read or refused in words: never a traceback, a hang, or memory without bound.

`TB_GRADFLOW_FUZZ=5000` reads that many; `python -m tests.hostile.fuzz` tens of thousands, and says which failed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

from tests.hostile.mutations import SEEDS, kinds_in
from tests.serve.processes import REPOSITORY, environment

COUNT = int(os.environ.get("TB_GRADFLOW_FUZZ", "120"))


def test_the_logs_that_are_changed_have_every_kind_of_record() -> None:
    kinds = set().union(*(kinds_in(path) for path in SEEDS))

    assert kinds == {"session", "trace", "steps", "gradients", "variables", "cost", "values"}


def test_whatever_is_changed_in_a_log_it_is_read_or_refused() -> None:
    """In a process of its own, whose memory is bounded."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.hostile.fuzz", str(COUNT)],
        cwd=REPOSITORY,
        env=environment(tensorflow=False),
        capture_output=True,
        text=True,
        check=True,
    )

    [faults] = re.findall(r"logs in \d+ s, (\d+) faults", ran.stdout)
    assert faults == "0", ran.stdout
