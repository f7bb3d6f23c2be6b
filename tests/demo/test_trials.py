"""`tb-gradflow demo` tries the fixes of a broken model in a recorded step; the log says what they did."""

from __future__ import annotations

from pathlib import Path

from tb_gradflow import open_log
from tb_gradflow.demo.__main__ import train
from tb_gradflow.demo.gallery import chosen


def test_the_log_of_a_demonstration_says_what_its_fixes_did(tmp_path: Path) -> None:
    [demo] = chosen(["quantised_by_cast"])

    train(demo, str(tmp_path))

    log = open_log(tmp_path / "quantised_by_cast" / "broken")
    [finding] = log.report().findings
    assert finding.edit is not None
    assert finding.tried is not None
    assert finding.tried.works
    assert finding.tried.step == 0
    assert finding.tried.gradient_norm[0].norm > 0
    text = str(log.report())
    assert "Tried on the batch of step 0" in text
    assert "has not been run" not in text
    assert open_log(tmp_path / "quantised_by_cast" / "fixed").report().healthy
