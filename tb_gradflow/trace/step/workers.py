"""The differences in recording when several devices or several processes train one model."""

from __future__ import annotations

import weakref
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context

from tb_gradflow.trace.eager.shadow_symbols import EAGER_REPLICAS


def unsupported(strategy: Any, is_eager: bool) -> str | None:
    """Why a training under a strategy cannot be recorded; None if it can."""
    if isinstance(strategy, tf.distribute.experimental.ParameterServerStrategy):
        return "the workers of a ParameterServerStrategy run its steps independently, and no process runs a whole step."
    if is_eager and strategy.num_replicas_in_sync > 1:
        return EAGER_REPLICAS
    if _is_another(strategy):
        return ANOTHER_STRATEGY
    return None


def _is_another(strategy: Any) -> bool:
    """Whether trainings under another strategy with several replicas were recorded in this process."""
    global _recorded
    if strategy.num_replicas_in_sync <= 1:
        return False
    if _recorded is None:
        _recorded = weakref.ref(strategy)
    return _recorded() is not strategy


_recorded: weakref.ref[Any] | None = None

ANOTHER_STRATEGY = (
    "another strategy with several replicas was recorded in this process, and TensorFlow confuses the "
    "all-reduces of the two. Use one strategy for all trainings of a process."
)


def is_one_of_several() -> bool:
    """Whether other processes train in step with this one, synchronised by collective ops."""
    return context.context()._collective_ops_server_def is not None and _worker_count() > 1


def writes_log() -> bool:
    """Whether this process records its training: with several workers, the chief does."""
    return not is_one_of_several() or _is_chief()


OF_ONE_WORKER = (
    "Several workers train this model. Losses and gradients are those of the part of the batch that the chief has; the "
    "variables move by the gradients of all workers."
)


def _is_chief() -> bool:
    """By TensorFlow's definition: the task called chief, or the first worker if there is none."""
    own = context.context()._collective_ops_server_def
    if any(job.name == "chief" for job in own.cluster.job):
        return bool(own.job_name == "chief")
    return bool(own.task_index == 0)


def _worker_count() -> int:
    jobs = context.context()._collective_ops_server_def.cluster.job
    return sum(len(job.tasks) for job in jobs if job.name in ("chief", "worker"))
