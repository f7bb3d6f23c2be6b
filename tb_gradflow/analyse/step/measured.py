"""The gradients of one step, by variable and by op."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from math import inf, isfinite
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.analyse.over_time.run_context import ALONE, RunContext, by_names
from tb_gradflow.analyse.over_time.spikes import SpikeSeen
from tb_gradflow.analyse.over_time.unmoved import Piece
from tb_gradflow.analyse.over_time.updates import ClipSeen, LongStep, Moves, clips_of, moves_of
from tb_gradflow.analyse.over_time.value_courses import ValueCourses
from tb_gradflow.analyse.step.magnitude_path import Courses, courses_to
from tb_gradflow.record.report import GradientReport
from tb_gradflow.record.schema import (
    GRADIENT_STATISTICS,
    OUTPUT_LIMITS,
    RANGE_STATISTICS,
    VARIABLE_STATISTICS,
    StepValues,
    ValueRange,
    VariableGradient,
)

NORM, MAX_ABS, MEAN_ABS, ZERO_FRACTION, NAN_COUNT, INF_COUNT = range(len(GRADIENT_STATISTICS))
SMALLEST, LARGEST = (RANGE_STATISTICS.index(name) for name in ("smallest", "largest"))
WEIGHT_NORM, UPDATE_NORM, NONFINITE_BEFORE, NONFINITE_AFTER = range(len(VARIABLE_STATISTICS))

# A squared error of this size has gradients of about its root.
_LEARNED = 1e-10

# A cross-entropy that limits its logarithm by 1e-7, as that of Keras does, never gets below; by itself so small a loss
# could also be one that is multiplied by next to nothing, so it must have been larger by as much as `_BY_FACTOR`.
_LEARNED_IN_TRAINING, _BY_FACTOR = 1e-6, 1e3

# A cross-entropy of this size gives the right class a probability of 0.999.
_SMALL_LOSS = 1e-3

# Sigmoid and tanh are flat in float32 from about 17 and 9 on, and weights are of about one.
LARGE_INPUT = 50.0

# A gradient is vanishing if its largest element is below.
VANISHING_BELOW = 1e-7

# The root of the largest float32.
SQUARE_OVERFLOWS = 1.8e19

_LARGEST = float(np.finfo(np.float32).max)


Answer = TypeVar("Answer")


class Measured:
    """The measurements of one step on a trace.

    Attributes:
        topology: The trace it was measured on.
        gradients: float32 `[rows, 6]`; None if no step was completed.
        variables: float32 `[variables, 4]`; None likewise.
        losses: The value of each target; empty if no step was completed.
        values: What the forward pass computed; None if that was not measured.
        step: The optimizer's number of the step, that is, the number of steps before it; -1 if it is not known.
        alone: Whether it is a single step on a chosen batch, not a step of a training.
        influences: What was found when variables were moved, by the names of target and variable.
        not_moved: Why they could not be moved; empty if they could.
        reactions: What was found when the inputs of ops were moved, by the numbers of the ops.
        interventions: What changed gradients that are not finite, or too small.
        slopes: How the loss reacted to small moves.
        line_search: How the loss depends on the length of a step, and which step that is: this one, or the last of the
            run where that was looked at; `None` if it never was.
        too_long: The same of the first step that was too long, and which step that is; `None` if there is none.
        kept_numbers: Python numbers from when the step was compiled.
        onset: See `RunContext`, also for standstill, rest, turns, silences, unchanged, clips, skipped and began.
    """

    def __init__(
        self,
        topology: Topology,
        gradients: npt.NDArray[np.float32] | None,
        variables: npt.NDArray[np.float32] | None,
        losses: tuple[float, ...],
        context: RunContext = ALONE,
        values: StepValues | None = None,
    ) -> None:
        self.topology = topology
        self.gradients = gradients
        self.variables = variables
        self.losses = losses
        # A step may have been experimented with, and its forward pass not measured.
        self.values = values if values is not None and values.values else None
        own = () if values is None else by_names(topology.trace, values.influences)
        self.influences = {**context.influences, **dict(own)}
        reactions = () if values is None else values.reactions
        named = {op.name: number for number, op in enumerate(topology.trace.ops)} if context.reactions else {}
        self.reactions = {
            **{named[name]: each for name, each in context.reactions.items() if name in named},
            **{each.op: each for each in reactions},
        }
        self.interventions = context.interventions if values is None else values.interventions or context.interventions
        self.slopes = context.slopes if values is None else values.slopes or context.slopes
        searches = () if values is None else values.line_searches
        self.line_search = (values.step, searches[0]) if values is not None and searches else context.line_search
        self.too_long = context.too_long
        self._long_step = context.long_step
        self.not_moved = context.not_moved or ("" if values is None else values.not_moved)
        self.spikes = context.spikes
        if values is not None and values.spike is not None and all(each.step != values.step for each in self.spikes):
            self.spikes += (SpikeSeen(values.step, topology.trace, values.spike),)
        self.kept_numbers = context.kept_numbers if values is None else values.kept_numbers or context.kept_numbers
        self.step = -1
        self.alone = context is ALONE
        self.onset, self.standstill, self.rest = context.onset, context.standstill, context.rest
        self.turns, self.silences, self.began = context.turns, context.silences, context.began
        self.unchanged = context.unchanged
        self._value_courses, self._first_gradients = context.value_courses, context.first_gradients
        self._gradients_before, self.usual_loss = context.gradients_before, context.usual_loss
        self.clips, self._moves, self.skipped = context.clips, context.moves, context.skipped
        self._courses: dict[int, Courses] = {}
        self._op_rows: dict[int, dict[int, list[int]]] = {}
        self._found: dict[Hashable, Any] = {}

    def once(self, question: Hashable, search: Callable[[], Answer]) -> Answer:
        """The result of `search`, cached: the same question about an op comes up for many variables."""
        if question not in self._found:
            self._found[question] = search()
        found: Answer = self._found[question]
        return found

    def loss_is_finite(self, target: int) -> bool:
        """False only if the target is known to be NaN or infinite."""
        return not self.knows_loss(target) or bool(np.isfinite(self.losses[target]))

    def knows_loss(self, target: int) -> bool:
        """Whether the value of the target was measured: that of a gradient inside a loss may not be."""
        return 0 <= target < len(self.losses) and self.topology.trace.targets[target].measured

    def loss_is_nan(self, target: int) -> bool:
        """Whether it is NaN rather than infinite, or finite."""
        return not self.loss_is_finite(target) and bool(np.isnan(self.losses[target]))

    @cached_property
    def nonfinite_before(self) -> frozenset[int]:
        """The trainable variables that contained NaN or infinity before the step. A constant mask may do so on
        purpose."""
        return self._nonfinite(NONFINITE_BEFORE)

    @cached_property
    def nonfinite_after(self) -> frozenset[int]:
        """Those that hold them after the step and did not before."""
        return self._nonfinite(NONFINITE_AFTER) - self.nonfinite_before

    def _nonfinite(self, column: int) -> frozenset[int]:
        if self.variables is None:
            return frozenset()
        trainable = [variable.trainable for variable in self.topology.trace.variables]
        found = (self.variables[:, column] > 0) & np.asarray(trainable, bool)
        return frozenset(np.flatnonzero(found).tolist())

    def moved(self, variable: int) -> bool:
        """Whether the step is known to have changed a variable."""
        return self.variables is not None and bool(self.variables[variable, UPDATE_NORM] > 0)

    def nonfinite_weights(self, target: int) -> tuple[int, ...]:
        """Of the variables that were not finite before the step, those on which the target depends."""
        return tuple(
            variable for variable in sorted(self.nonfinite_before) if self.topology.influences(variable, target)
        )

    @cached_property
    def input_reports(self) -> tuple[GradientReport, ...]:
        """The statistics of the values in each part of the batch."""
        reports = [self.of_row(each.row) for each in self.topology.trace.inputs]
        return tuple(report for report in reports if report is not None)

    @cached_property
    def nonfinite_inputs(self) -> tuple[tuple[str, GradientReport], ...]:
        """The parts of the batch that contain NaN or infinity, with the statistics of their values."""
        reports = [(each.name, self.of_row(each.row)) for each in self.topology.trace.inputs]
        return tuple(
            (name, report) for name, report in reports if report is not None and (report.nan_count or report.inf_count)
        )

    @cached_property
    def largest_input(self) -> float:
        """The largest number in the batch, as far as it is finite."""
        return max((report.max_abs for report in self.input_reports), default=0.0)

    @cached_property
    def largest(self) -> float:
        """The largest number of all gradients, as far as they are finite."""
        if self.gradients is None:
            return 0.0
        trace = self.topology.trace
        others = {each.row for each in trace.inputs} | {each.row for each in trace.movements}
        others |= {each.row for each in trace.terms} | {
            row for each in trace.ranges for row in (each.row, *each.beyond)
        }
        rows = [row for row in range(len(self.gradients)) if row not in others]
        return float(np.nan_to_num(self.gradients[rows, MAX_ABS]).max(initial=0.0))

    def range_of(self, op: int, place: int) -> tuple[float, float] | None:
        """The smallest and the largest finite input of an op; for a divisor, of its magnitudes. None if they were not
        measured."""
        ranges = self.once("ranges", lambda: {(each.op, each.input): each.row for each in self.topology.trace.ranges})
        if self.gradients is None or (op, place) not in ranges:
            return None
        smallest, largest = (float(self.gradients[ranges[op, place], column]) for column in (SMALLEST, LARGEST))
        return None if np.isnan(smallest) else (smallest, largest)

    def beyond(self, labels: ValueRange, limits: tuple[float, float]) -> float | None:
        """What a squared error of labels is at least where predictions stay between two limits, as a part of their
        variance; `None` if that was not measured."""
        if self.gradients is None or not labels.beyond:
            return None
        both = zip(labels.beyond, OUTPUT_LIMITS, strict=True)
        parts = {
            (side, ends[side]): float(self.gradients[row, SMALLEST + side]) for row, ends in both for side in (0, 1)
        }
        wanted = [(side, end) for side, end in enumerate(limits) if abs(end) < inf]
        return sum(parts[each] for each in wanted) if parts.keys() >= {*wanted} else None

    @cached_property
    def value_courses(self) -> ValueCourses:
        """See `RunContext`."""
        return self._value_courses()

    @cached_property
    def long_step(self) -> LongStep | None:
        """See `RunContext`."""
        return self._long_step()

    def is_beyond(self, op: int, place: int) -> bool:
        """Whether an input of an op was measured, and none of its elements is finite."""
        rows = [each.row for each in self.topology.trace.ranges if (each.op, each.input) == (op, place)]
        return self.gradients is not None and any(bool(np.isnan(self.gradients[row, SMALLEST])) for row in rows)

    def is_learned(self, target: int) -> bool:
        """Whether the target is so close to zero that small gradients are expected."""
        known = 0 <= target < len(self.losses)
        return known and (abs(self.losses[target]) < _LEARNED or self.has_come_down(target))

    def has_come_down(self, target: int) -> bool:
        """Whether the training has brought the target close to zero."""
        known = 0 <= target < len(self.losses)
        return known and abs(self.losses[target]) < _LEARNED_IN_TRAINING and self.shrunk_by(target) >= _BY_FACTOR

    def is_small(self, target: int) -> bool:
        """Whether the target is known, and as close to zero as a loss of predictions that match."""
        return 0 <= target < len(self.losses) and abs(self.losses[target]) < _SMALL_LOSS

    def shrunk_by(self, target: int) -> float:
        """How many times larger the target was in the first recorded step; 1 for a single step, or if it is not
        known."""
        began, now = self.began.get(self.topology.trace.targets[target].name), abs(self.losses[target])
        if began is None or not isfinite(began) or not isfinite(now):
            return 1.0
        return abs(began) / max(now, _LEARNED)

    def first_gradient(self, variable: int) -> float:
        """The largest element of a variable's gradient in the first recorded step; 0 for a single step, or if it is not
        known."""
        first = self.once("first gradients", lambda: dict(self._first_gradients()))
        return first.get(self.topology.trace.variables[variable].name, 0.0)

    def largest_before(self, variable: int) -> tuple[float, int]:
        """The largest element of the gradients that the recorded steps before this one gave a variable, and in which
        step; 0 and -1 for a single step, or if it is not known."""
        before = self.once("gradients before", lambda: dict(self._gradients_before()))
        return before.get(self.topology.trace.variables[variable].name, (0.0, -1))

    @cached_property
    def moves(self) -> Moves:
        """How far the last recorded steps have moved each variable; of a single step, how far that has."""
        if self.alone and self.variables is not None:
            return moves_of([self._piece()])
        return self._moves()

    @cached_property
    def clips_seen(self) -> tuple[ClipSeen, ...]:
        """What clips have cut in the last recorded steps; of a single step, what they have cut in that."""
        return clips_of([self._piece()]) if self.alone and self.gradients is not None else self.clips

    def _piece(self) -> Piece:
        assert self.variables is not None and self.gradients is not None
        gradients = self.gradients[np.newaxis]
        return Piece(self.topology.trace, self.variables[np.newaxis], lambda: gradients, (self.step,))

    def has_learned_before(self) -> bool:
        """Whether a recorded step before this one gave any variable a gradient other than zero."""
        return any(self.largest_before(variable)[0] > 0 for variable in range(len(self.topology.trace.variables)))

    def of_row(self, row: int | None) -> GradientReport | None:
        """The statistics in a row; None if this step did not measure it."""
        if self.gradients is None or row is None or np.isnan(self.gradients[row, NORM]):
            return None
        norm, max_abs, mean_abs, zeros, nans, infs = (float(value) for value in self.gradients[row])
        norm, max_abs, mean_abs = (min(value, _LARGEST) for value in (norm, max_abs, mean_abs))
        return GradientReport(norm, max_abs, mean_abs, zeros, int(nans), int(infs))

    def of_variable(self, entry: VariableGradient) -> GradientReport | None:
        """The statistics of a variable's gradient; None if there is none."""
        return self.of_row(entry.row if entry.outcome == "value" else None)

    def learns(self, variable: int) -> bool:
        """Whether a gradient other than zero arrives at a variable."""
        gradients = [self.of_variable(entry) for entry in self.topology.entries_of(variable)]
        return any(gradient is not None and gradient.max_abs > 0 for gradient in gradients)

    def of_op(self, target: int, op: int) -> GradientReport | None:
        """The statistics of the largest gradient among an op's outputs; None if none was measured."""
        return self.once(("op", target, op), lambda: self._of_op(target, op))

    def _of_op(self, target: int, op: int) -> GradientReport | None:
        if target not in self._op_rows:
            rows: dict[int, list[int]] = {}
            for each, row in zip(*self.topology.tensor_rows.get(target, ([], [])), strict=True):
                rows.setdefault(each, []).append(row)
            self._op_rows[target] = rows
        reports = [self.of_row(row) for row in self._op_rows[target].get(op, ())]
        return max((report for report in reports if report is not None), key=_size, default=None)

    def courses(self, target: int) -> Courses:
        """How the gradient's size changes on its way from the target to every op."""
        if target not in self._courses:
            types = [op.type for op in self.topology.trace.ops]
            self._courses[target] = courses_to(
                self.topology.gradient(target), self.topology.onward, self._levels(target), types
            )
        return self._courses[target]

    def _levels(self, target: int) -> list[float]:
        """For each op, the largest element of its gradient; 0 where that is zero, not finite or not known."""
        found = [0.0] * len(self.topology.trace.ops)
        if self.gradients is None:
            return found
        sizes = np.where(self._nonfinite_rows, 0, np.nan_to_num(self.gradients[:, MAX_ABS])).tolist()
        for op, row in zip(*self.topology.tensor_rows.get(target, ([], [])), strict=True):
            found[op] = max(found[op], sizes[row])
        return found

    @cached_property
    def _zero_rows(self) -> npt.NDArray[np.bool_]:
        assert self.gradients is not None
        flat: npt.NDArray[np.bool_] = (self.gradients[:, MAX_ABS] == 0) & (self.gradients[:, ZERO_FRACTION] > 0)
        return flat & ~self._nonfinite_rows

    @cached_property
    def _nonfinite_rows(self) -> npt.NDArray[np.bool_]:
        assert self.gradients is not None
        bad: npt.NDArray[np.bool_] = (self.gradients[:, NAN_COUNT] > 0) | (self.gradients[:, INF_COUNT] > 0)
        return bad

    def zero_ops(self, target: int) -> tuple[list[bool], list[bool]]:
        """For each op, whether its gradient is known, and whether it is then zero in every output."""
        rows = self._zero_rows if self.gradients is not None else None
        return self.once(("zero ops", target), lambda: self._ops(target, rows, every=True))

    def nonfinite_ops(self, target: int) -> tuple[list[bool], list[bool]]:
        """For each op, whether its gradient is known, and whether some output's then holds NaN or infinities."""
        rows = self._nonfinite_rows if self.gradients is not None else None
        return self.once(("nonfinite ops", target), lambda: self._ops(target, rows, every=False))

    def _ops(self, target: int, rows: npt.NDArray[np.bool_] | None, *, every: bool) -> tuple[list[bool], list[bool]]:
        count = len(self.topology.trace.ops)
        known, held = np.zeros(count, bool), np.full(count, every)
        ops, places = self.topology.tensor_rows.get(target, ([], []))
        if self.gradients is None or rows is None or not ops:
            return known.tolist(), np.zeros(count, bool).tolist()
        where, row = np.asarray(ops), np.asarray(places)
        measured = ~np.isnan(self.gradients[row, NORM])
        where, row = where[measured], row[measured]
        known[where] = True
        combine = np.logical_and if every else np.logical_or
        combine.at(held, where, rows[row])
        return known.tolist(), (known & held).tolist()


def is_zero(report: GradientReport) -> bool:
    """Every element exactly zero. A tensor without elements is not."""
    return report.max_abs == 0 and report.zero_fraction > 0 and not report.nan_count and not report.inf_count


def is_empty(report: GradientReport) -> bool:
    """A tensor without elements."""
    return report.max_abs == 0 and not report.zero_fraction and not report.nan_count and not report.inf_count


def _size(report: GradientReport) -> tuple[int, float]:
    return report.nan_count + report.inf_count, report.max_abs
