"""From a collector's observations of a traced step to the record of its structure."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

import tensorflow as tf

from tb_gradflow.analyse.graph.op_sets import PYTHON_CALLS, SAME_VALUES
from tb_gradflow.analyse.graph.probabilities import SOFTMAX_LOSSES
from tb_gradflow.record.schema import (
    SNAPSHOT,
    Deferred,
    DroppedMask,
    Edge,
    GradientCheck,
    Layer,
    Op,
    Passes,
    Replaced,
    Source,
    Target,
    Tensor,
    TensorGradient,
    Term,
    TermCosines,
    TermGradient,
    TermTensor,
    Trace,
    Variable,
    VariableGradient,
)
from tb_gradflow.trace.graph.constants_and_data import constants_of, exceeds_half, given_data, given_to, has_floor
from tb_gradflow.trace.graph.custom_gradients import own_gradient
from tb_gradflow.trace.graph.deferred_updates import deferred_by, replaced_by
from tb_gradflow.trace.graph.differentiable import Differentiability, custom_gradient_name, shape_of
from tb_gradflow.trace.graph.flat_ops import FlatOp, Input, Ref, consumers, readers
from tb_gradflow.trace.graph.flatten import Flattener
from tb_gradflow.trace.graph.gradient_call import Answer, Call
from tb_gradflow.trace.graph.gradient_overrides import overrides_in
from tb_gradflow.trace.graph.reach import influenced_by, needed_for
from tb_gradflow.trace.graph.unused_slices import unused_slices
from tb_gradflow.trace.graph.variables import MadeTensor, Variables, distinct
from tb_gradflow.trace.numerics.statistics_table import StatisticsTable
from tb_gradflow.trace.source.dataset_functions import reads_in_datasets
from tb_gradflow.trace.source.frames import Frame, frames_of
from tb_gradflow.trace.source.loss_names import target_names
from tb_gradflow.trace.source.source_table import SourceTable
from tb_gradflow.trace.source.statements import condition_of_update
from tb_gradflow.trace.source.user_line import is_users
from tb_gradflow.trace.tf_internals.patching import missing

_DELICATE = frozenset({"Log", "Log1p", "Sqrt", "Rsqrt", "RealDiv", "Reciprocal", "Pow", "Exp", "Acos", "Asin"})


# The name scope in which a tape creates its ops: inside a function's body there is no other sign of them.
_GRADIENT_SCOPE = "/gradient_tape/"


@dataclass(frozen=True, slots=True)
class Looked:
    """The observations of a traced step.

    Attributes:
        calls: The requested gradients, in order.
        variables: The variables.
        rows: The statistics of the answers.
        layers: By name scope.
        called: The stack under which each was called first, where that is known.
        by_tape: Whether a tape computed the gradients at the top; else `tf.gradients` did.
        unscaled: Whether an optimizer divided gradients by a loss scale by which no loss had been multiplied.
    """

    calls: Sequence[Call]
    variables: Variables
    rows: StatisticsTable
    layers: Mapping[str, Layer] = field(default_factory=dict)
    called: Mapping[str, Sequence[Frame]] = field(default_factory=dict)
    by_tape: bool = True
    unscaled: bool = False


@dataclass(frozen=True, slots=True)
class TensorPosition:
    """A floating tensor of the step's own graph, and its position in the trace.

    Attributes:
        op: Index in `Trace.ops`.
        output: Which of its outputs; -1 for an input.
        input: Which of its inputs, if no op of the trace produces it; -1 for an output.
        symbol: The tensor.
    """

    op: int
    output: int
    input: int
    symbol: Any


NumberOf = Callable[[Flattener, Ref], int]
"""Returns the index in the trace of the op that produces a tensor; -1 if it is not listed."""


@dataclass(frozen=True, slots=True)
class Numbered:
    """The record of a traced step, and what its numbers mean.

    Attributes:
        trace: The record.
        ops: For each op of the record, that of the step.
        number_of: See `NumberOf`.
        places: The floating tensors of the graph in which the forward pass is measured; none if it is not.
    """

    trace: Trace
    ops: Sequence[FlatOp]
    number_of: NumberOf
    places: Sequence[TensorPosition]


def trace_of(looked: Looked, index: int, *, keep_source: bool = True) -> Trace:
    """The record of a traced step. With `keep_source` false, the user's files and lines are left out."""
    return numbered_trace_of(looked, index, keep_source=keep_source).trace


def with_requested(trace: Trace) -> Trace:
    """A record in which those variables are the model's for which a gradient was requested."""
    asked = {each.variable for each in trace.variable_gradients if each.outcome != "not_asked"}
    listed = (replace(variable, tracked=number in asked) for number, variable in enumerate(trace.variables))
    return replace(trace, variables=tuple(listed))


def numbered_trace_of(looked: Looked, index: int, *, keep_source: bool = True, root: Any = None) -> Numbered:
    """The same with the numbers of the ops. For a step whose forward pass is measured, in the graph `root`: with values
    computed only from data, and the tensors of that graph.
    """
    builder = _Builder(looked, keep_source, with_data=root is not None)
    for call in looked.calls:
        builder.choose(call)
    builder.number()
    return Numbered(builder.build(index), builder.ops(), builder.number_of, list(builder.places(root)))


@dataclass(frozen=True, slots=True)
class _Key:
    """A flat op of one of the step's graphs."""

    graph: int
    op: int


class _Builder:
    def __init__(self, looked: Looked, keep_source: bool, *, with_data: bool = False) -> None:
        self._looked = looked
        self._with_data = with_data
        self._sources = SourceTable(keep_source)
        self._differentiability = Differentiability(calls_users=not looked.by_tape)
        self._flatteners: list[Flattener] = []
        self._chosen: set[_Key] = set()
        self._data: dict[int, set[int]] = {}
        self._numbers: dict[_Key, int] = {}
        self._number_of_row = looked.rows.numbers()
        self._decided: dict[tuple[str, int], tuple[int, str] | None] = {}

    def choose(self, call: Call) -> None:
        """The ops between variables and the target, and those where the path of an unused variable ends."""
        graph = self._graph(call.flattener)
        ops = call.flattener.ops
        users = consumers(ops)
        reads = readers(ops)
        needed = needed_for(ops, [ref.op for ref in call.targets])
        sought = {v for v in reads if v in call.variables or v in call.watched or self._looked.variables[v].tracked}
        start = {op for v in sought for op in reads[v] if not ops[op].backward or op in needed}
        kept = influenced_by(ops, users, start) & needed
        if not kept:
            # If a loss was not computed from the variables by ops, Python read them, if there is any on the path.
            python = [op for op in needed if ops[op].type in PYTHON_CALLS and not ops[op].backward]
            kept.update(influenced_by(ops, users, python) & needed)
        kept.update(ref.op for ref in call.targets if ref.op in kept)
        for variable in sought:
            if self._looked.variables[variable].trainable and not kept.intersection(reads[variable]):
                forward = [op for op in reads[variable] if not ops[op].backward]
                kept.update(op for op in influenced_by(ops, users, forward) if not ops[op].backward)
                if isinstance(self._looked.variables[variable].variable, MadeTensor):
                    kept.update(influenced_by(ops, users, start) & needed_for(ops, forward))
        # A distribution of TensorFlow Probability may return the density of its own sample without reading it.
        if any("/sample/" in ops[op].name for op in kept):
            kept.update(op for op in needed if "/log_prob/" in ops[op].name and not ops[op].backward)
        without = [variable for variable, answer in call.variables.items() if answer.outcome == "none"]
        cut_off = [op for variable in without for op in reads.get(variable, ()) if op in kept]
        kept.update(self._in_vain(ops, users, cut_off, needed))
        # Values that may not be finite although they do not depend on a variable, and that make a variable's gradient
        # non-finite.
        self._data[graph] = given_data(ops, users)
        beside = {item.ref.op for op in kept for item in ops[op].inputs} & self._data[graph]
        delicate = {op for op in beside if ops[op].type in _DELICATE and not has_floor(ops[op], ops)}
        kept.update(delicate, (op for op in beside if exceeds_half(ops[op], ops)))
        if self._with_data:
            # Of what is computed from constants, only what may make NaN, with its inputs and what it goes into.
            able = {op for op in needed if ops[op].type in _DELICATE}
            able |= {item.ref.op for op in able for item in ops[op].inputs} | influenced_by(ops, users, able)
            kept.update(op for op in needed & (self._data[graph] | able) if _computes_floats(ops[op]))
        # Keras computes the loss from the input of a model's last activation, and the activation itself is unused.
        turned = {user for op in kept for user in users.get(op, ()) if ops[user].type == "Transpose"}
        kept.update(op for op in turned if any(ops[user].type == "Softmax" for user in users.get(op, ())))
        kept.update(user for op in list(kept) for user in users.get(op, ()) if ops[user].type == "Softmax")
        kept.update(list(_sigmoids_of_logits(ops, users, kept)))
        kept.update(unused_slices(ops, users, kept))
        self._chosen.update(_Key(graph, op) for op in kept)

    def _in_vain(
        self, ops: Sequence[FlatOp], users: Mapping[int, list[int]], start: Sequence[int], needed: set[int]
    ) -> set[int]:
        """The paths from `start` on which a gradient would flow back from single numbers on which the target does not
        depend, such as a term that was never added to the loss.
        """

        def passes(producer: int, op: FlatOp) -> bool:
            given = [item for item in op.inputs if item.ref.op == producer and not op.backward]
            return any(self._passes(op, item) == "yes" for item in given)

        reached = influenced_by(ops, users, start, passes=passes)
        numbers = [op for op in reached - needed if ops[op].tensors and shape_of(ops[op].tensors[0]) == ()]
        return needed_for(ops, numbers) & reached

    def number(self) -> None:
        """Fixes the order: graph by graph, each in the order in which its ops were created."""
        for key in sorted(self._chosen, key=self._place):
            self._numbers[key] = len(self._numbers)

    def _place(self, key: _Key) -> tuple[int, float, int]:
        place = self._flatteners[key.graph].ops[key.op].place
        return key.graph, key.op if place is None else place, key.op

    def places(self, root: Any) -> Iterator[TensorPosition]:
        """The floating tensors of ops that are in a graph, and of those that it calls the results."""
        for number, flattener in enumerate(self._flatteners):
            if flattener.graph is not root:
                continue
            results = flattener.results()
            for key, op in self._numbers.items():
                if key.graph != number:
                    continue
                flat = flattener.ops[key.op]
                for output, tensor in enumerate(flat.tensors):
                    symbol = results.get(Ref(key.op, output)) if flat.nested else tensor
                    if symbol is not None and symbol.dtype.is_floating:
                        yield TensorPosition(op, output, -1, symbol)
                listed = {each.input for each in self._edges(key, flat)}
                for slot, tensor in enumerate(() if flat.nested else flat.op.inputs):
                    if slot not in listed and tensor.dtype.is_floating:
                        yield TensorPosition(op, -1, slot, tensor)

    def ops(self) -> list[FlatOp]:
        """Those that are listed, in their order."""
        return [self._flatteners[key.graph].ops[key.op] for key in self._numbers]

    def build(self, index: int) -> Trace:
        ops = tuple(self._op(key) for key in self._numbers)
        gradient_checks = tuple(self._own_gradients())
        overrides = overrides_in(self._sources.files, self.ops(), list(self._all_ops()), self._sources.place)
        variables = self._looked.variables.records(
            (call.variables for call in self._looked.calls), keep_source=self._sources.keep
        )
        variables = self._in_datasets(variables, {op.reads for op in ops})
        layers, targets = self._layers(ops), self._targets()
        terms, deferred = tuple(self._terms()), tuple(self._deferred())
        replaced = tuple(self._replaced(len(variables)))
        answered = [answer for call in self._looked.calls for answer in call.terms.terms]
        owners = [*(each.name for each in variables), *(each.name for each in layers)]
        names = {part for owner in owners for part in owner.split("/")}
        return Trace(
            index=index,
            ops=ops,
            variables=variables,
            targets=targets,
            variable_gradients=tuple(
                VariableGradient(number, variable, answer.outcome, self._row(answer), variable in call.watched)
                for number, call in enumerate(self._looked.calls)
                for variable, answer in self._answers(call)
            ),
            tensor_gradients=tuple(
                TensorGradient(number, op, ref.output, answer.outcome, self._row(answer))
                for number, call in enumerate(self._looked.calls)
                for ref, answer in call.tensors.items()
                if (op := self.number_of(call.flattener, ref)) >= 0
            ),
            layers=layers,
            sources=self._sources.all(),
            passages=self._sources.passages(names, {layer.type for layer in layers}),
            notes=self._notes(),
            gradient_checks=gradient_checks,
            unscaled=self._looked.unscaled,
            overrides=overrides,
            dropped_masks=tuple(
                DroppedMask(
                    dropped.layer,
                    dropped.type,
                    number,
                    self._number_of_row(row),
                    dropped.how,
                    self.number_of(call.flattener, ref),
                )
                for number, call in enumerate(self._looked.calls)
                for dropped, ref, row in call.padded
            ),
            terms=terms,
            term_gradients=tuple(
                TermGradient(number, variable, self._number_of_row(row))
                for number, answer in enumerate(answered)
                for variable, row in answer.gradients.items()
            ),
            term_cosines=tuple(
                TermCosines(number, variable, self._number_of_row(row))
                for number, call in enumerate(self._looked.calls)
                for variable, row in call.terms.cosines.items()
            ),
            deferred=deferred,
            replaced=replaced,
            term_tensors=tuple(self._term_tensors()),
        )

    def _in_datasets(self, variables: tuple[Variable, ...], read: Set[int | None]) -> tuple[Variable, ...]:
        """With the lines where datasets read those that the step does not read."""
        if not self._sources.keep:
            return variables
        unread = {
            number: self._looked.variables[number].variable
            for number, each in enumerate(variables)
            if each.trainable and not each.computed and number not in read
        }
        lines = {number: self._sources.of(*read)[0] for number, read in reads_in_datasets(unread).items()}
        return tuple(replace(each, in_dataset=lines.get(number)) for number, each in enumerate(variables))

    def _deferred(self) -> Iterator[Deferred]:
        """Each variable once. The ops of the trace are already numbered: ops that are found only now get no number."""
        found: dict[int, Deferred] = {}
        for call in self._looked.calls:
            ran = functools.cache(functools.partial(_lines_of, call.flattener))
            for each in deferred_by(call):
                at = self._origin(each.sum)[0] if each.sum is not None else None
                condition = None
                if each.condition is not None:
                    condition, _ = self._sources.of(frames_of(each.condition.traceback), each.condition.type)
                elif each.sum is not None and not isinstance(call.loss, tf.__internal__.EagerTensor):
                    condition = self._decided_by_python(each.sum, ran)
                found.setdefault(
                    each.variable,
                    Deferred(each.variable, each.sum is not None, at, each.condition is not None, condition),
                )
        yield from found.values()

    def _decided_by_python(self, op: FlatOp, ran: Callable[[], Mapping[str, Set[int]]]) -> int | None:
        """The condition in the user's function around an op that Python decided while the step was compiled, so that
        the graph does not contain what it applies to. `ran` returns the lines of each file that it contains."""
        for frame in frames_of(op.op.traceback):
            key = frame.file, frame.line
            if not is_users(frame.file):
                continue
            if key not in self._decided:
                self._decided[key] = condition_of_update(*key, ran().get(frame.file, set()))
            if (found := self._decided[key]) is not None:
                line, code = found
                return self._sources.place(Source(frame.file, line, frame.function, code))
        return None

    def _replaced(self, number: int) -> Iterator[Replaced]:
        """Each variable once, after `_deferred` has found the ops of the whole step, and with them variables that are
        not in the trace."""
        found: dict[int, Replaced] = {}
        for call in self._looked.calls:
            for each in (each for each in replaced_by(call) if max(each.variable, each.by) < number):
                at, _ = self._origin(each.write)
                found.setdefault(each.variable, Replaced(each.variable, each.by, each.share, at))
        yield from found.values()

    def _terms(self) -> Iterator[Term]:
        for number, call in enumerate(self._looked.calls):
            for each in call.terms.terms:
                op = self.number_of(call.flattener, each.ref) if each.ref is not None else -1
                source, _ = self._sources.of(each.frames, "")
                named = self._sources.keep or each.name.isidentifier() or each.kind != "term"
                name, row = each.name if named else "term", self._number_of_row(each.row)
                yield Term(number, name, each.kind, op, source, row, each.trains)

    def _term_tensors(self) -> Iterator[TermTensor]:
        answered = [(call, answer) for call in self._looked.calls for answer in call.terms.terms]
        for number, (call, answer) in enumerate(answered):
            for ref, row in answer.tensors.items():
                if (op := self.number_of(call.flattener, ref)) >= 0:
                    yield TermTensor(number, op, ref.output, None if row is None else self._number_of_row(row))

    def _row(self, answer: Answer) -> int | None:
        return None if answer.row is None else self._number_of_row(answer.row)

    def _all_ops(self) -> Iterator[FlatOp]:
        for flattener in self._flatteners:
            yield from (op for op in flattener.ops if not op.backward and op.known is None)

    def _graph(self, flattener: Flattener) -> int:
        if flattener not in self._flatteners:
            self._flatteners.append(flattener)
        return self._flatteners.index(flattener)

    def number_of(self, flattener: Flattener, ref: Ref) -> int:
        return self._numbers.get(_Key(self._graph(flattener), ref.op), -1)

    def _op(self, key: _Key) -> Op:
        flat = self._flatteners[key.graph].ops[key.op]
        source, api = self._origin(flat)
        edges, constants = self._edges(key, flat), constants_of(flat, self._flatteners[key.graph].ops)
        return Op(
            name=flat.name if key.graph == 0 else f"{flat.name}@{key.graph}",
            type=flat.type,
            inputs=edges,
            outputs=tuple(_tensor(tensor) for tensor in flat.tensors),
            source=source,
            api=api,
            reads=flat.reads,
            writes=flat.writes,
            custom_gradient=custom_gradient_name(flat.op),
            backward=flat.backward or _GRADIENT_SCOPE in f"/{flat.op.name}",
            data=key.op in self._data[key.graph],
            constants=constants,
            input_count=len(flat.op.inputs),
            compiled=flat.compiled,
            differentiable=self._passes_any(flat),
            updated=flat.updated,
            given=given_to(flat, {each.input for each in edges} | {each.input for each in constants}),
        )

    def _own_gradients(self) -> Iterator[GradientCheck]:
        """The ops with a custom gradient that were not compared yet."""
        for key, number in self._numbers.items():
            flat = self._flatteners[key.graph].ops[key.op]
            own = own_gradient(flat.op, by_tape=self._by_tape(flat)) if flat.known is None else flat.known.own
            if own is not None:
                yield GradientCheck(number, own.function, self._sources.place(own.source))

    def _by_tape(self, flat: FlatOp) -> bool:
        return self._looked.by_tape and not flat.nested

    def _origin(self, flat: FlatOp) -> tuple[int | None, str | None]:
        known = flat.known
        source, api = self._sources.of(flat.frames, flat.type)
        if known is not None and (known.api or flat.type == SNAPSHOT):
            return source, known.api  # the line uses a value from before the step, and does not create it
        return source, api

    def _edges(self, key: _Key, flat: FlatOp) -> tuple[Edge, ...]:
        edges = []
        for item in flat.inputs:
            producer = self._numbers.get(_Key(key.graph, item.ref.op))
            if producer is None:
                continue
            passes = self._passes(flat, item)
            carried = item.carried or producer >= self._numbers[key]
            edges.append(Edge(producer, item.ref.output, item.slot, passes, carried))
        return tuple(edges)

    def _passes(self, flat: FlatOp, item: Input) -> Passes:
        return item.passes or self._differentiability.of(flat.op, by_tape=self._by_tape(flat))[item.slot]

    def _passes_any(self, flat: FlatOp) -> bool | None:
        if all(item.passes is not None for item in flat.inputs):
            return None
        return "yes" in self._differentiability.of(flat.op, by_tape=self._by_tape(flat))

    def _answers(self, call: Call) -> list[tuple[int, Answer]]:
        unasked = sorted(call.watched - call.variables.keys())
        # A variable's result is that of the outermost tape; an inner gradient is a step on the path to it.
        outer = {each for other in self._looked.calls if call.inner and not other.inner for each in other.variables}
        asked = [(variable, answer) for variable, answer in call.variables.items() if variable not in outer]
        return [*asked, *((variable, Answer("not_asked", None)) for variable in unasked)]

    def _layers(self, ops: Sequence[Op]) -> tuple[Layer, ...]:
        """The layers that have ops: Keras also opens scopes in which it creates none."""
        scopes = {op.name[:end] for op in ops for end, letter in enumerate(op.name) if letter == "/"}
        called = self._looked.called
        return tuple(
            replace(layer, source=self._sources.of(called.get(scope, ()), "")[0])
            for scope, layer in self._looked.layers.items()
            if scope in scopes
        )

    def _targets(self) -> tuple[Target, ...]:
        frames = [call.frames for call in self._looked.calls]
        written = list(target_names(frames, by_tape=self._looked.by_tape))
        # A name describes a loss; an expression is only a piece of the user's code.
        names = distinct([name if self._sources.keep or name.isidentifier() else "loss" for name in written])
        targets = []
        for name, call in zip(names, self._looked.calls, strict=True):
            op, output = -1, 0
            if call.targets:
                op, output = self.number_of(call.flattener, call.targets[0]), call.targets[0].output
            source, _ = self._sources.of(call.frames, "")
            targets.append(
                Target(
                    name,
                    op,
                    output,
                    source,
                    call.unconnected,
                    call.scaled,
                    call.measured,
                    call.automatic,
                    call.sources,
                    call.of_variable,
                    call.by_hand,
                    call.passed,
                )
            )
        return tuple(targets)

    def _notes(self) -> tuple[str, ...]:
        problems = tuple(call.terms.problem for call in self._looked.calls if call.terms.problem)
        return (*problems, *missing())


def _lines_of(flattener: Flattener) -> dict[str, set[int]]:
    """The lines of each file in which the ops of a graph were created."""
    found: dict[str, set[int]] = {}
    for op in flattener.ops:
        for frame in frames_of(op.op.traceback):
            found.setdefault(frame.file, set()).add(frame.line)
    return found


def _computes_floats(op: FlatOp) -> bool:
    """Whether it computes floating numbers from something, and is not a constant, argument or variable."""
    return bool(op.op.inputs) and op.reads is None and any(tensor.dtype.is_floating for tensor in op.tensors)


def _tensor(tensor: Any) -> Tensor:
    return Tensor(shape_of(tensor), tensor.dtype.name)


def _sigmoids_of_logits(ops: Sequence[FlatOp], users: Mapping[int, list[int]], kept: Collection[int]) -> Iterator[int]:
    """The sigmoids of what a cross-entropy of several classes gets."""
    for op in kept:
        if ops[op].type in SOFTMAX_LOSSES and ops[op].inputs:
            logits = ops[op].inputs[0].ref.op
            while ops[logits].type in SAME_VALUES and ops[logits].inputs:
                logits = ops[logits].inputs[0].ref.op
            yield from (user for user in users.get(logits, ()) if ops[user].type == "Sigmoid")
