"""Experiments with a step whose loss or gradient was far above what is usual: what was it that made it so?

The step runs again on copies: as it was; with the weights of an earlier step; with that step's batch; and without the
rows of its batch that make most of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import record

from tb_gradflow.record.schema import MovedWeights, Spike, SpikeTrial
from tb_gradflow.trace.engine.additions import unobserved
from tb_gradflow.trace.engine.calls import places
from tb_gradflow.trace.engine.cells import Cell
from tb_gradflow.trace.engine.copies import copied
from tb_gradflow.trace.engine.repeated import NotRepeatable
from tb_gradflow.trace.experiments.loss_alone import MOST_OF_LOSS, LastStep, Loss, LossAlone, Pair, gradients_of
from tb_gradflow.trace.experiments.moves import Clock
from tb_gradflow.trace.nonfinite.guard import Caught
from tb_gradflow.trace.nonfinite.watched import NUMBERS
from tb_gradflow.trace.protection.foreign import suppressed
from tb_gradflow.trace.step.measurements import Measurements

_MOST_SECONDS = 2.0
"""How long rows are looked for."""

_MOST_SHARE = 0.1
"""More rows than this part of the batch are not what made a step unusual: they are a part of the data."""

_MOST_BEFORE = 8
"""How many steps before it are listed."""

Outcome = tuple[float, float]
"""A loss, and the norm of its gradient."""


def spike_of(caught: Caught, known: Any, last: LastStep) -> Spike:
    """What a step that was caught for its excess is.

    Args:
        caught: The step.
        known: What was measured of it.
        last: The same step, for experiments.
    """
    excess = caught.excess
    assert excess is not None
    request, of = divmod(excess.series, NUMBERS)
    loss, norm = NUMBERS * request, NUMBERS * request + 1
    target = caught.unit.targets[request]
    before = excess.recent[-_MOST_BEFORE:]
    trials: list[SpikeTrial] = []
    draws = False
    if isinstance(known, Measurements):
        # What cannot be tried is not known.
        with suppressed(), unobserved(), record.stop_recording():
            trials, draws = _tried(caught, known, target, last, is_of_loss=not of)
    return Spike(
        target,
        "gradient" if of else "loss",
        excess.values[loss],
        excess.usual[loss],
        excess.values[norm],
        excess.usual[norm],
        excess.highest,
        excess.limit,
        excess.steps,
        tuple(row[loss] for row in before),
        tuple(row[norm] for row in before),
        draws,
        0 if caught.unit.earlier is None else caught.unit.ago,
        tuple(trials),
        tuple(_moved(caught, known, last)),
        _rates(caught, known, last),
    )


def _tried(
    caught: Caught, known: Measurements, target: int, last: LastStep, *, is_of_loss: bool
) -> tuple[list[SpikeTrial], bool]:
    excess, earlier = caught.excess, caught.unit.earlier
    assert excess is not None
    graphs = [place.graph for place in places(last.function)]
    losses = {number: loss for number, loss in known.losses_in(graphs).items() if number == target}
    if not losses:
        raise NotRepeatable("its loss is not known")
    trials = []
    with copied(last.function, last.args, last.values) as copies:
        again = _Again(last, losses, known, copies, target)
        first = again.outcome()
        ratio = excess.values[NUMBERS * caught.unit.targets.index(target) + 1] / first[1] if first[1] else math.nan

        def trial(changed: Any, found: Outcome, **rows: Any) -> SpikeTrial:
            return SpikeTrial(changed, _finite(found[0]), _finite(found[1] * ratio), **rows)

        trials.append(trial("nothing", first))
        if earlier is not None:
            weights = {
                number: earlier.arguments[number]
                for place, number in last.numbers(known.variables).items()
                if place < len(known.trace.variables) and known.trace.variables[place].trainable
            }
            trials.append(trial("weights", again.outcome(weights)))
        limit = excess.limit if is_of_loss else excess.limit / ratio
        found = _rows(again, 0 if is_of_loss else 1, limit)
        if found is not None:
            rows, by, outcome = found
            trials.append(trial("rows", outcome, rows=rows, copied=by))
        if earlier is not None:
            other = _with_batch_of(caught, earlier, last)
            trials.append(trial("batch", _Again(other, losses, known, copies, target).outcome()))
        return trials, bool(again.loss.draws.are_made)


class _Again:
    """The loss of a step and its gradient, as often as they are needed."""

    def __init__(
        self, step: LastStep, losses: Mapping[int, Loss], known: Measurements, copies: Mapping[int, Cell], target: int
    ) -> None:
        graphs = [id(each.graph) for each in places(step.function) if not each.in_loop]
        gradients = gradients_of(known.calls, known.numbered.trace, graphs)
        wanted: dict[Pair, Any] = {pair: each for pair, each in gradients.items() if pair[0] == target}
        self.loss = LossAlone(step, losses, copies, (), wanted)
        self._target = target
        self._step = step

    def outcome(self, moved: Mapping[int, Any] = {}) -> Outcome:
        loss = self.loss(MOST_OF_LOSS, moved).get(self._target, math.nan)
        squares = [float(tf.reduce_sum(tf.square(tf.cast(each, tf.float64)))) for each in self.loss.gradients.values()]
        return loss, math.sqrt(sum(squares)) if squares else math.nan

    def with_rows(self, places: Sequence[int]) -> Outcome:
        """With these rows of the batch in place of its own."""

        def taken(tensor: Any) -> Any:
            is_of_batch = tensor.dtype not in (tf.resource, tf.variant) and tensor.shape[:1] == [len(places)]
            return tf.gather(tensor, places) if is_of_batch else tensor

        self.loss.have_batch(taken)
        return self.outcome()

    def batch(self) -> int:
        """The number of rows; 0 if the tensors of the batch have not the same."""
        sizes: set[int] = set()

        def noted(tensor: Any) -> Any:
            if tensor.dtype not in (tf.resource, tf.variant) and tensor.shape.rank:
                sizes.add(int(tensor.shape[0]))
            return tensor

        self._step.with_batch(noted)
        return sizes.pop() if len(sizes) == 1 else 0


def _rows(again: _Again, measure: int, limit: float) -> tuple[tuple[int, ...], int, Outcome] | None:
    """The fewest rows that make the step what it is, by which row they were replaced, and what became of it; `None` if
    the step is not usual without any few rows."""
    batch, clock = again.batch(), Clock(_MOST_SECONDS, 0.0)
    found: list[int] = []
    for _ in range(max(1, int(_MOST_SHARE * batch)) if batch > 2 else 0):
        left = [row for row in range(batch) if row not in found]
        worst, usual = left, left[:1]
        while len(worst) > 1:
            if clock.is_over:
                return None
            halves = worst[: len(worst) // 2], worst[len(worst) // 2 :]
            one, other = (again.with_rows([half[row % len(half)] for row in range(batch)])[measure] for half in halves)
            is_first = not one <= other  # what is not finite is larger
            worst, usual = halves if is_first else halves[::-1]
        found += worst
        by = next(row for row in (*usual, *left) if row not in found)
        outcome = again.with_rows([by if row in found else row for row in range(batch)])
        if outcome[measure] < limit:
            return tuple(found), by, outcome
    return None


def _with_batch_of(caught: Caught, earlier: Caught, last: LastStep) -> LastStep:
    """The step with its weights, and the batch of an earlier step."""
    unit = caught.unit
    args = [
        last.args[number] if number in unit.resources else earlier.arguments[number]
        for number in range(len(unit.function.graph.inputs))
    ]
    given = unit.effects.given(earlier.effects, all_run=True)
    return LastStep(unit.function, args, last.values, unit.effects, given)


def _moved(caught: Caught, known: Any, last: LastStep) -> Iterator[MovedWeights]:
    earlier = caught.unit.earlier
    if earlier is None or not isinstance(known, Measurements):
        return
    trainable = {place for place, each in enumerate(known.trace.variables) if each.trainable}
    for place, number in last.numbers(known.variables).items():
        one, other = earlier.arguments.get(number), last.values[number]
        if place in trainable and one is not None and other is not None and one.dtype.is_floating:
            before, now = (np.asarray(each, np.float64) for each in (one, other))
            change = now - before
            largest = float(np.max(np.abs(change), initial=0.0))
            if before.shape == now.shape and np.isfinite(change).all() and change.any():
                yield MovedWeights(
                    place, float(np.linalg.norm(before)), float(np.linalg.norm(change)), largest, before.size
                )


def _rates(caught: Caught, known: Any, last: LastStep) -> tuple[float, ...]:
    """The value of the only variable that is a learning rate: in the earlier step, and now."""
    earlier = caught.unit.earlier
    if earlier is None or not isinstance(known, Measurements):
        return ()
    handles = {id(getattr(each, "handle", None)) for each in known.rates}
    numbers = [number for number in last.values if id(last.args[number]) in handles]
    both = [(earlier.arguments.get(number), last.values[number]) for number in numbers]
    return tuple(map(float, both[0])) if len(both) == 1 and all(each is not None for each in both[0]) else ()


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
