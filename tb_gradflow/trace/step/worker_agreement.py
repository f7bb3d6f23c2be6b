"""Whether every worker of a training can record a step: the workers notify each other while each traces it.

A recorded step has collective ops that the user's own step does not. A worker whose recorder fails traces a step
without them, and the others would wait for it forever.
"""

from __future__ import annotations

import itertools
from collections import Counter

import tensorflow as tf
from tensorflow.python.eager import context

from tb_gradflow.trace.graph.variables import replica_here

WAIT_SECONDS = 600
"""For the slowest worker to trace its step, including a worker that never answers."""

_STEPS = itertools.count()


class Agreement:
    """The messages of the workers about one step. All of them create their recorded steps in the same order."""

    def __init__(self) -> None:
        self._step = next(_STEPS)
        self._traces: Counter[int] = Counter()

    def all_can(self) -> bool:
        """Announces that this worker can record what it has traced, and waits for the others."""
        key = self._tell("yes")
        own = context.context()._collective_ops_server_def
        tasks = [(job.name, task) for job in own.cluster.job for task in job.tasks if job.name in ("chief", "worker")]
        try:
            return all(self._of(key, job, task) == "yes" for job, task in tasks)
        except tf.errors.OpError:  # a worker that does not answer
            return False

    def refuse(self) -> None:
        """Announces that this worker cannot record."""
        self._tell("no")

    def _tell(self, answer: str) -> str:
        replica = replica_here()
        key = f"tb_gradflow/{self._step}/{replica}/{self._traces[replica]}"
        self._traces[replica] += 1
        own = context.context()._collective_ops_server_def
        context.context().set_config_key_value(f"{key}/{own.job_name}/{own.task_index}", answer)
        return key

    def _of(self, key: str, job: str, task: int) -> str:
        return str(context.context().get_config_key_value(f"{key}/{job}/{task}", WAIT_SECONDS * 1000))
