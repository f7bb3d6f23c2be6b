"""Two logs beside each other, as a person and as a build server read them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tb_gradflow
from tb_gradflow.cli.main import main
from tb_gradflow.errors import LogError
from tests.store.samples import open_writer, session, step, trace, write_log


def write_healthy(directory: Path, steps: int = 3) -> None:
    with open_writer(directory, session(expected=("step_filter/*",))) as writer:
        writer.write_trace(trace())
        for number in range(steps):
            writer.write_step(step(number, norm=40.0))


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    write_log(tmp_path / "broken")
    write_healthy(tmp_path / "fixed")
    return tmp_path


def test_logs_paths_and_reports_can_be_compared(logs: Path) -> None:
    broken, fixed = tb_gradflow.open_log(logs / "broken"), tb_gradflow.open_log(logs / "fixed")

    of_logs = tb_gradflow.compare(broken, fixed)
    of_paths = tb_gradflow.compare(logs / "broken", logs / "fixed")
    of_reports = tb_gradflow.compare(broken.report(), fixed.report())

    assert of_logs.summary == of_paths.summary == of_reports.summary
    assert [change.fate for change in of_logs.findings if change.finding.cause == "nondiff_comparison"] == ["went"]


def test_the_first_log_is_looked_at_where_the_second_ends(tmp_path: Path) -> None:
    write_log(tmp_path / "long", steps=9)
    write_log(tmp_path / "short", steps=4)

    comparison = tb_gradflow.compare(tmp_path / "long", tmp_path / "short")

    assert (comparison.before.step, comparison.now.step) == (3, 3)


def test_the_text_says_what_went_and_how_much_larger_gradients_are(
    logs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", str(logs), "broken", "fixed"]) == 0

    said = capsys.readouterr().out
    assert said.splitlines()[:2] == ["before  broken, step 2", "now     fixed, step 2"]
    assert "GONE    ERROR  nondiff_comparison" in said
    assert "20 times larger" in said


@pytest.mark.parametrize(("before", "now", "status"), [("fixed", "broken", 1), ("broken", "fixed", 0)])
def test_a_build_fails_for_what_is_new(logs: Path, before: str, now: str, status: int) -> None:
    assert main(["compare", str(logs), before, now, "--fail-on-new"]) == status
    assert main(["compare", str(logs), before, now]) == 0
    assert main(["compare", str(logs), before, before, "--fail-on-new"]) == 0


def test_json_tells_the_same(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(logs), "fixed", "broken", "--json"]) == 0

    told = json.loads(capsys.readouterr().out)
    assert told["before"] == {"run": "fixed", "step": 2, "healthy": True}
    assert told["now"] == {"run": "broken", "step": 2, "healthy": False}
    [came] = [each for each in told["findings"] if each["change"] == "came"]
    assert (came["cause"], came["new"]) == ("nondiff_comparison", True)
    kernel = next(each for each in told["variables"] if each["name"] == "dense/kernel")
    assert kernel["before"] == {"name": "dense/kernel", "status": "connected", "norm": 40.0}
    assert kernel["ratio"] == pytest.approx(0.05)


def test_a_run_that_is_not_there_is_said(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(logs), "fixed", "tuned"]) == 2
    assert "has no run 'tuned': it has broken, fixed" in capsys.readouterr().err
    with pytest.raises(LogError, match="does not exist"):
        tb_gradflow.compare(logs / "fixed", logs / "nowhere")
