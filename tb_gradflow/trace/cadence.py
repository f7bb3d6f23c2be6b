"""Which steps to record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from tb_gradflow.errors import SetupError

UpdateFreq = int | Literal["auto", "epoch"]

Due = Callable[[int, bool], bool]
"""Whether to record, given the number of steps since recording began and whether an epoch begins."""

DENSE_STEPS = 10
"""Trouble at the start (a cut, a dead layer, a wrong initial value) shows within the first few steps."""

SPARSE_EVERY = 100
"""At 1.5 times the cost of a plain step, every hundredth adds half a percent."""


def cadence(update_freq: UpdateFreq) -> Due:
    """The rule that `update_freq` stands for."""
    if update_freq == "auto":
        return lambda steps, new_epoch: steps < DENSE_STEPS or steps % SPARSE_EVERY == 0
    if update_freq == "epoch":
        return lambda steps, new_epoch: new_epoch
    if isinstance(update_freq, bool) or not isinstance(update_freq, int):
        raise SetupError(f"update_freq must be 'auto', 'epoch' or a number of steps, got {update_freq!r}")
    if update_freq < 1:
        raise SetupError(f"update_freq must be at least 1 step, got {update_freq}")
    every = update_freq
    return lambda steps, new_epoch: steps % every == 0
