"""Gradients next to the other summaries of a custom training loop, through its `tf.summary` writer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["gradients"]


def gradients(loss: Any, variables: Sequence[Any], gradients: Sequence[Any], name: str = "loss") -> None:
    """Records the gradients that a tape returned, for TensorBoard's tab "Gradient flow".

        with writer.as_default(step=step):
            tb_gradflow.summary.gradients(loss, variables, tape.gradient(loss, variables))

    It follows the rules of `tf.summary`: nothing is recorded without a default writer, or if `record_if` is false; the
    step is the writer's; under a strategy, the first replica records. Several losses of one step are distinguished by
    their names. The gradients are recorded as given; None is recorded as missing.

    Inside a `tf.function` the path from the variables to the loss is recorded too. An eager loss does not know how
    it was computed, so the log then holds only the gradients of the variables; `watch` records more. Like all
    summaries, it cannot be compiled by XLA.

    Raises:
        SetupError: the arguments have the wrong kinds or the wrong order, the gradients are not one for each variable,
            or no step is set.
    """
    from tb_gradflow.trace.tf_internals.used_symbols import require_part

    require_part("summaries")
    from tb_gradflow.trace.summaries import record_gradients

    record_gradients(loss, variables, gradients, name)
