"""The step that became NaN, run again by the recorder: what is kept for that while steps are not recorded.

The weights are already NaN when the program sees it. So the gradient is computed again from the batch of that step and
from weights that were read shortly before, and recorded as that step if it is not finite. Random numbers are drawn
anew, by NumPy: the program's own generators are not used. If the step would change anything else, it is not run again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tb_gradflow.trace.graph_v1.variables_v1 import MAKERS
from tb_gradflow.trace.sessions.exact import Array, Values
from tb_gradflow.trace.sessions.executions import Execution
from tb_gradflow.trace.sessions.plans import Plan
from tb_gradflow.trace.sessions.replays import Replay, replay_of

SHARE = 0.01
"""The part of the training's time in which the weights are read."""

AT_FIRST = 0.2
"""Seconds in which they are read before each step, since they change most in the beginning."""

DRAWS = 8
"""Whether a gradient becomes NaN may depend on what a dropout leaves."""

MOST_BYTES = 256 * 1024**2

_DRAWS: Mapping[str, Callable[[np.random.Generator, Array], Array]] = {
    "RandomUniform": lambda random, shape: random.random(shape),
    "RandomStandardNormal": lambda random, shape: random.standard_normal(shape),
    "TruncatedNormal": lambda random, shape: np.clip(random.standard_normal(shape), -2.0, 2.0),
}

Run = Callable[[Sequence[Any], Mapping[Any, Any]], Sequence[Array]]
"""Runs tensors with what it is fed, for the recorder."""


class Again:
    """What is kept of one training in one kind of run.

    Args:
        plan: What a recorded step fetches.
        execution: The kind of run.

    Attributes:
        plan: The same.
        step: The number of the step that is kept.
    """

    def __init__(self, plan: Plan, execution: Execution) -> None:
        self.plan = plan
        self.step = -1
        known = plan.replay.tensors if plan.replay is not None else ()
        self._graph = execution.graph
        self._replay = replay_of([*plan.needed, *known], execution, is_later=True)
        names = [variable for _, variable in self._replay.reads] if self._replay is not None else []
        self._variables = {name: plan.value_of(name) for name in names}
        self._is_possible = (
            self._replay is not None
            and all(tensor is not None for tensor in self._variables.values())
            and _needs_nothing_else(self._replay, execution)
        )
        self._state: Mapping[str, Array] = {}
        self._began = time.perf_counter()
        self._spent = 0.0
        self._fed: Mapping[str, Any] = {}

    def keep(self, step: int, read: Run, fed: Mapping[str, Any], *, is_urgent: bool) -> None:
        """Called before a step that is not recorded. If it is urgent, the weights are read at any price."""
        if self._replay is None or not self._is_possible:
            return
        self.step, self._fed = step, fed
        began = time.perf_counter()
        if self._spent > AT_FIRST + SHARE * (began - self._began) and not is_urgent:
            return
        try:
            # The value of a reference shares its memory with the variable, which the step changes.
            values = [np.array(each) for each in read(list(self._variables.values()), {})]
        except tf.errors.OpError:  # a variable is not initialized, for example: the program's run raises that too
            return
        self._spent += time.perf_counter() - began
        self._is_possible = sum(value.nbytes for value in values) <= MOST_BYTES
        if self._is_possible and all(np.all(np.isfinite(each)) for each in values):
            self._state = dict(zip(self._variables, values, strict=True))

    def measured(self, run: Run, after: Mapping[str, Array]) -> dict[str, Any] | None:
        """The measurements of the step that ran last; `None` if its gradient is finite, or cannot be computed."""
        if self._replay is None or not self._is_possible or not self._state:
            return None
        for seed in range(DRAWS if self._replay.fetches else 1):
            try:
                values = {**self._fed, **self._computed(self._replay, run, np.random.default_rng(seed))}
            except tf.errors.OpError:  # an assertion, for example: it is the program's own
                return None
            found = self.plan.record(values, {**after, **self._state}, after)
            if not self.plan.is_finite(found):
                return found
        return None

    def _computed(self, replay: Replay, run: Run, random: np.random.Generator) -> Values:
        feeds: dict[Any, Any] = {self._graph.get_tensor_by_name(name): self._fed[name] for name in replay.fed}
        feeds.update((tensor, self._state[variable]) for tensor, variable in replay.reads)
        for tensor in replay.fetches:
            [shape] = run([tensor.op.inputs[0]], feeds)
            feeds[tensor] = _DRAWS[tensor.op.type](random, shape).astype(tensor.dtype.as_numpy_dtype)
        known = {tensor.name: value for tensor, value in feeds.items()}
        computed = [tensor for tensor in replay.tensors if tensor.name not in known]
        found = run(computed, feeds)
        return {**known, **{tensor.name: value for tensor, value in zip(computed, found, strict=True)}}


def _needs_nothing_else(replay: Replay, execution: Execution) -> bool:
    """Whether a run depends on nothing but what it is fed: no variable has its value of then any more."""
    given = [*replay.fetches, *(tensor for tensor, _ in replay.reads)]
    fed = {*replay.fed, *(tensor.name for tensor in given)}
    needed = Execution(execution.graph, replay.tensors, fed=fed).ops.values()
    return all(tensor.op.type in _DRAWS for tensor in replay.fetches) and not any(op.type in MAKERS for op in needed)
