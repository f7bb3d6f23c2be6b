"""A function that does what a traced step does, and also leaves the statistics of its gradients."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from tb_gradflow.record.schema import GRADIENT_STATISTICS, VARIABLE_STATISTICS, Input, Movement, Trace, ValueRange
from tb_gradflow.trace.capture.optimizer_updates import Given
from tb_gradflow.trace.engine.additions import Additions
from tb_gradflow.trace.engine.cells import Bundle, Cell
from tb_gradflow.trace.engine.definitions import Definition
from tb_gradflow.trace.engine.siblings import Sibling, graphs_called, graphs_in_xla
from tb_gradflow.trace.engine.switches import switch_of
from tb_gradflow.trace.graph.build_trace import numbered_trace_of
from tb_gradflow.trace.graph.flat_ops import Ref
from tb_gradflow.trace.graph.gradient_call import Call
from tb_gradflow.trace.graph.variables import has_one_shape, is_floating
from tb_gradflow.trace.numerics.later import Later, gradient_columns, measured_later, sums, table
from tb_gradflow.trace.numerics.loss_scale import SCALED
from tb_gradflow.trace.numerics.statistics import gradient_statistics
from tb_gradflow.trace.numerics.statistics_table import Block, LaterBlock, Row
from tb_gradflow.trace.protection.substitutes import Run
from tb_gradflow.trace.step.named_inputs import NameInputs, arguments_of_graph
from tb_gradflow.trace.step.observation import Observation, seen_in
from tb_gradflow.trace.step.settings import Settings
from tb_gradflow.trace.step.state import Moved, State
from tb_gradflow.trace.step.value_ranges import Ranged, value_ranges

Array = npt.NDArray[np.float32]

Measured = dict[str, Any]
"""The numbers of a step, by the names that the recorder knows them by."""


class RecordedFunction:
    """The recorded form of one trace.

    Args:
        observation: What was observed.
        function: The `ConcreteFunction` that the program calls.
        settings: What to record.
        inputs: Names the arguments of the step.
        index: The number of the trace.

    Attributes:
        trace: Its structure.
        has_run: Whether TensorFlow has compiled it.
    """

    def __init__(
        self, observation: Observation, function: Any, settings: Settings, inputs: NameInputs, index: int
    ) -> None:
        [collector] = observation.collectors
        observation.finish()
        graphs, self._in_xla = graphs_called(function), graphs_in_xla(function)
        self._collector = collector
        self._seen = seen_in(collector, graphs)
        self.has_run = False
        self._updates = [
            _Update(variable, number, given) for variable, number, given in collector.moving(len(collector.variables))
        ]
        self._moved = Block()
        more = self._more_rows(settings, inputs)
        self.trace = self._trace_with(more, settings, index)
        self._left: list[_Left] = []
        additions = [each for each in collector.symbols.additions if any(each.of is graph for graph in graphs)]
        own = [each for each in additions if self._leaves(each)]
        switch = switch_of(function)
        self._sibling = Sibling(function, own, Definition.keep_in_order, switch.draws)
        if switch.unshared:
            switch.stay_with(self._sibling)
            self.trace = dataclasses.replace(self.trace, notes=(*self.trace.notes, _own_draws(switch.unshared)))
        self._state = self._state_measured()

    def __call__(self, run: Run, args: Sequence[Any]) -> None:
        """Does what the user's function does."""
        self._state.begin()
        run.of(self._sibling, args)
        self.has_run = True

    def is_own(self, error: BaseException) -> bool:
        """Whether something that it does in addition has raised an error."""
        return self._sibling.is_own(error)

    def take(self) -> Measured:
        """After that: what was measured."""
        tables: dict[int, Array] = {}
        losses: dict[int, float] = {}
        updates: dict[int, Any] = {}
        rates: dict[int, Any] = {}
        for each in self._left:
            each.take(tables, losses, updates, rates)
        numbers = range(len(self._updates))
        norms, moved = self._state.end(
            [updates.get(number) for number in numbers], [rates.get(number) for number in numbers]
        )
        tables[id(self._moved)] = moved
        variables = np.full((len(self.trace.variables), len(VARIABLE_STATISTICS)), np.nan, np.float32)
        variables[self._with_norms] = norms
        blocks = [tables[id(block)] if id(block) in tables else _unknown(block) for block in self._seen.rows]
        return {
            "trace": np.int32(self.trace.index),
            "losses": np.array([losses[id(call)] for call in self._measured_calls()], np.float32),
            "gradients": np.concatenate([np.zeros((0, len(GRADIENT_STATISTICS)), np.float32), *blocks]),
            "variables": variables,
        }

    def _more_rows(self, settings: Settings, inputs: NameInputs) -> _MoreRows:
        """The rows of the step that are not gradients."""
        collector, root = self._collector, self._collector.root
        block = LaterBlock(collector.symbols.of_graph(root).graph)
        with collector.symbols.of_graph(root).opened(), measured_later():
            named = inputs(*arguments_of_graph(root))
            rows = [(name, block.add(gradient_statistics(tensor))) for name, tensor in named]
            ranges = value_ranges(collector, block, exact=settings.exact) if settings.tensors == "all" else []
            block.stack()
        self._seen.rows.append(block)
        self._seen.rows.append(self._moved)
        return _MoreRows(rows, [self._moved.add() for _ in self._updates], ranges)

    def _trace_with(self, more: _MoreRows, settings: Settings, index: int) -> Trace:
        collector = self._collector
        trace, number_of_op = numbered_trace_of(self._seen, index, keep_source=settings.source)
        number_of = self._seen.rows.numbers()
        return dataclasses.replace(
            trace,
            inputs=tuple(Input(name, number_of(row)) for name, row in more.inputs),
            optimizers=tuple(each.in_log(keep_source=settings.source) for each in collector.applied),
            movements=tuple(
                Movement(each.variable, each.applied, number_of(row), each.given.decay, each.given.constraint)
                for each, row in zip(self._updates, more.movements, strict=True)
            ),
            ranges=tuple(
                ValueRange(op, each.input, number_of(each.row))
                for each in more.ranges
                if (op := number_of_op(each.flattener, Ref(each.op, 0))) >= 0
            ),
        )

    def _leaves(self, additions: Additions) -> bool:
        """Lets one of the step's graphs leave what is measured in it, if anything is."""
        collector, graph = self._collector, additions.graph
        blocks = [block for block in self._seen.rows if isinstance(block, LaterBlock) and block.graph is graph]
        calls = [call for call in self._measured_calls() if call.loss.graph is graph]
        updates, rates = [], []
        for number, each in enumerate(self._updates):
            gradient, rate = each.given.gradient, collector.applied[each.applied].rate
            if _graph_of(gradient) in (graph, additions.of):
                updates.append((number, gradient))
            if tf.is_tensor(rate) and _graph_of(rate) is additions.of:
                rates.append((number, rate))
        if not (blocks or calls or updates):
            return False
        left = _Left(blocks, calls, [number for number, _ in updates], [number for number, _ in rates])
        with additions.opened():
            if any(block.entries for block in blocks):
                entries = [each for block in blocks for each in block.entries]
                left.table = additions.leave(table([statistics for statistics, _ in entries]))
                scales = {id(scale): scale for _, scale in entries if scale is not None}
                if scales:
                    left.scales = additions.leave(tf.stack([tf.cast(each, tf.float32) for each in scales.values()]))
            if calls:
                left.losses = additions.leave(tf.stack([call.loss for call in calls]))
            raw = [
                *(tf.convert_to_tensor(each) for _, each in updates),
                *(tf.cast(each, tf.float32) for _, each in rates),
            ]
            if raw and any(additions.of is each for each in self._in_xla):
                left.raw = [additions.leave(each) for each in raw]  # XLA has no bundles
            elif raw:
                left.bundle = Bundle()
                additions.results.append((left.bundle.cell, left.bundle.packed(raw)))
        self._left.append(left)
        return True

    def _measured_calls(self) -> list[Call]:
        return [call for call in self._seen.calls if call.rows.is_measured]

    def _state_measured(self) -> State:
        norms = {
            number: (item.variable, has_one_shape(item))
            for number, item in enumerate(self._collector.variables)
            if number < len(self.trace.variables) and is_floating(item)
        }
        self._with_norms = list(norms)
        places = {number: place for place, number in enumerate(norms)}
        moved = [
            Moved(places[each.variable], self._collector.applied[each.applied], each.given) for each in self._updates
        ]
        return State(list(norms.values()), moved)


@dataclasses.dataclass(frozen=True, slots=True)
class _Update:
    """What an optimizer does to a variable.

    Attributes:
        variable: Its index.
        applied: The number of the update.
        given: The optimizer's arguments for it.
    """

    variable: int
    applied: int
    given: Given


@dataclasses.dataclass(frozen=True, slots=True)
class _MoreRows:
    """The rows of a step that are not results of a tape.

    Attributes:
        inputs: The name of each, with its row.
        movements: For each update.
        ranges: The ranges of values that functions are given.
    """

    inputs: Sequence[tuple[str, Row]]
    movements: Sequence[Row]
    ranges: Sequence[Ranged]


@dataclasses.dataclass(slots=True)
class _Left:
    """What one of the step's graphs leaves."""

    blocks: Sequence[LaterBlock]
    calls: Sequence[Call]
    updates: Sequence[int]
    rates: Sequence[int]
    table: Cell | None = None
    scales: Cell | None = None
    losses: Cell | None = None
    bundle: Bundle | None = None
    raw: Sequence[Cell] = ()

    def take(
        self, tables: dict[int, Array], losses: dict[int, float], updates: dict[int, Any], rates: dict[int, Any]
    ) -> None:
        """Adds it to what others have left; what belongs to a branch that was not taken is not known."""
        table, values, raw = (None if each is None else each.take() for each in (self.table, self.losses, self.bundle))
        if self.raw:
            raw = [each.take() for each in self.raw]
        if table is not None:
            self._take(table.numpy(), tables)
        numbers = [float("nan")] * len(self.calls) if values is None else values.numpy()
        losses.update((id(call), number) for call, number in zip(self.calls, numbers, strict=True))
        if raw is not None:
            updates.update(zip(self.updates, raw, strict=False))
            rates.update(zip(self.rates, raw[len(self.updates) :], strict=True))

    def _take(self, rows: Array, tables: dict[int, Array]) -> None:
        entries = [each for block in self.blocks for each in block.entries]
        is_of_gradient = np.array([isinstance(each, Later) and each.of is sums for each, _ in entries], bool)
        rows = rows.copy()
        rows[is_of_gradient] = gradient_columns(rows[is_of_gradient])
        if self.scales is not None:
            known = dict.fromkeys([id(scale) for _, scale in entries if scale is not None])
            values = dict(zip(known, self.scales.take().numpy(), strict=True))
            # Fractions and counts do not scale.
            rows[:, :SCALED] /= np.array([[1.0 if scale is None else values[id(scale)]] for _, scale in entries])
        for block in self.blocks:
            tables[id(block)], rows = rows[: block.row_count], rows[block.row_count :]


def _own_draws(ops: Sequence[str]) -> str:
    return (
        f"The step draws seeded random numbers with {', '.join(sorted(set(ops)))}, whose generator belongs to one compiled "
        "function. To draw the numbers that it draws without the recorder, every step runs in its recorded form, which "
        "takes longer. tf.random.Generator, keras.random with a SeedGenerator and Keras's random layers do not need that."
    )


def _graph_of(value: Any) -> Any:
    part = value.values if isinstance(value, tf.IndexedSlices) else value
    return getattr(part, "graph", None)


def _unknown(block: Block) -> Array:
    return np.full((block.row_count, len(GRADIENT_STATISTICS)), np.nan, np.float32)
