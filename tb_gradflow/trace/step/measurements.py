"""What functions that are made from a traced step measure: the statistics of its gradients, and more."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from tb_gradflow.record.schema import GRADIENT_STATISTICS, VARIABLE_STATISTICS
from tb_gradflow.trace.capture.collector import Collector
from tb_gradflow.trace.capture.gradient_clips import clippings_of
from tb_gradflow.trace.capture.passed_values import passed_values
from tb_gradflow.trace.engine.additions import Additions
from tb_gradflow.trace.engine.calls import CallSite, places
from tb_gradflow.trace.engine.cells import Bundle, Cell
from tb_gradflow.trace.experiments.loss_alone import Loss, loss_of
from tb_gradflow.trace.graph.gradient_call import Call
from tb_gradflow.trace.graph.variables import Variables, has_one_shape, is_floating
from tb_gradflow.trace.numerics.fusion import elements_of
from tb_gradflow.trace.numerics.later import Later, for_xla, gradient_columns, sums, table
from tb_gradflow.trace.numerics.loss_scale import SCALED
from tb_gradflow.trace.numerics.statistics_table import Block, LaterBlock
from tb_gradflow.trace.step.forward_values import data_of, examples_of, forward_values
from tb_gradflow.trace.step.more_rows import ClipRows, MoreRows, trace_with
from tb_gradflow.trace.step.named_inputs import (
    Named,
    NameInputs,
    arguments_of_graph,
    arguments_of_parameters,
    part_of_replica,
)
from tb_gradflow.trace.step.observation import seen_in
from tb_gradflow.trace.step.settings import Settings
from tb_gradflow.trace.step.state import Read, State, kept
from tb_gradflow.trace.step.value_ranges import value_ranges

Array = npt.NDArray[np.float32]

Measured = dict[str, Any]
"""The numbers of a step, by the names that the recorder knows them by."""


class Measurements:
    """What functions made from one trace measure.

    Args:
        collector: What was seen of it.
        function: The `AtomicFunction` that is called.
        settings: What to record.
        inputs: Names the arguments of the step.
        index: The number of the trace.
        trains: Whether the function trains: then nothing is measured that could change how it rounds.
        optimized: See `engine.siblings.Sibling`.
        replica: The number of the replica of which these are the gradients; `None` if there is only one.

    Attributes:
        numbered: The structure of the step, and the ops of the step.
        trace: The structure alone.
        additions: The ops that measure it.
        parts: Of the last step: the replica's part of each variable's gradient, by row.
    """

    def __init__(
        self,
        collector: Collector,
        function: Any,
        settings: Settings,
        inputs: NameInputs,
        index: int,
        *,
        trains: bool = True,
        optimized: bool = True,
        replica: int | None = None,
    ) -> None:
        called = list(places(function))
        graphs = [place.graph for place in called]
        self._in_xla = [place.graph for place in called if place.in_xla and optimized]
        self._collector = collector
        self._trains = trains
        self._replica = replica
        self._seen = seen_in(collector, graphs)
        self.parts: dict[int, Array] = {}
        self._updates = collector.moved(len(collector.variables))
        self._moved, self._cut, self._scales = Block(), Block(), Block()
        self._clips: ClipRows | None = None
        self._clippings = clippings_of(self._updates)
        self._values: dict[str, Cell] = {}
        self.numbered = trace_with(
            self._more_rows(settings, inputs, called),
            self._seen,
            collector.applied,
            index,
            keep_source=settings.source,
            root=collector.root if settings.values else None,
        )
        self.trace = self.numbered.trace
        self._left: list[_Left] = []
        # A step that is not recorded may run in the recorded form too: see `observed.forms`.
        self._is_wanted = Cell(tf.bool)
        self._is_wanted.write(False)
        additions = collector.symbols.additions
        self._listed = [each.anew() for each in additions if any(each.of is graph for graph in graphs)]
        self.additions = [each for each in self._listed if self._leaves(each, settings)]
        self._state = self._state_measured()
        self._is_begun = False

    @property
    def calls(self) -> Sequence[Call]:
        """The gradients that it takes."""
        return self._seen.calls

    @property
    def variables(self) -> Variables:
        """Those of the trace."""
        return self._collector.variables

    @property
    def rates(self) -> list[Any]:
        """The variables that hold a learning rate."""
        return [each.applied.rate for each in self._updates if isinstance(each.applied.rate, tf.Variable)]

    def losses_in(self, graphs: Sequence[Any]) -> dict[int, Loss]:
        """Those that are computed in some graphs, by target."""
        known = {target: loss for target, call in enumerate(self.calls) if (loss := loss_of(call)) is not None}
        return {target: loss for target, loss in known.items() if any(loss.tensors[0].graph is each for each in graphs)}

    def by_target(self, measured: Measured) -> dict[int, float]:
        """The losses of a step of which this was measured."""
        targets = [target for target, call in enumerate(self.calls) if call.rows.is_measured]
        return {target: float(loss) for target, loss in zip(targets, measured["losses"], strict=True)}

    def begin(self, read: Read = kept) -> None:
        """Before a function with these additions. `read` returns the value of a variable."""
        self._is_wanted.write(True)
        self._state.begin(read)

    def take(self, read: Read = kept) -> Measured:
        """After a function with these additions: what was measured."""
        self._is_wanted.write(False)
        tables: dict[int, Array] = {}
        losses: dict[int, float] = {}
        updates: dict[int, Any] = {}
        rates: dict[int, Any] = {}
        scales = {key: value for each in self._left for key, value in each.scales_taken()}
        for each in self._left:
            each.take(scales, tables, losses, updates, rates)
            self.parts |= each.parts_taken()
        numbers = range(len(self._updates))
        weights = () if self._is_begun else self._state.weights_before()
        self._is_begun = True
        norms, moved = self._state.end(
            [updates.get(number) for number in numbers], [rates.get(number) for number in numbers], read
        )
        tables[id(self._moved)] = moved
        tables[id(self._scales)] = _table(self._state.scales(read))
        if self._clips is not None and id(self._clips.block) in tables:
            tables[id(self._cut)] = _table(self._clips.rows(tables[id(self._clips.block)], self._divisors()))
        variables = np.full((len(self.trace.variables), len(VARIABLE_STATISTICS)), np.nan, np.float32)
        variables[self._with_norms] = norms
        blocks = [tables[id(block)] if id(block) in tables else _unknown(block) for block in self._seen.rows]
        values = {name: cell.take() for name, cell in self._values.items()}
        return {
            "trace": np.int32(self.trace.index),
            "losses": np.array([losses[id(call)] for call in self._measured_calls()], np.float32),
            "gradients": np.concatenate([np.zeros((0, len(GRADIENT_STATISTICS)), np.float32), *blocks]),
            "variables": variables,
            "weights": weights,
            **{name: value.numpy() for name, value in values.items() if value is not None},
        }

    def _more_rows(self, settings: Settings, inputs: NameInputs, called: Sequence[CallSite]) -> MoreRows:
        """The rows of the step that are not gradients."""
        collector, root = self._collector, self._collector.root
        block = LaterBlock(collector.symbols.of_graph(root).graph)
        with collector.symbols.of_graph(root).opened():
            self._arguments = arguments_of_graph(root)
            self._inputs = self._named(inputs, called)
            rows = [(name, block.measure(tensor)) for name, tensor in self._inputs]
            is_all = settings.tensors == "all"
            ranges = value_ranges(collector, block, exact=self._trains) if is_all else []
            # XLA fuses whatever nobody else reads; and a replica has only its part of a value.
            is_apart = self._replica is None and not any(each is root for each in self._in_xla)
            passed = passed_values(collector, block, exact=self._trains) if is_all and is_apart else []
            block.stack()
            if self._clippings and self._replica is None:
                self._clips = ClipRows(self._clippings, LaterBlock(block.graph), collector.apart)
        for each in (block, self._moved, self._cut, self._scales):
            self._seen.rows.append(each)
        return MoreRows(
            rows,
            [(each, self._moved.add()) for each in self._updates],
            ranges,
            passed,
            [(each, self._cut.add()) for each in self._clippings] if self._clips is not None else (),
            [(number, self._scales.add()) for number, each in enumerate(collector.applied) if each.scale is not None],
        )

    def _divisors(self) -> list[float]:
        applied = [each.moved[0].applied for each in self._clippings]
        return [1.0 if each.divisor is None else self._state.scale(each.divisor) for each in applied]

    def _named(self, inputs: NameInputs, called: Sequence[CallSite]) -> Named:
        """The arguments of the step, which may be a function that the user's own step calls."""
        try:
            return inputs(*part_of_replica(self._replica, *self._arguments))
        except ValueError:
            place = next((each for each in called if each.graph is self._collector.root), None)
            if place is None or place.function.function_type is None:
                return []
            names = [str(each) for each in place.function.function_type.parameters]
            return arguments_of_parameters(names, *self._arguments)

    def _leaves(self, additions: Additions, settings: Settings) -> bool:
        """Lets one of the step's graphs leave what is measured in it, if anything is."""
        collector, graph = self._collector, additions.graph
        every = [*self._seen.rows, *([] if self._clips is None else [self._clips.block])]
        blocks = [block for block in every if isinstance(block, LaterBlock) and block.graph is graph]
        entries = [each for block in blocks for each in block.entries]
        in_xla = any(additions.of is each for each in self._in_xla)
        if in_xla:
            entries = [(for_xla(each) if isinstance(each, Later) else each, scale) for each, scale in entries]
        calls = [call for call in self._measured_calls() if call.loss.graph is graph]
        updates, rates = [], []
        for number, each in enumerate(self._updates):
            gradient, rate = each.given.gradient, each.applied.rate
            if _graph_of(gradient) in (graph, additions.of):
                updates.append((number, gradient))
            if tf.is_tensor(rate) and _graph_of(rate) is additions.of:
                rates.append((number, rate))
        left = _Left(blocks, entries, calls, [number for number, _ in updates], [number for number, _ in rates])
        scales = self._scales_of(additions, entries)
        left.scaled = list(scales)
        with additions.opened():
            if entries:
                is_wanted = None if in_xla else self._is_wanted.written()
                left.table = additions.leave(table([statistics for statistics, _ in entries], is_wanted))
            if scales:
                left.scales = additions.leave(tf.stack([tf.cast(each, tf.float32) for each in scales.values()]))
            if self._replica is not None:
                left.parts = {row: additions.leave(part) for row, part in self._parts_of_variables(graph)}
            if calls:
                left.losses = additions.leave(tf.stack([call.loss for call in calls]))
            raw = [tf.convert_to_tensor(each) for _, each in updates]
            raw += [tf.cast(each, tf.float32) for _, each in rates]
            if raw and in_xla:
                left.raw = [additions.leave(each) for each in raw]  # XLA has no bundles
            elif raw:
                left.bundle = Bundle()
                additions.results.append((left.bundle.cell, left.bundle.packed(raw)))
            if additions.of is collector.root:
                self._leave_values(additions, settings)
        self._left.append(left)
        return bool(additions.results)

    def _parts_of_variables(self, graph: Any) -> Iterator[tuple[int, Any]]:
        """The gradients of variables that are taken in a graph, by row."""
        number_of = self._seen.rows.numbers()
        for row in [each.row for call in self.calls for each in call.variables.values() if each.row is not None]:
            if isinstance(row.block, LaterBlock) and row.block.graph is graph:
                statistics, scale = row.block.entries[row.place]
                if isinstance(statistics, Later) and not statistics.tensor.dtype.is_complex:
                    part = tf.cast(statistics.tensor, tf.float32)
                    yield number_of(row), part if scale is None else part / tf.cast(scale, tf.float32)

    def _leave_values(self, additions: Additions, settings: Settings) -> None:
        """Lets the step's own graph leave the values of the forward pass, and what instruments need."""
        symbols, values = self._collector.symbols, self._collector.more()
        if settings.values:
            values |= forward_values(self.calls, symbols, self.numbered, self._arguments)
            values |= data_of(self._arguments) if self._replica is None else {}
            values |= examples_of(self._inputs) if settings.examples else {}
        self._values = {name: additions.leave(tensor) for name, tensor in values.items()}

    def _scales_of(self, additions: Additions, entries: Sequence[tuple[Any, Any]]) -> dict[int, Any]:
        """The scales of losses that one of the step's graphs leaves, by id: those that it computes, wherever they are
        needed, and those that it needs if the graph that computes them leaves nothing."""
        graphs = [graph for each in self._listed for graph in (each.of, each.graph)]
        every = [each for block in self._seen.rows if isinstance(block, LaterBlock) for each in block.entries]
        own = [scale for _, scale in every if _graph_of(scale) in (additions.of, additions.graph)]
        own += [scale for _, scale in entries if _graph_of(scale) not in graphs]
        return {id(scale): scale for scale in own if scale is not None}

    def _measured_calls(self) -> list[Call]:
        return [call for call in self._seen.calls if call.rows.is_measured]

    def _state_measured(self) -> State:
        norms = {
            number: (item.variable, has_one_shape(item))
            for number, item in enumerate(self._collector.variables)
            if number < len(self.trace.variables) and is_floating(item)
        }
        self._with_norms = list(norms)
        return State(norms, self._updates, self._collector.applied)


@dataclasses.dataclass(slots=True)
class _Left:
    """What one of the step's graphs leaves."""

    blocks: Sequence[LaterBlock]
    entries: Sequence[tuple[Any, Any]]
    calls: Sequence[Call]
    updates: Sequence[int]
    rates: Sequence[int]
    table: Cell | None = None
    scales: Cell | None = None
    scaled: Sequence[int] = ()
    losses: Cell | None = None
    bundle: Bundle | None = None
    raw: Sequence[Cell] = ()
    parts: Mapping[int, Cell] = dataclasses.field(default_factory=dict)

    def scales_taken(self) -> Iterator[tuple[int, Any]]:
        """The scales of losses, by id."""
        values = None if self.scales is None else self.scales.take()
        return zip(self.scaled, [] if values is None else values.numpy(), strict=False)

    def take(
        self,
        scales: Mapping[int, Any],
        tables: dict[int, Array],
        losses: dict[int, float],
        updates: dict[int, Any],
        rates: dict[int, Any],
    ) -> None:
        """Adds it to what others have left; what belongs to a branch that was not taken is not known."""
        table, values = (None if each is None else each.take() for each in (self.table, self.losses))
        raw = [each.take() for each in self.raw] if self.bundle is None else self.bundle.take()
        if table is not None:
            self._take(table.numpy(), scales, tables)
        numbers = [float("nan")] * len(self.calls) if values is None else values.numpy()
        losses.update((id(call), number) for call, number in zip(self.calls, numbers, strict=True))
        if raw:
            updates.update(zip(self.updates, raw, strict=False))
            rates.update(zip(self.rates, raw[len(self.updates) :], strict=True))

    def parts_taken(self) -> dict[int, Array]:
        """The replica's parts of variables' gradients, by row."""
        taken = {row: cell.take() for row, cell in self.parts.items()}
        return {row: value.numpy() for row, value in taken.items() if value is not None}

    def _take(self, rows: Array, scales: Mapping[int, Any], tables: dict[int, Array]) -> None:
        entries = self.entries
        is_of_gradient = np.array([isinstance(each, Later) and each.of is sums for each, _ in entries], bool)
        rows = rows.copy()
        rows[is_of_gradient] = gradient_columns(rows[is_of_gradient])
        # Fractions and counts do not scale.
        rows[:, :SCALED] /= np.array([[1.0 if scale is None else scales[id(scale)]] for _, scale in entries])
        for block in self.blocks:
            tables[id(block)], rows = rows[: block.row_count], rows[block.row_count :]


def _graph_of(value: Any) -> Any:
    part = elements_of(value)
    return getattr(part, "graph", None)


def _table(rows: Sequence[Sequence[float]]) -> Array:
    return np.array(rows, np.float32).reshape(-1, len(GRADIENT_STATISTICS))


def _unknown(block: Block) -> Array:
    return np.full((block.row_count, len(GRADIENT_STATISTICS)), np.nan, np.float32)
