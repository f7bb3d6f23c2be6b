"""Logs of every released format stay readable: the samples here are never edited."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tb_gradflow
from tb_gradflow.record.schema import FORMAT

SAMPLES = sorted(Path(__file__).parent.glob("v*"))


def test_there_is_a_sample_of_every_format() -> None:
    assert [sample.name for sample in SAMPLES] == [f"v{version}" for version in range(1, FORMAT + 1)]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_a_sample_tells_what_was_wrong_with_its_model(sample: Path) -> None:
    log = tb_gradflow.open_log(sample)
    report = log.report()

    assert log.steps == tuple(range(36))
    assert {name: each.status for name, each in report.variables.items()} == {
        "sequential/dense/kernel": "connected",
        "sequential/dense/bias": "connected",
        "sequential/step_filter/threshold": "disconnected",
        "sequential/head/kernel": "connected",
        "sequential/head/bias": "connected",
    }
    [finding] = [each for each in report.findings if each.severity == "error"]
    assert finding.cause == "nondiff_comparison"
    assert finding.source is not None
    assert (finding.source.file, finding.source.line) == ("model.py", 12)
    assert finding.source.code == "mask = tf.sequence_mask(self.threshold, 8, dtype=tf.float32)"


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_a_sample_keeps_its_numbers(sample: Path) -> None:
    log = tb_gradflow.open_log(sample)

    kernel, threshold = log.history("sequential/dense/kernel"), log.history("sequential/step_filter/threshold")

    assert kernel["step"].tolist() == list(range(36))
    assert (kernel["norm"] > 0).all()
    assert (kernel["update_norm"] > 0).all()
    assert np.isnan(threshold["norm"]).all()
    assert threshold["weight_norm"].tolist() == [4.0] * 36
    assert threshold["update_norm"].tolist() == [0.0] * 36
