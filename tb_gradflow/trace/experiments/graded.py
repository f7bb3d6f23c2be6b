"""Experiments with the gradients of a step: what changes those that are not finite, or too small, and whether they
predict how the loss reacts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tensorflow.python.eager import record

from tb_gradflow.record.experiments import Intervention, Slope
from tb_gradflow.record.report import Status
from tb_gradflow.record.schema import StepValues
from tb_gradflow.trace.engine.additions import unobserved
from tb_gradflow.trace.engine.calls import places
from tb_gradflow.trace.engine.cells import Cell
from tb_gradflow.trace.engine.copies import copied
from tb_gradflow.trace.engine.draws import Draws
from tb_gradflow.trace.experiments.interventions import Interventions, is_finite, is_larger
from tb_gradflow.trace.experiments.loss_alone import LastStep, Loss, LossAlone, Pair, Suspected, gradients_of
from tb_gradflow.trace.experiments.slopes import slopes
from tb_gradflow.trace.experiments.suspects import Told
from tb_gradflow.trace.graph.build_trace import Numbered
from tb_gradflow.trace.graph.gradient_call import Call
from tb_gradflow.trace.protection.foreign import suppressed

_MOST_SECONDS = 0.5
"""How long gradients are changed, and how long variables are moved along them."""

BROKEN: tuple[Status, ...] = ("nan", "inf")
SMALL: tuple[Status, ...] = ("zero", "vanishing")
OTHERS: tuple[Status, ...] = ("connected", "exploding")

_MOST = 3
"""How many variables with a small gradient are looked at."""


_PARTS = (0.01, 0.0025)
"""How far variables are moved, in parts of their size, to see whether the loss is straight there."""

_FEW_DIGITS = ("float16", "bfloat16")


def mended(
    step: Callable[[], LastStep],
    losses: Mapping[int, Loss],
    calls: Sequence[Call],
    numbered: Numbered,
    measured: Mapping[str, Any],
    values: StepValues | None,
) -> tuple[Intervention, ...]:
    """What makes the gradients of a step finite that are not; nothing if it cannot run again. `values` are those of its
    forward pass."""
    with suppressed(), unobserved(), record.stop_recording():
        last = step()
        told = Told(numbered, measured, values)
        suspects, pairs = told.suspects(BROKEN, last.function), told.pairs(BROKEN)
        with copied(last.function, last.args, last.values) as copies:
            graded = Graded(last, losses, calls, copies, numbered)
            if (loss := graded.loss(pairs, suspects)) is not None:
                known = Interventions(loss, suspects, is_finite, _MOST_SECONDS)
                found = list(known.of_tensors())
                if values is not None:
                    found.extend(known.of_rows(values, lambda change: graded.with_batch(change).loss(pairs)))
                return tuple(found)
    return ()


class Graded:
    """A step whose gradients can be computed again.

    Args:
        step: It.
        losses: Its losses, by target.
        calls: Its requests for gradients.
        copies: Copies of its variables, by the ids of their handles.
        numbered: Its structure.
    """

    def __init__(
        self,
        step: LastStep,
        losses: Mapping[int, Loss],
        calls: Sequence[Call],
        copies: Mapping[int, Cell],
        numbered: Numbered,
    ) -> None:
        self._step = step
        self._losses = losses
        self._calls = calls
        graphs = [id(each.graph) for each in places(step.function) if not each.in_loop]
        self._gradients = gradients_of(calls, numbered.trace, graphs)
        self._copies = copies
        self._numbered = numbered

    def with_batch(self, change: Callable[[Any], Any]) -> Graded:
        """The same with another batch."""
        return Graded(self._step.with_batch(change), self._losses, self._calls, self._copies, self._numbered)

    def loss(
        self, pairs: Sequence[Pair], suspects: Sequence[Suspected] = (), draws: Draws | None = None
    ) -> LossAlone | None:
        """Its losses, with these gradients; `None` if none of them is known. See `LossAlone`."""
        wanted = {pair: self._gradients[pair] for pair in pairs if pair in self._gradients}
        return LossAlone(self._step, self._losses, self._copies, suspects, wanted, draws) if wanted else None

    def of_small_ones(
        self,
        loss: LossAlone,
        numbers: Mapping[int, int],
        first: tuple[Mapping[int, float], Mapping[int, float]],
        told: Told,
    ) -> tuple[Sequence[Slope], Sequence[Intervention]]:
        """What is known of gradients that are zero, or almost: whether the loss is as flat, and what makes them larger.

        Args:
            loss: The losses alone.
            numbers: Which argument a variable is.
            first: The losses, computed twice.
            told: What the report says of the step.
        """
        suspects = told.suspects(SMALL, self._step.function)
        graded = self.loss(told.pairs(SMALL)[:_MOST], suspects, loss.draws)
        if graded is None:
            return (), ()
        along = slopes(loss, graded, self._step, numbers, first, ("gradient", "random"), _MOST_SECONDS)
        known = Interventions(graded, suspects, is_larger, _MOST_SECONDS)
        return list(along), list(known.of_tensors())

    def of_others(
        self,
        loss: LossAlone,
        numbers: Mapping[int, int],
        first: tuple[Mapping[int, float], Mapping[int, float]],
        told: Told,
    ) -> Sequence[Slope]:
        """How the loss reacts to small moves of each other variable with a finding, or of all variables if a custom
        gradient is in question: to two lengths along its gradient and along another direction, as long as there is
        time; nothing where numbers have few digits. See `of_small_ones`."""
        tensors = (each for op in self._numbered.trace.ops for each in op.outputs)
        has_custom = bool(self._numbered.trace.gradient_checks)
        graded = self.loss(list(self._gradients) if has_custom else told.pairs(OTHERS), (), loss.draws)
        if graded is None or any(each.dtype in _FEW_DIGITS for each in tensors):
            return ()
        return list(slopes(loss, graded, self._step, numbers, first, ("gradient", "random"), _MOST_SECONDS, _PARTS))
