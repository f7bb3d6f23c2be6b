"""The differences in recording when several devices or several processes train one model."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context

from tb_gradflow.record.schema import Trace
from tb_gradflow.trace.eager.shadow_symbols import EAGER_REPLICAS
from tb_gradflow.trace.fidelity.warning import warn
from tb_gradflow.trace.log.cadence import DENSE_STEPS, Affordable, Fixed
from tb_gradflow.trace.log.options import Options
from tb_gradflow.trace.log.recorder import Identity, Recorder, SilentRecorder
from tb_gradflow.trace.tf_internals.versions import replicas_begin_alone

SPARSE_STEPS = 100
"""All workers must record the same steps, so the cost on each of them cannot decide. One step in a hundred, at 1.5
times a plain one, is half a percent.
"""


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


def must_begin_alone(step: Any) -> bool:
    """Whether a `tf.function` must run once on its own before it may be recorded: otherwise variables that it creates,
    such as an optimizer's, would not be initialized. Before it runs, nothing shows whether it has replicas; if there
    are several devices of one kind, it may.
    """
    if not replicas_begin_alone(tf.__version__) or tf.config.functions_run_eagerly():
        return False
    kinds = Counter(device.device_type for device in tf.config.list_logical_devices())
    return max(kinds.values()) > 1 and step.experimental_get_tracing_count() == 0


def is_one_of_several() -> bool:
    """Whether other processes train in step with this one, synchronised by collective ops."""
    return context.context()._collective_ops_server_def is not None and _worker_count() > 1


def in_step_with_others(options: Options) -> Options:
    """The same options, with a rule that chooses the same steps in each worker."""
    if not is_one_of_several():
        return options
    options = replace(options, settings=replace(options.settings, among_workers=True))
    if not isinstance(options.cadence, Affordable):
        return options
    return replace(options, cadence=Fixed(lambda steps, new_epoch: steps < DENSE_STEPS or steps % SPARSE_STEPS == 0))


def recorder_for(log_dir: str, identity: Identity) -> Recorder:
    """With several workers, the chief writes the log."""
    if not is_one_of_several():
        return Recorder(log_dir, identity)
    return ChiefRecorder(log_dir, identity) if _is_chief() else SilentRecorder(log_dir, identity)


class ChiefRecorder(Recorder):
    """Writes for several workers. If it cannot, it warns once and is silent afterwards: a chief that stopped running
    recorded steps would leave the others waiting for it.
    """

    _failed = False

    def add_trace(self, trace: Trace) -> int:
        return self._tried(lambda: super(ChiefRecorder, self).add_trace(trace)) or 0

    def add_step(self, *args: Any, **kwargs: Any) -> None:
        self._tried(lambda: super(ChiefRecorder, self).add_step(*args, **kwargs))

    def flush(self) -> None:
        self._tried(super().flush)

    def _tried(self, action: Callable[[], Any]) -> Any:
        if self._failed:
            return None
        try:
            return action()
        except Exception as error:
            self._failed = True
            warn(
                f"tb_gradflow stopped writing; training continues. Please report this: {type(error).__name__}: {error}"
            )
            return None


def _is_chief() -> bool:
    """By TensorFlow's definition: the task called chief, or the first worker if there is none."""
    own = context.context()._collective_ops_server_def
    if any(job.name == "chief" for job in own.cluster.job):
        return bool(own.job_name == "chief")
    return bool(own.task_index == 0)


def _worker_count() -> int:
    jobs = context.context()._collective_ops_server_def.cluster.job
    return sum(len(job.tasks) for job in jobs if job.name in ("chief", "worker"))
