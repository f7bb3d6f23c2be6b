"""What the other recorded steps of a run show about one of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tb_gradflow.analyse.over_time.alternating import Turns
from tb_gradflow.analyse.over_time.onset import Measured as BrokeBefore
from tb_gradflow.analyse.over_time.onset import Onset
from tb_gradflow.analyse.over_time.plateau import Rest
from tb_gradflow.analyse.over_time.silent_units import Silence
from tb_gradflow.analyse.over_time.spikes import SpikeSeen
from tb_gradflow.analyse.over_time.unchanged import Unchanged
from tb_gradflow.analyse.over_time.unmoved import Standstill
from tb_gradflow.analyse.over_time.updates import ClipSeen, LongStep, Moves, Skipped
from tb_gradflow.analyse.over_time.value_courses import ValueCourses
from tb_gradflow.record.schema import Influence, Intervention, KeptNumber, LineSearch, Reaction, Slope, Trace

Influences = Mapping[tuple[str, str], Influence]


Searched = tuple[int, LineSearch]


@dataclass(frozen=True, slots=True)
class RunContext:
    """All of it is empty for a single step.

    Attributes:
        onset: Since when weights are not finite, where that began before this step; `None` if they are.
        standstill: Variables that get a gradient and never change.
        rest: Since when no variable changes at all; `None` if one does.
        turns: Variables without a gradient that get one in other steps.
        silences: Vectors of which most elements get no gradient.
        unchanged: Variables that have had the same value all the time.
        value_courses: The input ranges of functions that are not finite everywhere, and of targets; read when called.
        began: By the name of its target, the loss of the first recorded step.
        usual_loss: The median of the losses around a step, by the name of the target and the step; read when called.
        first_gradients: By the name of a variable, the largest element of its gradient in that step; read when called.
        gradients_before: The same for all recorded steps before this one, and in which; read when called.
        influences: What was found when variables were moved, in any step, by the names of target and variable.
        not_moved: Why they could not be moved; empty if they could.
        reactions: What was found when the inputs of ops were moved, in any step, by the names of the ops.
        interventions: What changed gradients that are too small, in the last step of this trace where that was looked
            at.
        slopes: How the loss reacted to small moves, likewise.
        kept_numbers: The Python numbers that steps of this trace have kept, likewise.
        line_search: The last one of the run, and its step; `None` if there was none.
        too_long: The first one of a step that was too long, likewise.
        long_step: An earlier step that was larger than the weights, after which the loss rose; read when called.
        spikes: Steps until this one that were not usual.
        clips: What clips have cut in the last recorded steps.
        moves: How far these have moved each variable; read when called.
        skipped: The steps that a loss scale has skipped, up to this one; `None` if it has not.
        broke_before: An earlier step that was not finite, and was measured, if this one is neither; `None` if there is
            none.
        raised: The trace of a step after the last recorded one, which this one is, that has raised; `None` if none has.
    """

    onset: Onset | None = None
    standstill: Standstill = field(default_factory=dict)
    rest: Rest | None = None
    turns: Turns = field(default_factory=dict)
    silences: Mapping[int, Silence] = field(default_factory=dict)
    unchanged: Unchanged = field(default_factory=dict)
    value_courses: Callable[[], ValueCourses] = dict
    began: Mapping[str, float] = field(default_factory=dict)
    usual_loss: Callable[[str, int], float] = lambda target, step: math.nan
    first_gradients: Callable[[], Mapping[str, float]] = dict
    gradients_before: Callable[[], Mapping[str, tuple[float, int]]] = dict
    influences: Influences = field(default_factory=dict)
    not_moved: str = ""
    reactions: Mapping[str, Reaction] = field(default_factory=dict)
    interventions: tuple[Intervention, ...] = ()
    slopes: tuple[Slope, ...] = ()
    kept_numbers: tuple[KeptNumber, ...] = ()
    line_search: Searched | None = None
    too_long: Searched | None = None
    long_step: Callable[[], LongStep | None] = lambda: None
    spikes: tuple[SpikeSeen, ...] = ()
    clips: tuple[ClipSeen, ...] = ()
    moves: Callable[[], Moves] = dict
    skipped: Skipped | None = None
    broke_before: BrokeBefore | None = None
    raised: Trace | None = None


ALONE = RunContext()
"""For a single step."""


def by_names(trace: Trace, influences: Iterable[Influence]) -> Iterator[tuple[tuple[str, str], Influence]]:
    """Those of a step of this trace, by the names of target and variable: other steps may have other traces."""
    for each in influences:
        yield (trace.targets[each.target].name, trace.variables[each.variable].name), each
