"""Gradients beside the other summaries of a training loop of one's own, under its `tf.summary` writer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["gradients"]


def gradients(loss: Any, variables: Sequence[Any], gradients: Sequence[Any], name: str = "loss") -> None:
    """Records the gradients that a tape answered, for the tab "Gradient flow" of TensorBoard.

        with writer.as_default(step=step):
            tb_gradflow.summary.gradients(loss, variables, tape.gradient(loss, variables))

    It goes by the rules of `tf.summary`: nothing is recorded without a default writer, or where `record_if` says no;
    the step is that of the writer; of the replicas of a strategy the first one records. Several losses of one step are
    told apart by their names. The gradients are recorded as they are given, and those that are None as missing.

    Inside a `tf.function` the way from the variables to the loss is recorded with them. An eager loss does not know its
    way, so the log then says only which variables got which gradient; `watch` sees more. Like all summaries it cannot
    be compiled by XLA.

    Raises:
        SetupError: the arguments are of other kinds or in another order, the gradients are not one for each variable,
            or no step is set.
    """
    from tb_gradflow.trace.summaries import record_gradients

    record_gradients(loss, variables, gradients, name)
