from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tb_gradflow.record.schema import Clip, LossScale, Movement, Trace, Variable
from tb_gradflow.serve.runs.course import spread
from tb_gradflow.serve.runs.heat import NO_GRADIENT, NOT_RECORDED, base_of, heat, of_updates, together, told
from tb_gradflow.serve.runs.history import Caches, History
from tb_gradflow.store.directory import DirectoryReader, find_runs
from tb_gradflow.store.run import StoredRun
from tests.store.samples import write_log


def history_of(log_dir: Path, steps: int) -> History:
    write_log(log_dir, steps=steps)
    [directory] = find_runs(str(log_dir)).values()
    return History(StoredRun(DirectoryReader(directory)), "run", Caches())


def test_a_column_is_a_step_and_a_row_a_variable(tmp_path: Path) -> None:
    history = history_of(tmp_path, steps=40)

    gradients = heat(history, 0, 0, "gradient", 100)
    ratios = heat(history, 0, 0, "ratio", 100)

    assert gradients.shape == (40, 2)
    assert gradients[:, 0].tolist() == [float(step) for step in range(40)]
    assert set(gradients[:, 1]) == {NO_GRADIENT}
    assert ratios[3, 0] == pytest.approx(0.125 / 4)


def test_a_target_that_nobody_asked_for_is_not_recorded(tmp_path: Path) -> None:
    assert set(heat(history_of(tmp_path, steps=2), 0, 7, "gradient", 10).ravel()) == {NOT_RECORDED}


def test_more_steps_than_columns_show_the_last_of_each_stretch(tmp_path: Path) -> None:
    columns = heat(history_of(tmp_path, steps=40), 0, 0, "weight", 4)

    assert columns[:, 0].tolist() == [10.0, 20.0, 30.0, 40.0]


@pytest.mark.parametrize("bad", [np.nan, np.inf, NO_GRADIENT, 0.0])
def test_what_is_worse_than_a_finite_number_is_seen_in_any_stretch(bad: float) -> None:
    whole = np.ones((100, 3), np.float32)
    whole[17, 1] = bad

    columns = together(whole, 7)

    assert columns.shape == (7, 3)
    np.testing.assert_array_equal(columns[1], np.array([1, bad, 1], np.float32))
    assert (np.delete(columns, 1, axis=0) == 1).all()


def test_a_gap_in_a_stretch_is_no_news() -> None:
    whole = np.array([[1.0], [NOT_RECORDED], [NOT_RECORDED], [2.0]], np.float32)

    assert together(whole, 2).ravel().tolist() == [NOT_RECORDED, 2.0]


def test_statistics_are_told_apart_by_what_is_in_them() -> None:
    rows = np.array([[2, 0, 0, 0, 0, 0], [2, 0, 0, 0, 1, 1], [2, 0, 0, 0, 0, 1], [np.nan] * 6, [0] * 6], np.float32)

    np.testing.assert_array_equal(told(rows), np.array([2, np.nan, np.inf, NOT_RECORDED, 0], np.float32))


@pytest.mark.parametrize("count", [0, 1, 2, 3, 10, 65])
def test_every_place_is_looked_at_once_the_ends_first(count: int) -> None:
    order = list(spread(count))

    assert sorted(order) == list(range(count))
    assert order[:2] == [0, count - 1][:count]


def updated() -> tuple[Trace, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
    """Two clips of the first of two variables, and a loss scale of the second one's optimizer, in two steps."""
    variables = tuple(Variable(name, (3,), "float32", True, True) for name in ("clipped", "free"))
    trace = Trace(
        index=0,
        ops=(),
        variables=variables,
        targets=(),
        variable_gradients=(),
        tensor_gradients=(),
        layers=(),
        sources=(),
        notes=(),
        movements=(Movement(1, 0, 3, 0.0, ""),),
        clips=(Clip("clipnorm", 1.0, (0,), 0, 0), Clip("tf.clip_by_value", 1.0, (0,), 1, 0)),
        loss_scales=(LossScale(0, 2),),
    )
    rows: list[list[tuple[float, float]]] = [[(8, 4), (4, 1), (32, 5)], [(0, 0), (np.nan, np.nan), (16, 5)]]
    return trace, np.array([[[0, 0, *pair, 0, 0] for pair in step] for step in rows], np.float32)


@pytest.mark.parametrize(
    ("quantity", "expected"),
    [
        ("clip", [[0.125, NOT_RECORDED], [NOT_RECORDED, NOT_RECORDED]]),
        ("scale", [[NOT_RECORDED, 32.0], [NOT_RECORDED, 16.0]]),
        ("skipped", [[NOT_RECORDED, 2.0], [NOT_RECORDED, 3.0]]),
    ],
)
def test_what_is_measured_of_updates(quantity: str, expected: list[list[float]]) -> None:
    """As in `frontend/tests/heat.test.ts`."""
    trace, rows = updated()

    assert of_updates(rows, trace, [6, 7], quantity, 0.0).tolist() == expected


def test_an_optimizer_that_has_been_used_before_begins_with_nothing_skipped() -> None:
    trace, rows = updated()

    assert base_of(rows, trace, 6) == 0
    assert base_of(rows, trace, 1) == -3
    assert of_updates(rows, trace, [1, 2], "skipped", -3.0)[:, 1].tolist() == [0, 1]
