"""What takes long is told."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tb_gradflow.trace.log import progress
from tests.trace import models
from tests.trace.recording import data, record


def test_what_is_over_soon_is_not_told(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 60.0)

    with progress.told_if_long("waiting"):
        pass

    assert caplog.messages == []


def test_what_takes_long_is_told_while_it_does_and_after(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.05)

    with progress.told_if_long("waiting"):
        while not caplog.messages:
            time.sleep(0.01)

    assert caplog.messages[0] == "tb_gradflow: waiting …"
    assert caplog.messages[1].startswith("tb_gradflow: waiting took ")


def test_the_first_recorded_step_of_a_training_is_told_and_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.0005)

    record(tmp_path, models.functional, *data(), epochs=3)

    told = [message for message in caplog.messages if "compiling" in message]
    assert len(told) == 2
    assert "took" in told[1]
