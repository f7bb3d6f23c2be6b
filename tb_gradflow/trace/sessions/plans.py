"""What a recorded step of one training fetches in one kind of `run`, and the record of what it gets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import tensorflow as tf

from tb_gradflow.record.schema import GRADIENT_STATISTICS, Input, Trace
from tb_gradflow.trace.graph.build_trace import Looked, trace_of
from tb_gradflow.trace.graph.gradient_call import Answer, Call
from tb_gradflow.trace.graph_v1.gradients_v1 import statistics_of
from tb_gradflow.trace.graph_v1.updates_v1 import GIVEN, Ran, Update, movement_of, movements, updates_among
from tb_gradflow.trace.graph_v1.values_v1 import CannotMeasureError, value_of
from tb_gradflow.trace.numerics.statistics_table import Block, StatisticsTable
from tb_gradflow.trace.sessions.exact import Recipe, Values, recipe_for
from tb_gradflow.trace.sessions.executions import Execution, maker_of
from tb_gradflow.trace.sessions.numbers import UNKNOWN, change_statistics, sparse_statistics
from tb_gradflow.trace.sessions.replays import Replay, replay_of
from tb_gradflow.trace.sessions.requests import Request, parts_of
from tb_gradflow.trace.sessions.structure import Structure

_COUNTS = [GRADIENT_STATISTICS.index(name) for name in ("nan_count", "inf_count")]

Statistics = Callable[[Values], list[float]]
"""Computes a row of the table from the values of the tensors that were fetched."""


class Plan:
    """What to fetch for one training in one kind of run.

    Args:
        structure: The training.
        execution: The kind of run.
        updates: The ops in it that change variables.
        index: The number of the trace.
        with_tensors: Whether to fetch the gradients of tensors that are no variables too.
        keep_source: Whether to keep the user's files and lines.

    Attributes:
        trace: The record of the structure.
        needed: The tensors from whose values a step is recorded.
        fetches: Those of them to fetch in the program's own run.
        state: Tensors that hold the values of variables, by the names of the ops that create these: to be fetched
            before and after it.
        replay: The run of the recorder's own that computes what cannot be had from the program's run; `None` if there
            is nothing, or if it would change something.
    """

    def __init__(
        self,
        structure: Structure,
        execution: Execution,
        updates: Sequence[Any],
        index: int,
        *,
        with_tensors: bool,
        keep_source: bool,
    ) -> None:
        self._structure = structure
        self._execution = execution
        self._with_tensors = with_tensors
        self._rows: list[Statistics] = []
        self._needed: dict[str, Any] = {}
        self._read: dict[str, None] = {}
        self._losses: list[Callable[[Values], float]] = []
        self._recipes: dict[str, Recipe | None] = {}
        self.replay = self._replay()
        calls = [self._call(request) for request in structure.requests]
        table = StatisticsTable([call.rows for call in calls])
        inputs = self._inputs(table)
        sources = dict(structure.variables.sources())
        self._updates = [
            (update, recipes)
            for update in updates_among(updates, sources)
            if (recipes := self._recipes_of(update)) is not None
        ]
        self.state = self._state(bool(updates))
        moving = [update for update, _ in self._updates]
        looked = Looked(calls, structure.variables, table, by_tape=False)
        trace = trace_of(looked, index, keep_source=keep_source)
        self.trace: Trace = replace(
            trace,
            inputs=inputs,
            whole=structure.lists_all,
            optimizers=tuple(update.optimizer for update in moving),
            movements=movements(moving, table),
        )
        self.needed = tuple(self._needed.values())
        self.fetches = tuple(tensor for tensor in self.needed if tensor.name not in execution.fetched)

    def record(self, values: Values, before: Values, after: Values) -> dict[str, Any]:
        """The measurements of one run.

        Args:
            values: Of the tensors that the run has fetched, and of those that it was fed.
            before: Of the variables, before it.
            after: Of the variables, after it.
        """
        values = {**before, **values}
        rows = [row(values) for row in self._rows]
        rows += [
            movement_of(update, self._ran(update, recipes, values, before, after)) for update, recipes in self._updates
        ]
        norms = [
            change_statistics(before.get(tensor.op.name), after.get(tensor.op.name))
            for _, tensor in self._structure.variables.sources()
        ]
        return {
            "trace": self.trace.index,
            "gradients": np.array(rows, "<f4").reshape(-1, 6),
            "variables": np.array(norms, "<f4").reshape(-1, len(UNKNOWN)),
            "losses": np.array([loss(values) for loss in self._losses], "<f4"),
        }

    def is_finite(self, record: Mapping[str, Any]) -> bool:
        """Whether the gradients of a record have no element that is NaN or infinite."""
        return not np.any(record["gradients"][: len(self._rows), _COUNTS] > 0)

    def value_of(self, variable: str) -> Any:
        """A tensor that holds the value of the variable that an op of this name creates; `None` if there is none."""
        return value_tensor(self._structure.flattener.graph.get_operation_by_name(variable).outputs[0])

    def _call(self, request: Request) -> Call:
        structure = self._structure
        refs = [structure.flattener.ref(target) for target in request.targets]
        asked = [structure.index_of(source) for source in request.sources]
        loss = self._loss_of(request)
        self._losses.append(loss or _unknown)
        call = Call(
            structure.flattener,
            tuple(ref for ref in refs if ref is not None),
            None,
            request.frames,
            "zero" if request.zeros else "none",
            frozenset(index for index in asked if index is not None),
            measured=loss is not None,
            inner=request in structure.inner,
        )
        for index, source, gradient in zip(asked, request.sources, request.answers, strict=True):
            if index is not None:
                call.variables[index] = self._answer(call.rows, source, gradient)
        for ref, gradient in structure.gradients_on_the_way(request) if self._with_tensors else ():
            call.tensors[ref] = self._answer(call.rows, structure.flattener.ops[ref.op].tensors[ref.output], gradient)
        return call

    def _answer(self, rows: Block, source: Any, gradient: Any) -> Answer:
        if gradient is None:
            return Answer("none", None)
        if not self._execution.ops:
            return Answer("value", None)  # nothing is run
        if not any(part in self._execution or part.name in self._execution.fetched for part in parts_of(gradient)):
            return Answer("not_asked", None)  # the program computes it in another kind of run
        statistics = self._statistics_of(source, gradient)
        if statistics is None:
            return Answer("value", None)
        self._rows.append(statistics)
        return Answer("value", rows.add())

    def _statistics_of(self, source: Any, gradient: Any) -> Statistics | None:
        if not isinstance(gradient, tf.IndexedSlices):
            recipe = self._recipe_for(gradient)
            return None if recipe is None else lambda values: statistics_of(recipe.compute(values))
        given, places = self._recipe_for(gradient.values), self._recipe_for(gradient.indices)
        if given is None or places is None:
            return None
        size = _size_of(source)
        return lambda values: sparse_statistics(given.compute(values), places.compute(values), size)

    def _recipe_for(self, tensor: Any) -> Recipe | None:
        if tensor.name not in self._recipes:
            recipe = recipe_for(tensor, self._execution, self._structure.flattener.is_gradient)
            read = {} if recipe is None else dict.fromkeys(recipe.variables)
            if recipe is None or any(self.value_of(name) is None for name in read):
                recipe, read = None, {}
            else:
                self._needed.update((each.name, each) for each in recipe.fetches)
            self._read.update(read)
            self._recipes[tensor.name] = recipe
        return self._recipes[tensor.name]

    def _replay(self) -> Replay | None:
        """Of the losses and gradients that cannot be had from the program's run."""
        losses = [each for request in self._structure.requests if _is_loss(request) for each in request.targets]
        missing_losses = [each for each in losses if self._recipe_for(each) is None]
        missing = [each for each in self._gradients() if self._recipe_for(each) is None]
        for tensors in ([*missing_losses, *missing], missing_losses, missing):
            replay = replay_of(tensors, self._execution) if tensors else None
            if replay is not None and all(self.value_of(variable) is not None for _, variable in replay.reads):
                break
        else:
            return None
        self._needed.update((each.name, each) for each in replay.fetches)
        self._read.update(dict.fromkeys(variable for _, variable in replay.reads))
        self._recipes.update((each.name, _replayed(each.name)) for each in replay.tensors)
        return replay

    def _gradients(self) -> Iterator[Any]:
        """The tensors that the gradients in this kind of run consist of."""
        structure = self._structure
        for request in structure.requests:
            listed = [
                gradient
                for source, gradient in zip(request.sources, request.answers, strict=True)
                if gradient is not None and structure.index_of(source) is not None
            ]
            listed += [gradient for _, gradient in structure.gradients_on_the_way(request) if self._with_tensors]
            for gradient in listed:
                yield from (part for part in parts_of(gradient) if self._execution.may_fetch(part))

    def _loss_of(self, request: Request) -> Callable[[Values], float] | None:
        if not _is_loss(request):
            return None
        recipes = [self._recipe_for(target) for target in request.targets]
        found = [recipe for recipe in recipes if recipe is not None]
        if len(found) < len(recipes):
            return None
        return lambda values: float(sum(np.sum(recipe.compute(values), dtype=np.float64) for recipe in found))

    def _inputs(self, table: StatisticsTable) -> tuple[Input, ...]:
        block = Block()
        table.append(block)
        fed = [self._structure.flattener.graph.get_tensor_by_name(name) for name in sorted(self._execution.fed)]
        listed = [(each, block.add()) for each in fed if each.dtype.is_floating and each.shape.rank != 0]
        self._rows += [_statistics_of_fed(tensor.name) for tensor, _ in listed]
        number_of = table.numbers()
        return tuple(Input(tensor.op.name, number_of(row)) for tensor, row in listed)

    def _recipes_of(self, update: Update) -> Mapping[str, Recipe] | None:
        """How to get what an update is given; `None` if that is not possible."""
        found = {name: self._recipe_for(tensor) for name, tensor in update.given.items() if name in GIVEN}
        if found.get("grad") is None or value_tensor(update.op.inputs[0]) is None:
            return None
        if any(value_tensor(memory) is None for memory in update.memories):
            return None
        return {name: recipe for name, recipe in found.items() if recipe is not None}

    def _ran(self, update: Update, recipes: Mapping[str, Recipe], values: Values, before: Values, after: Values) -> Ran:
        name = update.op.inputs[0].op.name
        rate = recipes.get("lr")
        return Ran(
            gradient=recipes["grad"].compute(values),
            before=before[name],
            after=after[name],
            memories=[before[memory.op.name] for memory in update.memories],
            rate=float("nan") if rate is None else float(rate.compute(values)),
        )

    def _state(self, is_updated: bool) -> dict[str, Any]:
        found = {name: self.value_of(name) for name in self._read}
        if not is_updated:
            return found
        sources = [tensor for _, tensor in self._structure.variables.sources()]
        memories = [memory for update, _ in self._updates for memory in update.memories]
        found.update((each.op.name, value_tensor(each)) for each in (*sources, *memories))
        return {name: tensor for name, tensor in found.items() if tensor is not None}


def value_tensor(variable: Any) -> Any:
    """A tensor of the graph that holds the value of a variable, given its handle or reference; `None` if there is none,
    or if it is not a variable.
    """
    if maker_of(variable) is None or variable.op.name != maker_of(variable):
        return None
    try:
        return value_of(variable.op)
    except CannotMeasureError:
        return None


def _statistics_of_fed(name: str) -> Statistics:
    return lambda values: statistics_of(values[name])


def _size_of(source: Any) -> int | None:
    """The number of elements of what a gradient is requested for, if it is known."""
    value = value_tensor(source)
    shape = (source if value is None else value).shape
    size = shape.num_elements()
    return None if size is None else int(size)


def _is_loss(request: Request) -> bool:
    """Whether the sum of what is differentiated is what the program minimises."""
    return all(weight is None for weight in request.weights)


def _replayed(name: str) -> Recipe:
    return Recipe((), lambda values: np.asarray(values.get(name, np.nan)))


def _unknown(_: Values) -> float:
    return float("nan")
