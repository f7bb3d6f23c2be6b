"""What a recorder does differently where several devices or several processes train one model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import tensorflow as tf

from tb_gradflow.trace.cadence import DENSE_STEPS, Affordable, Fixed
from tb_gradflow.trace.options import Options

SPARSE_STEPS = 100
"""With several workers every one must record the same steps: what recording costs on each of them cannot decide. One
step in a hundred, at 1.5 times a plain one, is half a percent."""


def unsupported(strategy: Any, is_eager: bool) -> str | None:
    """Why a training under a strategy cannot be recorded; null if it can."""
    if isinstance(strategy, tf.distribute.experimental.ParameterServerStrategy):
        return "a ParameterServerStrategy's workers run its steps on their own, and no one sees a whole step."
    if is_eager and strategy.num_replicas_in_sync > 1:
        return "its replicas run eagerly at the same time, and such a step is only recorded compiled or on one device."
    return None


def is_one_of_several(strategy: Any) -> bool:
    """Whether other processes train the same model in step with this one."""
    return bool(strategy.extended._in_multi_worker_mode())


def is_writer(strategy: Any) -> bool:
    """Whether this process writes the log: of several workers, the chief does."""
    return not is_one_of_several(strategy) or bool(strategy.extended.should_save_summary)


def in_step_with_others(options: Options, strategy: Any) -> Options:
    """The same, with a rule that chooses the same steps in each worker."""
    if not is_one_of_several(strategy) or not isinstance(options.cadence, Affordable):
        return options
    together = Fixed(lambda steps, new_epoch: steps < DENSE_STEPS or steps % SPARSE_STEPS == 0)
    return replace(options, cadence=together)
