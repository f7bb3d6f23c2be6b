"""Rounding leaves more or less of a gradient that is zero, depending on the machine."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tb_gradflow
from tb_gradflow.record.report import Diagnosis
from tests.recordings.logs import group, unpack


def with_noise(tmp_path: Path, times: float, *, beside: bool = False) -> Diagnosis:
    """A cosine similarity of single elements, whose variables get so many times the gradient; `beside` adds another
    way from the last of them to the loss."""
    log = json.loads(group("cases")["cosine_loss_for_one_output_unit"])
    [trace] = log["traces"]
    rows = np.frombuffer(base64.b64decode(log["steps"][0]["gradients"]), np.float32).reshape(-1, 6).copy()
    rows[[entry["row"] for entry in trace["variable_gradients"]], :3] *= times
    log["steps"][0]["gradients"] = base64.b64encode(rows.tobytes()).decode()
    if beside:
        loss, last = trace["targets"][0]["op"], len(trace["variables"]) - 1
        reader = next(place for place, op in enumerate(trace["ops"]) if op["reads"] == last)
        edge: dict[str, Any] = dict(trace["ops"][loss]["inputs"][0])
        trace["ops"][loss]["inputs"].append({**edge, "op": reader, "output": 0, "input": 1, "passes": "yes"})
    unpack(log, tmp_path)
    return tb_gradflow.open_log(tmp_path).report().diagnosis


@pytest.mark.parametrize("times", [1, 5, 100])
def test_noise_of_any_size_is_no_gradient(times: float, tmp_path: Path) -> None:
    found = with_noise(tmp_path, times)

    assert {each.status for each in found.variables} == {"vanishing"}
    assert [(each.cause, len(each.variables)) for each in found.findings] == [("degenerate_normalisation", 4)]


def test_a_gradient_that_comes_another_way_too_is_one(tmp_path: Path) -> None:
    found = with_noise(tmp_path, 5, beside=True)

    assert [each.status for each in found.variables] == ["vanishing", "vanishing", "vanishing", "connected"]
