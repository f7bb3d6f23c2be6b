"""Records the logs of the reports that tests with TensorFlow make: of each test the last one, if its log is small.

    python -m tests.recordings.kept [TEST FILE …]      # minutes for all of `FILES`
    python -m tests.recordings.expected                # then: what is said about them

Those tests train real models, and check what is said about them, but only where TensorFlow is installed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tb_gradflow.errors import LogError
from tb_gradflow.serve.reports.report import Report
from tests.recordings.logs import group, groups, packed, save_group
from tests.recordings.record import ROOT, slug

FILES = (
    "tests/trace/findings",
    "tests/trace/explain/test_edits_of_layers.py",
    "tests/trace/explain/test_first_contact.py",
    "tests/trace/explain/test_repairs.py",
    "tests/trace/explain/test_seen_in_the_wild.py",
    "tests/trace/explain/test_tried_edits.py",
    "tests/trace/nonfinite/test_not_finite.py",
    "tests/trace/numbers/test_movement.py",
)

GROUP = "kept"

MOST_CHARACTERS = 150_000
"""Of the JSON of a log."""

_NOT_HERE = ("/tmp/", "site-packages")
"""A log of a program in a temporary file names it, and so the machine."""


class Keeper:
    """A plugin of pytest.

    Attributes:
        logs: By the name of the test; of those that are not run, the ones recorded before.
    """

    def __init__(self) -> None:
        self.logs = dict(group(GROUP)) if GROUP in groups() else {}

    @pytest.fixture(autouse=True)
    def _kept_of_test(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        made: list[Report] = []
        begin = Report.__init__

        def begin_and_keep(report: Report, *args: Any, **kwargs: Any) -> None:
            begin(report, *args, **kwargs)
            made.append(report)

        monkeypatch.setattr(Report, "__init__", begin_and_keep)
        yield
        if made:
            self._keep(slug(request.node.name.removeprefix("test_")), made[-1])

    def _keep(self, name: str, report: Report) -> None:
        if report._history is None:
            return
        try:
            log = packed(report._history()._run)
        except LogError as error:
            sys.stderr.write(f"no log of {name}: {error}\n")
            return
        if len(log) <= MOST_CHARACTERS and not any(each in log for each in _NOT_HERE):
            self.logs[name] = log
            save_group(GROUP, self.logs)


def main(files: Sequence[str]) -> None:
    pytest.main(["-q", "-p", "no:cacheprovider", "--rootdir", str(ROOT), *(files or FILES)], plugins=[Keeper()])


if __name__ == "__main__":
    main(sys.argv[1:])
