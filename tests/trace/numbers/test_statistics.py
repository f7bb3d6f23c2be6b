"""The statistics themselves: against the obvious version, and for the laws they must obey."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tb_gradflow.trace.numerics import arrays as in_memory
from tb_gradflow.trace.numerics.later import Later, statistics, table
from tb_gradflow.trace.numerics.statistics import gradient_statistics, variable_statistics

# Subnormal numbers are left out: TensorFlow's kernels flush them to zero. So are those whose sum leaves float32.
FINITE = st.floats(-(2.0**100), 2.0**100, width=32, allow_subnormal=False)
FLOATS = st.one_of(FINITE, st.sampled_from([0.0, float("nan"), float("inf"), -float("inf")]))


MEASURES = pytest.mark.parametrize("measure", [gradient_statistics, statistics])


@MEASURES
@settings(deadline=None, max_examples=150)
@given(
    values=arrays.arrays(
        np.float32, arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=6), elements=FLOATS
    )
)
def test_statistics_are_the_obvious_ones(measure: Callable[[Any], Any], values: np.ndarray) -> None:
    measured = measure(tf.constant(values)).numpy()

    finite = np.abs(values[np.isfinite(values)]).astype(np.float64)
    assert measured[0] == pytest.approx(np.linalg.norm(finite), rel=1e-5)
    assert measured[1] == pytest.approx(finite.max(initial=0.0), rel=1e-6)
    assert measured[2] == pytest.approx(finite.mean() if finite.size else 0.0, rel=1e-5)
    assert measured[3] == pytest.approx(np.mean(values == 0) if values.size else 0.0, abs=1e-6)
    assert measured[4] == np.isnan(values).sum()
    assert measured[5] == np.isinf(values).sum()


@MEASURES
@pytest.mark.parametrize("scale", [1e-30, 1e-20, 1.0, 1e20, 1e30])
def test_norm_scales_with_the_tensor(measure: Callable[[Any], Any], scale: float) -> None:
    """Squares of 1e-30 and of 1e30 leave float32; the norm must not notice."""
    norm, largest, mean, *_ = measure(tf.constant([3.0, -4.0]) * scale).numpy()

    assert norm == pytest.approx(5.0 * scale, rel=1e-6)
    assert largest == pytest.approx(4.0 * scale, rel=1e-6)
    assert mean == pytest.approx(3.5 * scale, rel=1e-6)


@MEASURES
@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.complex64])
def test_every_type_of_gradient_is_measured(measure: Callable[[Any], Any], dtype: tf.DType) -> None:
    norm, largest, _, zeros, *_ = measure(tf.cast(tf.constant([3.0, -4.0, 0.0, 0.0]), dtype)).numpy()

    assert (norm, largest, zeros) == (5.0, 4.0, 0.5)


@pytest.mark.parametrize("count", [1, 2, 3, 8, 11])
def test_tensors_that_are_measured_together_have_a_row_each(count: int) -> None:
    tensors = [tf.fill([3, number], float(number)) for number in range(count)]

    @tf.function(autograph=False)
    def rows(is_wanted: Any, given: Any) -> Any:
        return table([Later(statistics, each) for each in given], is_wanted)

    np.testing.assert_array_equal(
        rows(tf.constant(True), tensors), [gradient_statistics(each).numpy() for each in tensors]
    )
    np.testing.assert_array_equal(rows(tf.constant(False), tensors), np.zeros([count, 6]))


def test_a_variable_measured_in_parts_is_measured_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    before, gradient = random.normal(size=(2, 11)).astype(np.float32)
    before[[1, 8]], gradient[[2, 9]] = np.nan, 0.0
    now = before - np.where(random.uniform(size=11) < 0.5, gradient, 0.0).astype(np.float32)

    def measured() -> Any:
        variables, moves = [], []
        for part in in_memory.parts_of(now):
            change = now[part] - before[part]
            variables.append(in_memory.variable_columns(now[part], change, before[part]))
            moves.append(
                in_memory.movement_columns(
                    gradient[part], before[part], change, [], 0.1, 1e-7, is_proportional=True, is_scaled=False
                )
            )
        return len(moves), in_memory.whole_variable(variables), in_memory.whole_movement(moves)

    whole = measured()
    monkeypatch.setattr(in_memory, "_PART", 3)
    parts = measured()

    assert (whole[0], parts[0]) == (1, 4)
    np.testing.assert_allclose(parts[1], whole[1], rtol=1e-6)
    assert parts[2] == whole[2]


def test_half_precision_does_not_lose_its_own_squares() -> None:
    norm, *_ = gradient_statistics(tf.constant([3e-6, 4e-6], tf.float16)).numpy()

    assert norm == pytest.approx(5e-6, rel=0.02)


def test_rows_named_twice_are_added_before_they_are_measured() -> None:
    slices = tf.IndexedSlices(tf.constant([[3.0], [1.0], [4.0]]), tf.constant([1, 1, 2]), tf.constant([5, 1]))

    norm, largest, _, zeros, *_ = gradient_statistics(slices).numpy()

    assert norm == pytest.approx(np.sqrt(32.0))
    assert largest == 4.0
    assert zeros == pytest.approx(0.6)


def test_update_is_the_norm_of_the_difference() -> None:
    now, before = tf.constant([3.0, 4.0]), tf.constant([3.0, 4.0 - 1e-3])

    weight, update, *nonfinite = variable_statistics(now, before).numpy()

    assert weight == 5.0
    assert update == pytest.approx(1e-3, rel=1e-3)
    assert nonfinite == [0.0, 0.0]


def test_update_of_a_variable_without_a_past_is_unknown() -> None:
    weight, update, before, after = variable_statistics(tf.constant([1.0, np.inf]), None).numpy()

    assert (weight, after) == (1.0, 1.0)
    assert np.isnan([update, before]).all()


def test_elements_that_are_not_finite_are_counted_before_and_after_and_left_out_of_the_norms() -> None:
    now, before = tf.constant([3.0, np.nan, np.inf, 4.0]), tf.constant([3.0, 1.0, np.inf, 0.0])

    weight, update, *nonfinite = variable_statistics(now, before).numpy()

    assert (weight, update) == (5.0, 4.0)
    assert nonfinite == [1.0, 2.0]


def test_weights_that_an_update_makes_finite_again_were_not_before() -> None:
    assert variable_statistics(tf.constant([0.0]), tf.constant([np.nan])).numpy()[2:].tolist() == [1.0, 0.0]
