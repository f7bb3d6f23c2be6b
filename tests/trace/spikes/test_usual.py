"""What is usual of the numbers that the monitor sees, and what is far above it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tb_gradflow.trace.nonfinite.usual import FEWEST, NO_LIMIT, Usual
from tests.trace.spikes.healthy import alarms

RANDOM = np.random.default_rng(0)


def quiet(steps: int, *, level: float = 0.5, spread: float = 0.2) -> Any:
    """Losses and norms of gradients around a level."""
    return np.exp(np.log(level) + spread * RANDOM.normal(size=(steps, 2)))


def known(rows: Any) -> Usual:
    usual = Usual(2)
    usual.add(rows)
    return usual


def test_a_value_far_above_all_others_is_told_with_what_is_usual() -> None:
    rows = quiet(500)

    excess = known(rows).excess([0.4, 200.0], rows[-3:])

    assert excess is not None
    assert excess.series == 1
    assert excess.values == (0.4, 200.0)
    assert excess.usual == pytest.approx((0.5, 0.5), rel=0.2)
    assert excess.highest == rows[:, 1].max()
    assert excess.highest < excess.limit < 200.0
    assert (excess.steps, len(excess.recent)) == (500, 3)


def test_a_value_below_ten_times_the_median_is_usual_however_quiet_it_was() -> None:
    assert known(quiet(500, spread=1e-4)).excess([4.9, 4.9]) is None
    assert known(quiet(500, spread=1e-4)).excess([5.2, 0.5]) is not None


@pytest.mark.parametrize("freedom", [1.5, 2.0, 3.0])
def test_heavy_tails_have_wide_limits(freedom: float) -> None:
    rows = np.square(np.random.default_rng(3).standard_t(freedom, (40_000, 2)))

    assert not alarms(rows)


def test_a_loss_that_falls_and_rises_slowly_is_followed() -> None:
    course = np.exp(3 * np.cos(np.arange(20_000) / 500.0))[:, None]

    assert not alarms(course * quiet(20_000))


def test_a_loss_that_has_come_close_to_zero_may_rise_again_to_a_small_part_of_the_first() -> None:
    falling = np.concatenate([quiet(128), quiet(128, level=1e-2), quiet(512, level=1e-7)])

    usual = known(falling[:128])
    for first in range(128, len(falling), 32):
        usual.add(falling[first : first + 32])

    assert usual.excess([1e-3, 1e-3]) is None
    assert usual.excess([1.0, 1e-3]) is not None


def test_nothing_is_unusual_in_the_first_steps_nor_for_some_time_after_an_excess() -> None:
    usual = known(quiet(FEWEST - 1))
    assert np.all(usual.limits == NO_LIMIT)

    usual.add(quiet(1))
    assert np.all(usual.limits < NO_LIMIT)

    usual.rest()
    usual.add(quiet(FEWEST - 1))
    assert np.all(usual.limits == NO_LIMIT)


def test_what_is_not_finite_or_zero_says_nothing_of_what_is_usual() -> None:
    rows = quiet(200)
    rows[50:60] = np.nan, np.inf
    usual = known(rows)
    assert np.all(np.isfinite(usual.limits))

    assert known(np.zeros((200, 2))).excess([1.0, 1.0]) is None


def test_a_negative_loss_is_compared_by_its_size() -> None:
    usual = known(-quiet(500))

    assert usual.excess([-1000.0, 0.5]) is None
    assert usual.excess([1000.0, 0.5]) is not None
