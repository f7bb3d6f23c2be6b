"""Collects from one trace of a training step which gradients were requested, and what the tape returned.

A collector lives as long as one trace of a step, or one eager step. `patches` calls it whenever the user's step
requests a gradient, scales a loss or applies gradients. It adds the tensors on the path to the sources, keeps the
statistics of the results as symbolic tensors, and returns exactly what the caller requested.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import tensorflow as tf
from tensorflow.python.eager import record
from tensorflow.python.util import tf_stack

from tb_gradflow.record.schema import Layer
from tb_gradflow.trace.capture.aliases import aliases, only_reads, plain_reads
from tb_gradflow.trace.capture.gradient_clips import CalledClips
from tb_gradflow.trace.capture.instruments import Ask, Instrument, Request
from tb_gradflow.trace.capture.optimizer_updates import Applied, Moved, applied_by, as_number, rate_in_step
from tb_gradflow.trace.capture.requested_tensors import is_answer, requested_tensors
from tb_gradflow.trace.capture.snapshots import link_snapshots
from tb_gradflow.trace.capture.symbols import Symbols
from tb_gradflow.trace.graph.differentiable import is_differentiable_dtype
from tb_gradflow.trace.graph.dropped_masks import Dropped, at_padding, dropped_by, made_with_mask
from tb_gradflow.trace.graph.flat_ops import Ref, consumers
from tb_gradflow.trace.graph.flatten import Flattener, symbol_in
from tb_gradflow.trace.graph.gradient_call import Answer, Call, Checked
from tb_gradflow.trace.graph.reach import influenced_by, last_of_scopes, needed_for
from tb_gradflow.trace.graph.variables import (
    MadeTensor,
    Variables,
    has_one_shape,
    is_floating,
    is_replica,
    is_variable,
)
from tb_gradflow.trace.numerics.fusion import Needed, apart, elements_of, may_be_merged, seen_apart
from tb_gradflow.trace.numerics.loss_scale import ScaledLosses, total
from tb_gradflow.trace.numerics.statistics_table import StatisticsTable
from tb_gradflow.trace.protection.foreign import faults
from tb_gradflow.trace.source.frames import PACKAGE, Frame, frames_of
from tb_gradflow.trace.tf_internals.tapes import (
    flat_answers,
    flat_gradients,
    flat_sources,
    is_recorded,
    is_watched_by_another,
)

Tensors = Literal["all", "layers", "variables"]


@dataclass(frozen=True, slots=True)
class Scope:
    """What to measure of a step.

    Attributes:
        tensors: The tensors on the path whose gradients to request: all, layers' outputs, or only variables.
        exact: Whether to leave out the tensors whose measurement could change how the step rounds.
        barriers: The names of flat ops through which no gradient may be taken, because that raises an error. Such a
            step is only measured: it gets zeros instead of missing gradients, so that it completes. `None` for a step
            as the user wrote it.
    """

    tensors: Tensors = "all"
    exact: bool = True
    barriers: Collection[str] | None = None


class Collector:
    """Collects the gradient calls of one step.

    Args:
        variables: The model's variables; others that the step reads are added.
        symbols: How the step's tensors relate to its graph.
        scope: What to measure.
        instruments: Additional measurements of each gradient. Each instrument wraps those before it: it sends requests
            to the tape through them, and gets the result first.

    Attributes:
        calls: In order.
        layers: By name scope.
        called: By name scope of a layer: the stack under which it was called first.
        rows: The statistics of the results.
        applied: The arguments of optimizers, in order.
        keeps_gradients: Whether the gradients of tensors on the path are kept until the step is over.
        raised: The last error that a tape raised instead of a result; None if there was none.
    """

    def __init__(
        self, variables: Variables, symbols: Symbols, scope: Scope = Scope(), instruments: Sequence[Instrument] = ()
    ) -> None:
        self.variables = variables
        self.symbols = symbols
        self.instruments = instruments
        self.calls: list[Call] = []
        self.rows = StatisticsTable()
        self.layers: dict[str, Layer] = {}
        self.called: dict[str, Sequence[Frame]] = {}
        self.keeps_gradients = symbols.only_observes
        self.raised: Exception | None = None
        self.applied: list[Applied] = []
        self._scope = scope
        self._fault: Exception | None = None
        self._dropped: list[Dropped] = []
        self._masked: list[Dropped] = []
        self._taken: set[int] = set()
        self._is_applying = False
        self._clips = CalledClips(symbols)
        self._apart: dict[int, Any] = {}
        self._flatteners: dict[int, tuple[Any, Flattener]] = {}
        self._scales = ScaledLosses()
        self._unscaled: dict[int, tuple[Any, Any]] = {}
        self._has_scaled = self._has_divided = False

    @property
    def root(self) -> Any:
        """The graph that the step is recorded as."""
        return self.symbols.root

    @property
    def fault(self) -> Exception | None:
        """An exception for which the step cannot be recorded, the first one; `None` while there is none."""
        return self._fault or self.symbols.fault

    def fail(self, fault: Exception) -> None:
        """The step cannot be recorded, but continues."""
        self._fault = self._fault or fault

    def knows(self, tensor: Any) -> bool:
        """Whether a tensor belongs to the step."""
        return self.symbols.knows(tensor)

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Open while the step runs."""
        with contextlib.ExitStack() as opened:
            for each in self._parts():
                opened.enter_context(each.recording())
            yield

    def more(self) -> dict[str, Any]:
        """Tensors that the step must return in addition to its statistics, each under a unique name."""
        return {name: tensor for each in self._parts() for name, tensor in each.more().items()}

    def _parts(self) -> list[Instrument | Symbols]:
        return [*self.instruments, self.symbols]

    def gradient(self, original: Ask, tape: Any, target: Any, sources: Any, *rest: Any) -> Any:
        """Replaces `tape.gradient(target, sources, output_gradients, unconnected_gradients)`."""
        prepared = self._prepared(tape, target, sources, rest)
        if prepared is None:
            return original(tape, target, sources, *rest)
        request, extra = prepared
        ask, measuring = self._through_instruments(request, original)
        fills_zeros = request.call.unconnected == "zero" and self.symbols.fills_zeros(alone=not extra)
        try:
            wanted = [sources, list(extra.values())]
            # Another tape may differentiate the gradient, which is then a part of its loss.
            with contextlib.nullcontext() if request.call.inner else self.symbols.passing():
                asked, on_the_way = ask(tape, target, wanted, *(rest[:1] if fills_zeros else rest))
        except faults() as error:
            self._raised(request, error)
            with self._own_work():
                for each in measuring:
                    each.failed()
            raise
        with self._own_work(), record.stop_recording():
            self._keep(request, asked, extra, on_the_way)
            request.call.checked = self._checked(request, asked)
            self._close(request, measuring, asked)
        asked = asked if self._scope.barriers is None else _filled(asked, sources)
        return self.symbols.with_zeros(original, asked, target, sources) if fills_zeros else asked

    def jacobian(
        self, original: Callable[[], tuple[Any, Sequence[bool]]], tape: Any, target: Any, sources: Any, *rest: Any
    ) -> Any:
        """Replaces `tape.jacobian(target, sources, unconnected_gradients)` and similar methods, which `original` calls;
        it returns the result, and for each source whether it is more than zeros instead of a missing one. The whole
        result is measured, and nothing else is requested."""
        is_measured = self._scope.barriers is None
        prepared = self._prepared(tape, target, sources, (None, *rest)) if is_measured else None
        if prepared is None:
            return original()[0]
        request, _ = prepared
        try:
            asked, arrived = original()
        except faults() as error:
            self._raised(request, error)
            raise
        with self._own_work(), record.stop_recording():
            request.call.aliases = {}
            answers = zip(flat_gradients(asked), arrived, strict=True)
            known = tf.nest.pack_sequence_as(sources, [answer if is_there else None for answer, is_there in answers])
            self._keep(request, known, {}, ())
            self._close(request, [], known)
        return asked

    def _prepared(
        self, tape: Any, target: Any, sources: Any, rest: Sequence[Any]
    ) -> tuple[Request, dict[Ref, Any]] | None:
        """The record of a request, and the additional tensors to request; `None` if it cannot be recorded."""
        found: list[tuple[Request, dict[Ref, Any]]] = []
        with self._faults_kept():
            # The recorder's own work runs where no tape records, so no tape could see it there.
            is_inner = is_watched_by_another(tape)
            with self.symbols.own_work():
                before = self.root
                self.symbols.check_request()
                if self.root is not before:
                    self.applied, self._flatteners = [], {}
                    self.variables.forget_made()
                found.append(self._prepare(tape, target, sources, rest, is_inner=is_inner))
        return found[0] if found else None

    def _through_instruments(self, request: Request, ask: Ask) -> tuple[Ask, list[Instrument]]:
        """The request to the tape, through all instruments; and these in the order in which they get the result."""
        measuring: list[Instrument] = []
        with self._own_work():
            for each in self.instruments:
                ask = each.asking(request, ask)
                measuring.insert(0, each)
        return ask, measuring

    def _raised(self, request: Request, error: Exception) -> None:
        """The tape has raised an error, which the step may catch: it then has a loss without a gradient."""
        self.raised = error
        with self._own_work(), record.stop_recording():
            for source in flat_sources(request.sources):
                index = self.variables.index_of_source(source)
                if index is not None:
                    request.call.variables[index] = Answer("error", None)
            self._stack(request)

    def _close(self, request: Request, measuring: Sequence[Instrument], asked: Any) -> None:
        """The results are kept: lets the instruments add to them."""
        call = request.call
        for each in measuring:
            each.answered(asked)
        call.flattener.extend(backward=True, inner=call.inner)

    def finish(self) -> None:
        """The step is over: adds facts that are known only now to the flat ops."""
        self.symbols.finish(self.flattener(self.root), self.calls)
        link_snapshots(self)

    def forget(self) -> None:
        """All is measured. Lets the tensors of the step go, which others refer to until Python looks for garbage."""
        self.symbols.forget()
        self.calls, self.applied, self._clips = [], [], CalledClips(self.symbols)

    def scaled(self, loss: Any, result: Any) -> None:
        """An optimizer has multiplied a loss by a scale before it is differentiated."""
        self._has_scaled = self._has_scaled or result is not loss
        if result is not loss and self.knows(result):
            symbol = self.symbols.symbol(result)
            if symbol.op.type == "Mul":
                self._scales.add(symbol, self.symbols.actual(symbol.op.inputs[1]))
                self._unscaled[id(result)] = (result, loss)

    @property
    def unscaled(self) -> bool:
        """Whether an optimizer has divided gradients by a loss scale by which no loss was multiplied."""
        return self._has_divided and not self._has_scaled

    def applying(self, apply: Callable[[], Any], optimizer: Any, given: Sequence[Any], *, divides: bool) -> Any:
        """Runs an optimizer's update, whose ops do not belong to the forward graph.

        Args:
            apply: Runs it.
            optimizer: The optimizer.
            given: Its arguments.
            divides: Whether it first divides the gradients by a loss scale.
        """
        if self._scope.barriers is not None:
            return None  # only measured: what the optimizer would make of invented zeros is nothing to see
        self._has_divided = self._has_divided or divides
        graph, known, earlier = self.symbols.graph_now(), 0, len(self.applied)
        with self._own_work():
            self.flattener(graph).extend()
            known = len(graph.get_operations())
            # An optimizer may call another one, in a branch that only the first knows.
            if graph is self.root and not self._is_applying and not is_replica():
                frames = frames_of(tf_stack.extract_stack())
                for applied in applied_by(optimizer, given):
                    applied.frames = frames
                    if all(self._is_here(each.gradient) for each in applied.given):
                        for each in applied.given:
                            each.clips = self._clips.behind(each.gradient)
                        self.applied.append(self._seen_apart(applied))
                        if not self.symbols.only_observes:
                            applied.read()
        outer, self._is_applying = self._is_applying, True
        try:
            with self.symbols.passing():
                result = apply()
        finally:
            self._is_applying = outer
        with self._own_work():
            self.flattener(graph).extend(backward=True)
            own = {each.name for each in graph.get_operations()[known:]}
            self.flattener(graph).of_optimizers.update(own)
            if self.symbols.only_observes and not outer:
                for applied in self.applied[earlier:]:
                    applied.rate = rate_in_step(applied.rate, graph, own)
        return result

    def clipped(self, by: str, limit: Any, given: Any, result: Any) -> None:
        """A function has clipped tensors: gradients, if any were requested before. An optimizer clips by its own."""
        if self.calls and not self._is_applying and not is_replica() and self.symbols.graph_now() is self.root:
            with self._own_work():
                self._clips.note(by, limit, given, result, frames_of(tf_stack.extract_stack()))

    def rated(self, optimizer: Any, rate: Any) -> None:
        """An optimizer of Keras 3 uses a learning rate."""
        for applied in self.applied:
            if applied.by is optimizer and applied.rate is None and (isinstance(rate, float) or self.knows(rate)):
                with self._own_work(), record.stop_recording():
                    applied.rate = rate if self.symbols.only_observes else as_number(rate)

    def _is_here(self, gradient: Any) -> bool:
        """Whether it can be measured in the step itself. A function inside an eager step applies gradients
        itself."""
        parts = tf.nest.flatten(gradient, expand_composites=True)
        return all(
            self.knows(each) or isinstance(each, tf.__internal__.EagerTensor) for each in parts if tf.is_tensor(each)
        )

    def _seen_apart(self, applied: Applied) -> Applied:
        """The same, with gradients that may be measured without a change of how the optimizer rounds."""
        for each in applied.given:
            each.gradient = self.apart(each.gradient)
        return applied

    def apart(self, gradient: Any) -> Any:
        """The same gradient, as it may be measured without a change of how what needs it rounds."""
        if not self._scope.exact or not isinstance(gradient, tf.Tensor):
            return gradient
        known = self._apart.get(id(gradient))
        return apart(gradient) if known is None else known

    def moved(self, known: int) -> list[Moved]:
        """The variables that were updated exactly once, of the first `known`."""
        found: dict[int, list[Moved]] = {}
        for number, applied in enumerate(self.applied):
            for each in applied.given:
                index = self.variables.index_of(each.variable)
                if index < known and is_floating(self.variables[index]) and has_one_shape(self.variables[index]):
                    found.setdefault(index, []).append(Moved(index, number, applied, each))
        return [listed[0] for _, listed in sorted(found.items()) if len(listed) == 1]

    def entered(self, layer: Any, scope: str) -> None:
        """A layer has opened its name scope."""
        self.variables.meet(layer)
        for dropped in self._dropped:
            if dropped.by is layer:
                dropped.scope = scope  # the last one is that of the call, after that in which it is built
        if scope not in self.layers:
            self.layers[scope] = Layer(scope, str(layer.name), type(layer).__name__)
            frames = frames_of(tf_stack.extract_stack())
            while frames and frames[-1].file.startswith(PACKAGE):
                frames.pop()
            self.called[scope] = frames

    def given(self, layer: Any, value: Any) -> None:
        """A Keras 3 layer is about to be called with a value."""
        with self._own_work():
            dropped = dropped_by(layer, value)
            if dropped is not None:
                self._dropped.append(dropped)
            masked = {id(each.given) for each in self._masked}
            self._taken |= masked.intersection(map(id, tf.nest.flatten(value)))

    def returned(self, layer: Any, outputs: Any) -> None:
        """A Keras 3 layer has attached a mask to its output."""
        with self._own_work():
            self._masked += made_with_mask(layer, outputs)

    @contextlib.contextmanager
    def _faults_kept(self) -> Iterator[None]:
        """Keeps errors in here away from the user's step, which is traced to its end. If its tracing were aborted, it
        would have created variables that nothing initializes, and could not run any more.
        """
        try:
            yield
        except faults() as error:
            self.fail(error)

    @contextlib.contextmanager
    def _own_work(self) -> Iterator[None]:
        """The same, for work that does not belong to the step."""
        with self._faults_kept(), self.symbols.own_work():
            yield

    def flattener(self, graph: Any) -> Flattener:
        """The flat ops of one of the step's graphs."""
        # The graph is kept with it: an id names an object only while that lives.
        if id(graph) not in self._flatteners:
            self._flatteners[id(graph)] = (graph, Flattener(graph, self.variables.of_handle, self.symbols.known))
        return self._flatteners[id(graph)][1]

    def _prepare(
        self, tape: Any, target: Any, sources: Any, rest: Sequence[Any], *, is_inner: bool
    ) -> tuple[Request, dict[Ref, Any]]:
        flat = self._differentiated(target)
        watched = frozenset(self.variables.index_of(variable) for variable in tape.watched_variables())
        for source in flat_sources(sources):
            self.variables.index_of_source(source)
        self.variables.find_names()
        flattener = self.flattener(self.symbols.symbol(flat[0]).graph if flat else self.symbols.graph_now())
        flattener.extend()
        refs = tuple(ref for tensor in flat if (ref := flattener.ref(self.symbols.symbol(tensor))) is not None)
        unseen = self._scope.exact and is_recorded(tape)
        scale = self._scale_of(target)
        with record.stop_recording(), self.symbols.beside(flat):
            loss = tf.constant(float("nan")) if unseen else self._total(flat, scale)
        zero = len(rest) > 1 and rest[1] in (tf.UnconnectedGradients.ZERO, tf.UnconnectedGradients.ZERO.value)
        call = Call(
            flattener,
            refs,
            loss,
            # As for the stacks of ops: lines that AutoGraph has converted are the user's lines.
            frames_of(tf_stack.extract_stack()),
            unconnected="zero" if zero else "none",
            watched=watched,
            scaled=scale is not None,
            measured=not unseen and any(tensor.dtype.is_floating for tensor in flat),
            automatic=getattr(tape, "_watch_accessed_variables", None),
            inner=is_inner,
            weighted=any(each is not None for each in tf.nest.flatten(rest[:1])),
            sources=len(flat_sources(sources)),
            of_variable=any(map(is_variable, tf.nest.flatten(target))),
            rows=self.symbols.block(),
        )
        self.calls.append(call)
        self._meet_tensors(call, sources)
        request = Request(call, target, sources, scale, self.symbols, self.variables, self.layers, self.rows)
        return request, {} if unseen else self._on_the_way(request, tape)

    def _differentiated(self, target: Any) -> list[Any]:
        """The tensors that are differentiated. A variable stands for its current value: a tape does not record how it
        was computed."""
        listed = tf.nest.flatten(target)
        with record.stop_recording():
            read = [self.symbols.read(each) if is_variable(each) else each for each in listed]
        return [each for each in read if isinstance(each, tf.Tensor)]

    def _on_the_way(self, request: Request, tape: Any) -> dict[Ref, Any]:
        """The tensors between the sources and the target that the tape may have seen."""
        if self._scope.tensors == "variables":
            return {}
        call, ops = request.call, request.call.flattener.ops
        users, needed = consumers(ops), needed_for(ops, [ref.op for ref in call.targets])
        between = influenced_by(ops, users, request.starts()) & needed
        chosen = last_of_scopes(ops, self.layers, between) if self._scope.tensors == "layers" else between
        chosen = chosen - {reads[0] for reads in plain_reads(ops).values() if len(reads) == 1}
        wanted = {
            Ref(index, number): actual
            for index in sorted(chosen)
            if not ops[index].nested and ops[index].writes is None
            for number, tensor in enumerate(ops[index].tensors)
            if is_differentiable_dtype(tensor) and tensor.dtype not in (tf.resource, tf.variant)
            if (actual := self.symbols.actual(tensor)) is not None
        }
        masked = self._refs_of_dropped(call, wanted)
        call.aliases = {
            ref: other
            for ref, other in aliases(ops, users, needed).items()
            if {ref, other} <= wanted.keys() and ref not in masked
        }
        extra = {ref: tensor for ref, tensor in wanted.items() if ref not in call.aliases}
        is_asked = dict(zip(extra, self.symbols.asked_for(tape, list(extra.values())), strict=True))
        call.tensors.update((ref, Answer("none", None)) for ref in extra if not is_asked[ref])
        return {ref: tensor for ref, tensor in extra.items() if is_asked[ref]}

    def _keep(self, request: Request, asked: Any, extra: dict[Ref, Any], on_the_way: Sequence[Any]) -> None:
        call, sources = request.call, request.sources
        for source, gradient in zip(flat_sources(sources), flat_answers(asked, sources), strict=True):
            index = self.variables.index_of_source(source)
            if index is not None:
                call.variables[index] = _answer(call, self._arrived(call, index, source, gradient))
                self._note_given(call, index, gradient)
        needed, seen = Needed(flat_gradients(asked), on_the_way), {}
        for (ref, _), gradient in zip(extra.items(), on_the_way, strict=True):
            if gradient is not None and self._scope.exact and may_be_merged(gradient, needed):
                gradient = seen_apart(gradient, needed)
                if gradient is None:
                    continue
            if gradient is not None or not self._scope.barriers:
                call.tensors[ref] = _answer(call, gradient)
            seen[ref] = gradient
        if self.keeps_gradients and call.flattener.graph is self.symbols.graph_now() is self.root:
            call.gradients = {ref: gradient for ref, gradient in seen.items() if isinstance(gradient, tf.Tensor)}
        for dropped, ref, gradient in self._at_padding(call, seen):
            call.padded.append((dropped, ref, call.rows.measure(gradient)))
        # The other one comes later in the graph, and may itself be represented by a third.
        for ref in sorted(call.aliases, key=lambda ref: -ref.op):
            if call.aliases[ref] in call.tensors:
                call.tensors[ref] = call.tensors[call.aliases[ref]]
        call.tensors.update(only_reads(call.flattener.ops, call.variables))
        self._stack(request)

    def _checked(self, request: Request, asked: Any) -> Checked | None:
        if self.symbols.graph_now() is not request.call.flattener.graph:
            return None  # taken in a branch, whose graph does not have the loss
        listed = tf.nest.flatten(request.target, expand_composites=True)
        targets = [each for each in listed if self.knows(each) and each.dtype.is_floating]
        known = [self._unscaled[id(each)][1] for each in targets if id(each) in self._unscaled]
        answers = [each.flat_values if isinstance(each, tf.RaggedTensor) else each for each in flat_gradients(asked)]
        return Checked(targets, [each for each in answers if tf.is_tensor(each)], request.scale, known)

    def _stack(self, request: Request) -> None:
        """The statistics and the loss of a request, for which there are no more rows to come."""
        call = request.call
        call.rows.stack(request.scale)
        # Gradients that are taken while this one is computed, to recompute a block, have kept theirs before it.
        self.rows.append(call.rows)

    def _at_padding(self, call: Call, seen: dict[Ref, Any]) -> Iterator[tuple[Dropped, Ref, Any]]:
        """For each dropped mask, the gradient at the masked steps."""
        ops = call.flattener.ops
        for dropped in self._losing():
            ref = self._ref_of_dropped(call, dropped)
            gradient = at_padding(dropped, seen, ref, lambda op: ops[op].name)
            if gradient is not None:
                yield dropped, ref or Ref(-1, 0), gradient

    def _losing(self) -> list[Dropped]:
        """The places where a mask is dropped. A tensor that two layers return counts once."""
        unused = {id(each.given): each for each in self._masked if id(each.given) not in self._taken}
        return [*self._dropped, *unused.values()]

    def _refs_of_dropped(self, call: Call, wanted: Collection[Ref]) -> set[Ref | None]:
        """The tensors whose gradient may show that padding trains: the inputs and outputs of such layers. Each is
        measured step by step, so no tensor of another shape can represent it."""
        ops, scopes = call.flattener.ops, tuple(f"{each.scope}/" for each in self._dropped if each.scope)
        given = {self._ref_of_dropped(call, dropped) for dropped in self._losing()}
        return given | {ref for ref in wanted if ops[ref.op].name.startswith(scopes)}

    def _ref_of_dropped(self, call: Call, dropped: Dropped) -> Ref | None:
        return call.flattener.ref(self.symbols.symbol(dropped.given)) if self.symbols.knows(dropped.given) else None

    def _note_given(self, call: Call, index: int, gradient: Any) -> None:
        values = elements_of(gradient)
        if isinstance(values, tf.Tensor) and self.symbols.knows(values):
            call.given[index] = self.symbols.symbol(values)
            if isinstance(gradient, tf.IndexedSlices):
                call.indices[index] = self.symbols.symbol(gradient.indices)

    def _arrived(self, call: Call, index: int, source: Any, gradient: Any) -> Any:
        """A source's gradient, to be measured; None if there is none, or if a tensor got zeros instead."""
        if isinstance(gradient, (int, float)):
            # A custom gradient may return a Python number, which the tape returns as it is.
            gradient = tf.convert_to_tensor(gradient, source.dtype)
        is_made = isinstance(self.variables[index].variable, MadeTensor)
        if is_made and not is_answer(gradient, source, zeros_for_none=call.unconnected == "zero"):
            return None
        if not self._scope.exact or gradient is None:
            return gradient
        self._apart[id(gradient)] = apart(gradient)
        return self._apart[id(gradient)]

    def _meet_tensors(self, call: Call, sources: Any) -> None:
        """Tensors for which the user requests a gradient are sources like variables."""
        flattener = call.flattener

        def is_known(source: Any) -> bool:
            return self.variables.index_of_source(source) is not None

        def ref_of(source: Any) -> Ref | None:
            return self._ref_of(flattener, source)

        for source in flat_sources(sources):
            index = self.variables.index_of_source(source) if isinstance(source, tf.Tensor) else None
            ref = ref_of(source) if index is not None else None
            if index is not None and ref is not None and flattener.ops[ref.op].reads is None:
                flattener.read_at(ref, index)
        for each in requested_tensors(sources, is_known, ref_of, flattener.ops, call.frames):
            index = self.variables.add_made(each.tensor, each.name, each.rebound)
            if each.ref is not None:
                flattener.read_at(each.ref, index)

    def _ref_of(self, flattener: Flattener, source: Any) -> Ref | None:
        """The flat op that computed a tensor, or represents an argument or captured tensor of the step; `None` if no op
        of the graph uses it."""
        symbol = self.symbols.symbol(source) if self.symbols.knows(source) else source
        symbol = symbol_in(flattener.graph, symbol)
        if symbol is None:
            return None
        return flattener.ref(symbol) or flattener.taken(symbol)

    def _total(self, targets: Sequence[Any], scale: Any) -> Any:
        """float32 scalar: the sum of the differentiated values, as the tape computes it. For a scaled loss it is the
        loss itself, which is finite where its product with the scale is not."""
        if len(targets) == 1 and id(targets[0]) in self._unscaled:
            targets, scale = [self._unscaled[id(targets[0])][1]], None
        return total([self.symbols.value_of(target) for target in targets if target.dtype.is_floating], scale)

    def _scale_of(self, target: Any) -> Any:
        """The factor by which an optimizer has multiplied the target; `None` if it has not."""
        known = (each for each in tf.nest.flatten(target) if self.knows(each))
        return self._scales.behind(map(self.symbols.symbol, known))


def _answer(call: Call, gradient: Any) -> Answer:
    if gradient is None:
        return Answer("none", None)
    return Answer("value", call.rows.measure(gradient))


def _filled(gradients: Any, sources: Any) -> Any:
    """Gradients with zeros in place of missing ones."""
    flat = zip(flat_gradients(gradients), tf.nest.flatten(sources), strict=True)
    return tf.nest.pack_sequence_as(sources, [tf.zeros_like(source) if each is None else each for each, source in flat])
