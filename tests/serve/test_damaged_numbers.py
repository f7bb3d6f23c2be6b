"""Numbers that do not fit their trace are left out and named; the rest of the log is read."""

from __future__ import annotations

import struct
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tb_gradflow
from tb_gradflow.analyse.over_time.unmoved import is_same
from tb_gradflow.api import Log
from tb_gradflow.record.schema import OpValue, StepRecord, StepValues
from tb_gradflow.serve.runs.fitting import Sizes, gradients_that_fit
from tb_gradflow.serve.runs.heat import NOT_RECORDED, heat, value
from tb_gradflow.store.layout import Tag, event_file_path, float32_value
from tb_gradflow.store.writer import LogWriter, RecordFile, chunk_event
from tests.store.samples import session, step, trace

SESSION = session().id


class Careless(LogWriter):
    """Writes whatever it gets."""

    def _check(self, record: StepRecord) -> None:
        self._last_step = record.step


def log_of(directory: Path, *steps: StepRecord) -> Log:
    """A log of these steps, of which each is a chunk of its own."""
    with Careless(session(), RecordFile(event_file_path(str(directory))), clock=lambda: 0.0) as writer:
        writer.write_trace(trace())
        for each in steps:
            writer.write_step(each)
            writer.flush()
    return tb_gradflow.open_log(directory)


def gradients(number: int, *rows: tuple[float, ...]) -> StepRecord:
    flat = [value for row in rows for value in row]
    return replace(step(number), gradients=struct.pack(f"<{len(flat)}f", *flat))


def variables(number: int, *values: float) -> StepRecord:
    return replace(step(number), variables=struct.pack(f"<{len(values)}f", *values))


GOOD = (1.0, 0.5, 0.25, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("spoiled", "said"),
    [
        (gradients(1, GOOD), "has 1 rows, but its trace has 3"),
        (
            gradients(1, GOOD, (-1.0, 0.5, 0.25, 0.0, 0.0, 0.0), GOOD),
            "impossible statistics in row 1 (norm -1, max_abs",
        ),
        (gradients(1, GOOD, (1.0, 0.5, 0.25, 1.5, 0.0, 0.0), GOOD), "impossible statistics in row 1 (norm 1, max_abs"),
        (gradients(1, GOOD, GOOD, (1.0, 0.5, 0.25, 0.0, np.inf, 0.0)), "impossible statistics in row 2"),
        (gradients(1, GOOD, GOOD, (1.0, np.nan, 0.25, 0.0, 0.0, 0.0)), "impossible statistics in row 2"),
        (variables(1, 1.0, 0.1, 0.0, 0.0), "has 1 variables, but its trace has 2"),
        (variables(1, 1, 0, 0, 0, 1, -3, 0, 0), "an impossible value for variable 1 (update_norm -3)"),
        (variables(1, 1, 0, 0, 0, 1, 3, 0, np.inf), "an impossible value for variable 1 (nonfinite_after inf)"),
        (replace(step(1), losses=(0.5, 0.5)), "has 2 losses, but its trace has 1"),
    ],
)
def test_what_is_impossible_is_left_out_and_named(tmp_path: Path, spoiled: StepRecord, said: str) -> None:
    log = log_of(tmp_path, step(0), spoiled, step(2))

    reports = [log.report(number) for number in log.steps]

    assert [report.step for report in reports] == [0, 1, 2]
    assert {report.findings[0].cause for report in reports} == {"nondiff_comparison"}
    assert f"damaged log: gradflow/{'steps' if 'losses' in said else ''}" in log.recorded.damage
    assert said in log.recorded.damage
    assert "Part of the log is damaged and was left out" in str(log.report()).replace("\n", " ")


@pytest.mark.parametrize("norm", [np.nan, np.inf, 0.0, 3e38])
def test_what_is_possible_is_no_damage(tmp_path: Path, norm: float) -> None:
    row = (norm, 0.5, 0.25, 1.0, 0.0, 7.0)

    log = log_of(tmp_path, step(0), gradients(1, row, row, row))

    assert log.report().step == 1
    assert log.recorded.damage == ""


def test_a_gradient_with_an_impossible_size_was_not_measured(tmp_path: Path) -> None:
    bad = (-1.0, 0.5, 0.25, 0.0, 0.0, 0.0)
    log = log_of(tmp_path, step(0), gradients(1, bad, GOOD, GOOD), step(2))

    kernel = log.report(1).variables["dense/kernel"]

    assert kernel.gradient is None
    assert kernel.status == "not_measured"
    assert heat(log.recorded, 0, 0, "gradient", 9)[:, 0].tolist() == [0.0, NOT_RECORDED, 2.0]


def test_of_much_damage_some_is_named_and_the_rest_is_counted(tmp_path: Path) -> None:
    log = log_of(tmp_path, step(0), *(variables(number, 1, -1, 0, 0, 1, 0, 0, 0) for number in range(1, 9)))

    for number in log.steps:
        log.report(number)

    assert log.recorded.damage.count("impossible value") == 3
    assert log.recorded.damage.endswith(", and 5 more like it.")


def test_forward_values_of_ops_that_are_not_there_are_left_out(tmp_path: Path) -> None:
    there = OpValue(4, 0, -1, (2, 3), -1.0, 2.0, 0, 3, 0, 0, 0)
    spoiled = replace(step(1), values=StepValues(1, 4, (replace(there, op=77),)))

    log = log_of(tmp_path, replace(step(0), values=StepValues(0, 4, (there,))), spoiled)

    assert [log.report(number).step for number in (0, 1)] == [0, 1]
    assert "StepValues.values[0].op: expected a number from 0 to 5, got 77" in log.recorded.damage


def test_columns_that_an_older_log_does_not_have_are_not_known(tmp_path: Path) -> None:
    """Logs from before the counts of elements that are not finite."""
    old = chunk_event(SESSION, [step(0)])
    tag = Tag("variables", SESSION, 0)
    [place] = [place for place, value in enumerate(old.summary.value) if value.tag == str(tag)]
    old.summary.value[place].CopyFrom(float32_value(tag, (1, 2, 2), struct.pack("<4f", 1.0, 0.125, 2.0, 0.0)))
    sink = RecordFile(event_file_path(str(tmp_path)))
    with LogWriter(session(), sink) as writer:
        writer.write_trace(trace())
        sink.write(old.SerializeToString())

    log = tb_gradflow.open_log(tmp_path)

    numbers = log.recorded.variables(SESSION, 0)
    np.testing.assert_array_equal(numbers, [[[1.0, 0.125, np.nan, np.nan], [2.0, 0.0, np.nan, np.nan]]])
    assert log.recorded.damage == ""


def test_a_series_over_a_chunk_that_is_damaged_has_a_gap(tmp_path: Path) -> None:
    spoiled = chunk_event(SESSION, [step(1)])
    tag = Tag("gradients", SESSION, 1)
    [place] = [place for place, value in enumerate(spoiled.summary.value) if value.tag == str(tag)]
    spoiled.summary.value[place].CopyFrom(float32_value(tag, (1, 3, 9), bytes(3 * 9 * 4)))
    sink = RecordFile(event_file_path(str(tmp_path)))
    with LogWriter(session(), sink) as writer:
        writer.write_trace(trace())
        writer.write_step(step(0))
        sink.write(spoiled.SerializeToString())
        writer.write_step(step(2))

    log = tb_gradflow.open_log(tmp_path)

    norms = log.recorded.series(0)[:, 0]
    np.testing.assert_array_equal(norms, [0.0, np.nan, 2.0])
    assert "has shape (1, 3, 9), expected [1, rows, 6]" in log.recorded.damage


def test_an_update_that_is_known_in_part_was_not_measured() -> None:
    """Its counts are measured together, and the rate may be unknown."""
    sizes = Sizes(2, 0, 0, np.array([], np.intp), np.array([0, 1], np.intp), np.array([4.0, 4.0]))
    good, none = [0, 1, 0, 2, 0, np.nan], [np.nan] * 6
    partly = [[np.nan if place == missing else number for place, number in enumerate(good)] for missing in (1, 2, 3, 4)]
    numbers = np.array([[good, none], *([row, good] for row in partly)], np.float32)

    fitted, problem = gradients_that_fit(numbers, sizes)

    assert "impossible statistics in row 0" in problem
    np.testing.assert_array_equal(fitted[0], numbers[0])
    assert np.isnan(fitted[1:, 0]).all()
    np.testing.assert_array_equal(fitted[1:, 1], numbers[1:, 1])


def test_numbers_at_the_ends_of_float32_warn_nobody() -> None:
    numbers = np.array([[[1e-40, 3e38, 0, 0], [np.inf, np.inf, 0, 0]]], np.float32)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert value(numbers, "ratio")[0, 0] == np.inf
        assert is_same(numbers[:, 1, :1], np.array([np.inf], np.float32)).tolist() == [True]
