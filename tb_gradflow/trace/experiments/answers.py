"""Whether a loss reacts to a variable that gets no gradient, and to the ops on the way to it: the variable, or the
input of an op, is moved, and the loss computed again, from the step's batch and with the same random numbers."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from tensorflow.python.eager import record

from tb_gradflow.analyse.step.measured import VANISHING_BELOW
from tb_gradflow.record.experiments import Influence, Intervention, LineSearch, Reaction, Slope
from tb_gradflow.record.schema import GRADIENT_STATISTICS, Trace
from tb_gradflow.trace.engine.additions import unobserved
from tb_gradflow.trace.engine.copies import copied
from tb_gradflow.trace.engine.repeated import NotRepeatable
from tb_gradflow.trace.experiments.graded import OTHERS, SMALL, Graded
from tb_gradflow.trace.experiments.line_search import line_searches, rate_in
from tb_gradflow.trace.experiments.loss_alone import MOST_OF_LOSS, LastStep, Loss, LossAlone
from tb_gradflow.trace.experiments.moves import Ask, Clock, Moves
from tb_gradflow.trace.experiments.reactions import reactions
from tb_gradflow.trace.experiments.suspects import Told, only_drawn_from, suspected
from tb_gradflow.trace.graph.build_trace import Numbered
from tb_gradflow.trace.graph.gradient_call import Call
from tb_gradflow.trace.graph.variables import Variables
from tb_gradflow.trace.protection.foreign import faults

_MOST_SECONDS = 0.7, 0.3
"""How long the variables of a step are moved, and then the inputs of ops, unless its loss takes longer; what is not
moved by then stays unknown."""

_MOST_ELEMENTS = 1 << 24
"""Larger variables are not moved."""

_TOLERANCE = 1e-3
"""A loss that is computed again is the same one if it differs by a smaller part: it is not compiled in the same way."""

_MOST_TIMES = 3
"""After how many steps of a training variables are moved, each time others."""

_MOST_STEPS = 50
"""In how many recorded steps such variables are looked for."""

_LARGEST = GRADIENT_STATISTICS.index("max_abs")
_NONFINITE = [GRADIENT_STATISTICS.index(column) for column in ("nan_count", "inf_count")]

Pairs = Mapping[int, Sequence[int]]
"""Variables, each with targets, by their numbers."""


def in_question(trace: Trace, gradients: npt.NDArray[np.float32]) -> dict[int, list[int]]:
    """The variables of a step that get no gradient, or one of zero, each with the targets for which it is so: those
    that were requested, and trainable ones that no target was differentiated by. First one of each layer."""
    # Not those with a small one: each attention layer has a bias whose gradient is rounding noise.
    asked = {entry.variable for entry in trace.variable_gradients if entry.outcome != "not_asked"}
    found: dict[int, list[int]] = {}
    for entry in trace.variable_gradients:
        row = None if entry.row is None else gradients[entry.row]
        is_zero = row is not None and row[_LARGEST] == 0 and not np.any(row[_NONFINITE])
        is_left_out = entry.variable not in asked and trace.variables[entry.variable].trainable
        if is_left_out or entry.outcome == "none" or (entry.outcome == "value" and is_zero):
            found.setdefault(entry.variable, []).append(entry.target)
    layers = Counter[str]()
    turns: dict[int, int] = {}
    for variable in found:
        layer = trace.variables[variable].name.rpartition("/")[0]
        turns[variable] = layers[layer]
        layers[layer] += bool(layer)
    return {variable: found[variable] for variable in sorted(found, key=turns.__getitem__)}


def small_ones(trace: Trace, gradients: npt.NDArray[np.float32]) -> set[int]:
    """The variables with a gradient that is finite, and so small that it trains nothing, but not zero."""
    found = set()
    for entry in trace.variable_gradients:
        row = gradients[entry.row] if entry.outcome == "value" and entry.row is not None else None
        if row is not None and 0 < row[_LARGEST] < VANISHING_BELOW and not np.any(row[_NONFINITE]):
            found.add(entry.variable)
    return found


class Questions:
    """The variables of a training that are moved, each once."""

    def __init__(self) -> None:
        self._moved: set[str] = set()
        self._graded: set[str] = set()
        self._times = 0
        self._steps = 0

    @property
    def are_over(self) -> bool:
        """Whether no more are moved."""
        return self._times == _MOST_TIMES or self._steps == _MOST_STEPS

    def new(self, trace: Trace, gradients: npt.NDArray[np.float32]) -> tuple[Pairs, bool]:
        """Those of a recorded step that have not been moved; and whether there are such with a small gradient."""
        if self.are_over:
            return {}, False
        self._steps += 1
        found, small = in_question(trace, gradients), small_ones(trace, gradients)
        new = {each: targets for each, targets in found.items() if trace.variables[each].name not in self._moved}
        self._times += bool(new)
        self._moved.update(trace.variables[each].name for each in new)
        graded = {trace.variables[each].name for each in small} - self._graded
        self._graded |= graded
        return new, bool(graded)


def answers(
    pairs: Pairs,
    losses: Mapping[int, Loss],
    variables: Variables,
    step: Callable[[], LastStep],
    was: Mapping[int, float],
    numbered: Numbered,
    measured: Mapping[str, Any],
    *,
    calls: Sequence[Call] = (),
    searches: bool = False,
    grades: bool = False,
) -> dict[str, Any]:
    """What is measured in addition of a step, if variables, and inputs of ops, are moved.

    Args:
        pairs: The variables.
        losses: Those of the step that can be computed again, by target.
        variables: Those of the trace.
        step: Returns the step.
        was: The losses in the step itself.
        numbered: The structure of the step.
        measured: What was measured in it.
        calls: Its requests for gradients, if these are computed in the same function.
        searches: Whether longer and shorter steps are in question too.
        grades: Whether the gradients of variables with a finding are in question.
    """
    known = {each: [target for target in listed if target in losses] for each, listed in pairs.items()}
    drawn = only_drawn_from(numbered, known)
    wanted = {each: own for each, own in known.items() if own and each not in drawn}
    found: list[Influence] = []
    reacted: list[Reaction] = []
    searched: list[LineSearch] = []
    intervened: Sequence[Intervention] = ()
    sloping: Sequence[Slope] = ()
    reason = "the random numbers that follow from this variable would be others" if drawn else ""
    try:
        told = Told(numbered, measured, None) if (grades or wanted) and losses and calls else None
        is_told = told is not None and bool(told.pairs((*SMALL, *OTHERS)) or numbered.trace.gradient_checks)
        if wanted or ((searches or is_told) and losses):
            # Whatever the user's tapes and callbacks see is part of the training.
            with unobserved(), record.stop_recording():
                last = step()
                listed = suspected(numbered, measured, pairs, last.function)
                with copied(last.function, last.args, last.values) as copies:
                    loss = LossAlone(last, losses, copies, listed)
                    numbers, first, took = last.numbers(variables), *_twice(loss)
                    found.extend(_influences(loss, wanted, last, numbers, was, first, Clock(_MOST_SECONDS[0], took)))
                    reacted.extend(reactions(loss, listed, Clock(_MOST_SECONDS[1], took)))
                    if searches:
                        rate = rate_in(numbered.trace, measured["gradients"])
                        # What the step keeps for itself, such as running means, is not moved by the learning rate.
                        listed_as = numbered.trace.variables
                        trained = {each: number for each, number in numbers.items() if listed_as[each].trainable}
                        searched.extend(line_searches(loss, last, trained, first, rate))
                    if told is not None and is_told:
                        # Its gradients may need Python, where its losses do not.
                        with contextlib.suppress(NotRepeatable):
                            graded = Graded(last, losses, calls, copies, numbered)
                            sloping, intervened = graded.of_small_ones(loss, numbers, first, told)
                            sloping = [*sloping, *graded.of_others(loss, numbers, first, told)]
    except NotRepeatable as error:
        reason = str(error)
    except faults() as fault:  # the training goes on, and so does its recording
        reason = f"{type(fault).__name__}: {fault}"
    return {
        "influences": tuple(found),
        "reactions": tuple(reacted),
        "line_searches": tuple(searched),
        "interventions": tuple(intervened),
        "slopes": tuple(sloping),
        "not_moved": reason if wanted or drawn else "",
    }


def _twice(loss: LossAlone) -> tuple[tuple[Mapping[int, float], Mapping[int, float]], float]:
    """The losses, computed twice, and how many seconds that takes once."""
    compiled, began = loss(MOST_OF_LOSS), time.monotonic()
    return (compiled, loss(MOST_OF_LOSS)), time.monotonic() - began


def _influences(
    loss: LossAlone,
    pairs: Pairs,
    step: LastStep,
    numbers: Mapping[int, int],
    was: Mapping[int, float],
    first: tuple[Mapping[int, float], Mapping[int, float]],
    clock: Clock,
) -> Iterator[Influence]:
    same = [
        target for target, value in first[0].items() if loss.draws.are_made or _is_same(value, was.get(target, np.nan))
    ]
    if not same:
        is_finite = any(map(np.isfinite, first[0].values()))
        raise NotRepeatable("its loss would be another one" if is_finite else "its loss is not finite")
    for variable, targets in pairs.items():
        value = step.values.get(numbers.get(variable, -1))
        known = [target for target in targets if target in same and np.isfinite(first[0][target])]
        if known and value is not None and value.dtype.is_floating and 0 < int(tf.size(value)) <= _MOST_ELEMENTS:
            moves = Moves(value, _asking(loss, variable, numbers[variable], first, clock), clock)
            # Other random numbers than in the step, or a part that is held, may hide what the loss depends on.
            is_sure = not loss.draws.are_made and not loss.is_held
            yield from (each for each in moves.until_reaction(known) if each.reacts or is_sure)
        if clock.is_over:
            return


def _is_same(again: float, was: float) -> bool:
    return abs(again - was) <= _TOLERANCE * abs(was) + 1e-7


def _asking(
    loss: LossAlone,
    variable: int,
    number: int,
    first: tuple[Mapping[int, float], Mapping[int, float]],
    clock: Clock,
) -> Ask[Influence]:
    """Moves a variable, which is the argument `number`; `first` are the losses before, twice."""

    def ask(moved: Any, size: float, amount: float) -> Mapping[int, Influence]:
        return {
            target: Influence(target, variable, size, amount, first[0][target], first[1][target], after, 0.0)
            for target, after in loss(clock.left, {number: moved}).items()
            if np.isfinite(after)
        }

    return ask
