"""The recorder recognises its own lines in a traceback by the files that they lie in."""

from __future__ import annotations

from pathlib import Path

import tb_gradflow
from tb_gradflow.trace.explain import one_step
from tb_gradflow.trace.protection import beside
from tb_gradflow.trace.source import frames, user_line


def test_the_package_and_the_callers_of_the_users_step_are_where_they_are_looked_for() -> None:
    assert Path(frames.PACKAGE) == Path(tb_gradflow.__file__).parent
    assert Path(user_line.STEP) == Path(beside.__file__)
    assert Path(user_line.EXPLAIN) == Path(one_step.__file__)
