"""Collects from one trace of a training step which gradients were requested, and what the tape returned.

A collector lives as long as one compilation of the instrumented step. `patches` calls it whenever the user's step
requests a gradient, scales a loss or applies gradients. It adds the tensors on the path to the sources, keeps the
statistics of the results as symbolic tensors, and returns exactly what the caller requested.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Literal

import tensorflow as tf
from tensorflow.python.eager import record
from tensorflow.python.util import tf_stack

from tb_gradflow.record.schema import Layer, Outcome
from tb_gradflow.trace.capture.aliases import aliases, only_reads, plain_reads
from tb_gradflow.trace.capture.optimizer_updates import Applied, Given, applied_by
from tb_gradflow.trace.capture.requested_tensors import is_answer, requested_tensors
from tb_gradflow.trace.capture.symbols import Symbols
from tb_gradflow.trace.graph.differentiable import is_differentiable_dtype
from tb_gradflow.trace.graph.dropped_masks import Dropped, at_padding, dropped_by
from tb_gradflow.trace.graph.flat_ops import Known, Ref, consumers
from tb_gradflow.trace.graph.flatten import Flattener, results_around, symbol_in
from tb_gradflow.trace.graph.gradient_call import Answer, Call
from tb_gradflow.trace.graph.reach import influenced_by, last_of_scopes, needed_for
from tb_gradflow.trace.graph.term_answers import TermAnswers
from tb_gradflow.trace.graph.variables import (
    MadeTensor,
    Variables,
    is_floating,
    is_replica,
    is_variable,
    local,
    raw_variable,
)
from tb_gradflow.trace.numerics.fusion import Needed, apart, is_constant, may_be_merged, recomputed, seen_apart
from tb_gradflow.trace.numerics.loss_scale import ScaledLosses, total, unscaled
from tb_gradflow.trace.numerics.statistics import gradient_statistics
from tb_gradflow.trace.source.frames import frames_of
from tb_gradflow.trace.terms.measured import measure
from tb_gradflow.trace.terms.named import terms_of
from tb_gradflow.trace.terms.summands import Ground, summands_of
from tb_gradflow.trace.tf_internals.kept_tapes import Asked, request_noted, tapes_kept
from tb_gradflow.trace.tf_internals.resource_cells import Sink
from tb_gradflow.trace.tf_internals.tapes import (
    flat_answers,
    flat_gradients,
    flat_sources,
    is_recorded,
    is_watched_by_another,
)

Tensors = Literal["all", "layers", "variables"]


class Collector(Symbols):
    """Collects the gradient calls of one traced step.

    Args:
        variables: The model's variables; others that the step reads are added.
        tensors: For which tensors on the path to request gradients: all, layers' outputs, or only variables.
        exact: Whether to leave out the tensors whose measurement could change how the step rounds.
        barriers: The names of flat ops through which no gradient is taken because that raises, in a step that is only
            measured: it gets zeros instead of missing gradients, so that it can finish. `None` for the user's unchanged
            step.
        terms: Whether to take the gradient of each term of a loss as well.

    Attributes:
        calls: In order.
        layers: By name scope.
        root: The graph that the step is traced into.
        row_count: How many rows of statistics the answers have so far.
        known: By op name, what the step's graph does not say of its ops.
        leaves_out_xla: See `Listener`.
        fault: An exception that the collector itself caused; None if there is none.
        applied: What optimizers were given, in order.
        keeps_gradients: Whether the gradients of tensors on the way are kept until the step is over.
    """

    def __init__(
        self,
        variables: Variables,
        tensors: Tensors = "all",
        *,
        exact: bool = True,
        barriers: Collection[str] | None = None,
        terms: bool = False,
    ) -> None:
        self.variables = variables
        self.calls: list[Call] = []
        self.root = tf.compat.v1.get_default_graph()
        self.row_count = 0
        self.layers: dict[str, Layer] = {}
        self.fault: Exception | None = None
        self.known: Mapping[str, Known] = {}
        self.keeps_gradients = False
        self._tensors = tensors
        self._exact = exact
        self._barriers = barriers
        self._measures_terms = terms and barriers is None
        self.leaves_out_xla = barriers is not None
        self.applied: list[Applied] = []
        self._dropped: list[Dropped] = []
        self._is_applying = False
        self._apart: dict[int, Any] = {}
        self._flatteners: dict[int, tuple[Any, Flattener]] = {}
        self._scales = ScaledLosses()
        self._has_scaled = self._has_divided = False

    def gradient(self, original: Callable[..., Any], tape: Any, target: Any, sources: Any, *rest: Any) -> Any:
        """Stands in for `tape.gradient(target, sources, output_gradients, unconnected_gradients)`."""
        prepared: list[tuple[Call, dict[Ref, Any]]] = []
        with self._own_work():
            prepared.append(self._prepare(tape, target, sources, rest))
        if not prepared:
            return original(tape, target, sources, *rest)
        [(call, extra)] = prepared
        try:
            with request_noted() if self._measures_terms else contextlib.nullcontext(Asked()) as noted:
                asked, on_the_way = original(tape, target, [sources, list(extra.values())], *rest)
        except Exception:
            with self._own_work():
                self._answer_all(call, sources, "error")
            raise
        with self._own_work(), record.stop_recording():
            self._keep(call, sources, asked, extra, on_the_way, self._scale_of(target))
            if noted.is_known and not call.inner and call.measured:
                try:
                    self._keep_terms(call, target, sources, noted)
                except Exception as error:  # it costs the terms, and nothing else of what the step shows
                    call.terms = TermAnswers(problem=f"{_UNMEASURED} {type(error).__name__}: {error}")
            call.statistics = self._brought_home(call.statistics)
            call.flattener.extend(backward=True, inner=call.inner)
        return asked if self._barriers is None else _filled(asked, sources)

    def jacobian(
        self, original: Callable[[], tuple[Any, Sequence[bool]]], tape: Any, target: Any, sources: Any, *rest: Any
    ) -> Any:
        """Stands in for `tape.jacobian(target, sources, unconnected_gradients)` and its like, which `original` calls;
        it returns the answer, and for each source whether it is more than zeros in the place of a missing one. What
        they answer is measured whole, and nothing is requested besides."""
        prepared: list[Call] = []
        if self._barriers is None:
            with self._own_work():
                prepared.append(self._prepare(tape, target, sources, (None, *rest))[0])
        try:
            asked, arrived = original()
        except Exception:
            with self._own_work():
                for call in prepared:
                    self._answer_all(call, sources, "error")
            raise
        with self._own_work(), record.stop_recording():
            for call in prepared:
                call.aliases = {}
                answers = zip(flat_gradients(asked), arrived, strict=True)
                known = [answer if is_there else None for answer, is_there in answers]
                self._keep(call, sources, tf.nest.pack_sequence_as(sources, known), {}, (), None)
                call.statistics = self._brought_home(call.statistics)
                call.flattener.extend(backward=True, inner=call.inner)
        return asked

    def stopping_at_barriers(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """What takes the gradient, which goes no further back than the results of the ops that are barriers.

        A tape cannot be told so; `tf.gradients` can.
        """

        def gradient(tape: Any, target: Any, sources: Any, grad_ys: Any = None, unconnected: Any = "none") -> Any:
            graph = self.calls[-1].flattener.graph
            ends = {tensor.name: tensor for name in self._barriers or () for tensor in results_around(graph, name)}
            found = tf.gradients(
                tf.nest.flatten(target),
                [raw_variable(source) for source in tf.nest.flatten(sources)],
                None if grad_ys is None else tf.nest.flatten(grad_ys),
                stop_gradients=[tensor for tensor in ends.values() if is_differentiable_dtype(tensor)],
                unconnected_gradients=unconnected,
            )
            return tf.nest.pack_sequence_as(sources, found)

        return gradient if self._barriers else original

    def forget_uncalled(self) -> None:
        """Called when the step is over: gradients in functions that it does not call do not belong to it."""
        kept, rows = [], 0
        for call in sorted(self.calls, key=lambda call: call.first_row):
            count = 0 if call.statistics is None else int(call.statistics.shape[0])
            if not isinstance(call.statistics, Sink) or call.statistics.is_passed_on:
                call.renumber(rows)
                kept.append(call)
                rows += count
        self.calls = [call for call in self.calls if any(call is each for each in kept)]
        self.row_count = rows

    def own_ops(self) -> None:
        """All that the step's graph has gained was made by the recorder, not by the user's step."""
        self.flattener(self.root).extend(backward=True)

    def scaled(self, loss: Any, result: Any) -> None:
        """An optimizer has multiplied a loss with a scale before it is differentiated."""
        self._has_scaled = self._has_scaled or result is not loss
        if result is not loss and self.knows(result):
            symbol = self.symbol(result)
            if symbol.op.type == "Mul":
                self._scales.add(symbol, self.actual(symbol.op.inputs[1]))

    @property
    def unscaled(self) -> bool:
        """Whether an optimizer has divided gradients by a loss scale with which none has multiplied a loss."""
        return self._has_divided and not self._has_scaled

    def applying(self, apply: Callable[[], Any], optimizer: Any, given: Sequence[Any], *, divides: bool) -> Any:
        """Runs an optimizer's update, whose ops are no part of the forward graph.

        Args:
            apply: Runs it.
            optimizer: The optimizer.
            given: Its arguments.
            divides: Whether it divides the gradients by a scale of the loss before.
        """
        if self._barriers is not None:
            return None  # only measured: the effect of invented zeros on the optimizer is meaningless
        self._has_divided = self._has_divided or divides
        graph = self.graph_now()
        with self._own_work():
            self.flattener(graph).extend()
            # One optimizer may hand over to another one, in a branch that only this one knows.
            if graph is self.root and not self._is_applying and not is_replica():
                applied = self._seen_apart(applied_by(optimizer, given))
                applied.frames = frames_of(tf_stack.extract_stack())
                self.applied.append(applied)
        outer, self._is_applying = self._is_applying, True
        try:
            result = apply()
        finally:
            self._is_applying = outer
        with self._own_work():
            self.flattener(graph).extend(backward=True)
        return result

    def _seen_apart(self, applied: Applied) -> Applied:
        """The same, with gradients that may be measured without a change of how the optimizer rounds."""
        for each in applied.given:
            if self._exact and isinstance(each.gradient, tf.Tensor):
                known = self._apart.get(id(each.gradient))
                each.gradient = apart(each.gradient) if known is None else known
        return applied

    def moving(self, known: int) -> list[tuple[int, int, Given]]:
        """For each variable that was seen to be updated once, and is one of the first so many: its index, that of the
        update, and what the optimizer was given for it."""
        found: dict[int, list[tuple[int, int, Given]]] = {}
        for number, applied in enumerate(self.applied):
            for each in applied.given:
                index = self.variables.index_of(each.variable)
                if index < known and is_floating(self.variables[index]):
                    found.setdefault(index, []).append((index, number, each))
        return [listed[0] for _, listed in sorted(found.items()) if len(listed) == 1]

    def entered(self, layer: Any, scope: str) -> None:
        """A layer has opened its name scope."""
        self.variables.meet(layer)
        for dropped in self._dropped:
            if dropped.by is layer:
                dropped.scope = scope  # the last one is that of the call, after that in which it is built
        self.layers.setdefault(scope, Layer(scope, str(layer.name), type(layer).__name__))

    def given(self, layer: Any, value: Any) -> None:
        """A layer of Keras 3 is about to work on a value."""
        with self._own_work():
            dropped = dropped_by(layer, value)
            if dropped is not None:
                self._dropped.append(dropped)

    @contextlib.contextmanager
    def _own_work(self) -> Iterator[None]:
        """Keeps errors in here away from the user's step, which is traced completely.

        A step whose tracing is aborted has created variables that nothing initializes, and cannot run any more.
        """
        try:
            yield
        except Exception as error:
            self.fault = self.fault or error

    def flattener(self, graph: Any) -> Flattener:
        """The flat ops of one of the step's graphs."""
        # The graph is kept with it: an id names an object only while that lives.
        if id(graph) not in self._flatteners:
            self._flatteners[id(graph)] = (graph, Flattener(graph, self.variables.of_handle, self.known))
        return self._flatteners[id(graph)][1]

    def _prepare(self, tape: Any, target: Any, sources: Any, rest: Sequence[Any]) -> tuple[Call, dict[Ref, Any]]:
        flat = self._differentiated(target)
        watched = frozenset(self.variables.index_of(variable) for variable in tape.watched_variables())
        for source in flat_sources(sources):
            self.variables.index_of_source(source)
        flattener = self.flattener(self.symbol(flat[0]).graph if flat else self.graph_now())
        flattener.extend()
        refs = tuple(ref for tensor in flat if (ref := flattener.ref(self.symbol(tensor))) is not None)
        unseen = self._exact and is_recorded(tape)
        with record.stop_recording():
            loss = tf.constant(float("nan")) if unseen else self._total(flat, self._scale_of(target))
        # Like the stacks of ops: lines that AutoGraph has converted are the user's own.
        frames = frames_of(tf_stack.extract_stack())
        zero = len(rest) > 1 and rest[1] in (tf.UnconnectedGradients.ZERO, tf.UnconnectedGradients.ZERO.value)
        scaled = self._scale_of(target) is not None
        measured = not unseen and any(tensor.dtype.is_floating for tensor in flat)
        automatic = getattr(tape, "_watch_accessed_variables", None)
        unconnected: Literal["none", "zero"] = "zero" if zero else "none"
        inner = self._is_inner(tape)
        count, of_variable = len(flat_sources(sources)), any(map(is_variable, tf.nest.flatten(target)))
        call = Call(
            flattener, refs, loss, frames, unconnected, watched, scaled, measured, automatic, inner, count, of_variable
        )
        self.calls.append(call)
        self._meet_tensors(call, sources)
        return call, {} if unseen else self._on_the_way(call, sources)

    def _differentiated(self, target: Any) -> list[Any]:
        """The tensors that are differentiated. A variable stands for what it holds now: a tape has no record of how
        that came into it."""
        listed = tf.nest.flatten(target)
        with record.stop_recording():
            read = [self._read(each) if is_variable(each) else each for each in listed]
        return [each for each in read if isinstance(each, tf.Tensor)]

    def _read(self, variable: Any) -> Any:
        """The value of a variable, read in the step."""
        return local(variable).read_value()

    def _is_inner(self, tape: Any) -> bool:
        return is_watched_by_another(tape)

    def _on_the_way(self, call: Call, sources: Any) -> dict[Ref, Any]:
        """The tensors between the sources and the target that the tape may have seen."""
        if self._tensors == "variables":
            return {}
        ops = call.flattener.ops
        users, needed = consumers(ops), needed_for(ops, [ref.op for ref in call.targets])
        between = influenced_by(ops, users, self._starts(call, sources)) & needed
        chosen = last_of_scopes(ops, self.layers, between) if self._tensors == "layers" else between
        chosen = chosen - {reads[0] for reads in plain_reads(ops).values() if len(reads) == 1}
        wanted = {
            Ref(index, number): actual
            for index in sorted(chosen)
            if not ops[index].nested and ops[index].writes is None
            for number, tensor in enumerate(ops[index].tensors)
            if is_differentiable_dtype(tensor) and tensor.dtype not in (tf.resource, tf.variant)
            if (actual := self.actual(tensor)) is not None
        }
        masked = self._refs_of_dropped(call, wanted)
        call.aliases = {
            ref: other
            for ref, other in aliases(ops, users, needed).items()
            if {ref, other} <= wanted.keys() and ref not in masked
        }
        return {ref: tensor for ref, tensor in wanted.items() if ref not in call.aliases}

    def _starts(self, call: Call, sources: Any) -> set[int]:
        """The flat ops that read or make the sources."""
        ops = call.flattener.ops
        listed = flat_sources(sources)
        asked = {self.variables.index_of_source(source) for source in listed}
        made = (call.flattener.ref(self.symbol(source)) for source in listed if self.knows(source))
        reads = {index for index, op in enumerate(ops) if op.reads is not None and op.reads in asked}
        return reads | {ref.op for ref in made if ref is not None}

    def _keep(
        self, call: Call, sources: Any, asked: Any, extra: dict[Ref, Any], on_the_way: Sequence[Any], scale: Any
    ) -> None:
        rows: list[Any] = []
        for source, gradient in zip(flat_sources(sources), flat_answers(asked, sources), strict=True):
            index = self.variables.index_of_source(source)
            if index is not None:
                call.variables[index] = self._answer(self._arrived(call, index, source, gradient), rows)
        needed, seen = Needed(flat_gradients(asked), on_the_way), {}
        for (ref, _), gradient in zip(extra.items(), on_the_way, strict=True):
            if gradient is not None and self._exact and may_be_merged(gradient, needed):
                gradient = seen_apart(gradient, needed)
                if gradient is None:
                    continue
            if gradient is not None or not self._barriers:
                call.tensors[ref] = self._answer(gradient, rows)
            seen[ref] = gradient
        if self.keeps_gradients and call.flattener.graph is self.root:
            call.gradients = {ref: gradient for ref, gradient in seen.items() if isinstance(gradient, tf.Tensor)}
        for dropped, row in self._at_padding(call, seen):
            rows.append(row)
            call.padded.append((dropped, self.row_count + len(rows) - 1))
        for ref, row in self._inside():
            rows.append(row)
            call.tensors[ref] = Answer("value", self.row_count + len(rows) - 1)
        # The other one stands later in the graph, and may itself be known by a third.
        for ref in sorted(call.aliases, key=lambda ref: -ref.op):
            if call.aliases[ref] in call.tensors:
                call.tensors[ref] = call.tensors[call.aliases[ref]]
        call.tensors.update(only_reads(call.flattener.ops, call.variables))
        # Gradients that are taken while this one is computed, to recompute a block, have kept theirs before it.
        call.first_row = self.row_count
        call.statistics = unscaled(rows, scale)
        call.loss = self._brought_home(call.loss)
        self.row_count += len(rows)

    def _keep_terms(self, call: Call, target: Any, sources: Any, asked: Asked) -> None:
        """The gradient of each term of what was differentiated, if that is a sum, and their statistics."""
        flat = [each for each in tf.nest.flatten(target) if isinstance(each, tf.Tensor) and self.knows(each)]
        if len(flat) != len(tf.nest.flatten(target)):
            return
        given = asked.output_gradients or [None] * len(flat)
        weights = [tf.ones_like(each) if weight is None else weight for each, weight in zip(flat, given, strict=True)]
        symbols = [self.symbol(each) for each in flat]
        terms = terms_of(
            summands_of(list(zip(symbols, weights, strict=True)), self._ground(call, sources)),
            lambda tensor: self._layer_behind(call, tensor),
        )
        if len(terms) < 2:
            return
        if is_replica():
            call.terms = TermAnswers(problem=_OF_REPLICAS)
            return
        listed = flat_sources(sources)
        places = {self.variables.index_of_source(source): place for place, source in enumerate(listed)}
        call.terms, rows = measure(
            terms,
            asked,
            {index: place for index, place in places.items() if index is not None},
            len(listed),
            self.actual,
            self._scale_of(target),
            lambda tensor: call.flattener.ref(tensor),
            exact=self._exact,
        )
        call.terms.move(self.row_count)
        call.statistics = tf.concat([call.statistics, tf.stack(rows)], 0)
        self.row_count += len(rows)

    def _ground(self, call: Call, sources: Any) -> Ground:
        ops = call.flattener.ops
        moved = influenced_by(ops, consumers(ops), self._starts(call, sources))

        def moves(tensor: Any) -> bool:
            ref = call.flattener.ref(tensor)
            return ref is not None and ref.op in moved

        return Ground(self.actual, moves, self._is_constant, lambda op: bool(self._layer_of(op.name)))

    def _is_constant(self, symbol: Any) -> bool:
        """Whether a tensor is known before the step runs."""
        return is_constant(symbol.op)

    def _layer_of(self, name: str) -> str:
        """The layer whose call an op was made in; empty if there is none."""
        scope = name.rpartition("/")[0]
        while scope and scope not in self.layers:
            scope = scope.rpartition("/")[0]
        return self.layers[scope].name if scope else ""

    def _layer_behind(self, call: Call, tensor: Any) -> str:
        """The layer that a tensor was computed in, or from whose output it was computed; empty if there is none."""
        ops, ref = call.flattener.ops, call.flattener.ref(tensor)
        queue = [] if ref is None else [ref.op]
        for index in queue:  # grows during the loop
            if layer := self._layer_of(ops[index].name):
                return layer
            queue.extend(item.ref.op for item in ops[index].inputs if item.ref.op not in queue)
        return ""

    def recording(self) -> contextlib.AbstractContextManager[None]:
        """Open while the step runs."""
        return tapes_kept() if self._measures_terms else contextlib.nullcontext()

    def _at_padding(self, call: Call, seen: dict[Ref, Any]) -> Iterator[tuple[Dropped, Any]]:
        """For each layer that drops a mask, what the gradient is at the steps that the mask leaves out."""
        ops = call.flattener.ops
        for dropped in self._dropped:
            row = at_padding(dropped, seen, self._ref_of_dropped(call, dropped), lambda op: ops[op].name)
            if row is not None:
                yield dropped, row

    def _refs_of_dropped(self, call: Call, wanted: Collection[Ref]) -> set[Ref | None]:
        """The tensors whose gradient may show that padding trains: of what such layers are given, and of what they
        compute. Each is measured step by step, and no other tensor of another shape can stand in for it."""
        ops, scopes = call.flattener.ops, tuple(f"{each.scope}/" for each in self._dropped if each.scope)
        given = {self._ref_of_dropped(call, dropped) for dropped in self._dropped}
        return given | {ref for ref in wanted if ops[ref.op].name.startswith(scopes)}

    def _ref_of_dropped(self, call: Call, dropped: Dropped) -> Ref | None:
        return call.flattener.ref(self.symbol(dropped.given)) if self.knows(dropped.given) else None

    def _arrived(self, call: Call, index: int, source: Any, gradient: Any) -> Any:
        """A source's gradient, to be measured; null if there is none, or for a tensor zeros in its place."""
        is_made = isinstance(self.variables[index].variable, MadeTensor)
        if is_made and not is_answer(gradient, source, zeros_for_none=call.unconnected == "zero"):
            return None
        if not self._exact or gradient is None:
            return gradient
        self._apart[id(gradient)] = apart(gradient)
        return self._apart[id(gradient)]

    def _meet_tensors(self, call: Call, sources: Any) -> None:
        """Tensors that the user requests a gradient for are sources like variables."""
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
        """The flat op that made a tensor, or stands for one that the step was given or has captured; `None` if no op
        of the graph computes with it."""
        symbol = self.symbol(source) if self.knows(source) else source
        symbol = symbol_in(flattener.graph, symbol)
        if symbol is None:
            return None
        return flattener.ref(symbol) or flattener.taken(symbol)

    def _total(self, targets: Sequence[Any], scale: Any) -> Any:
        """float32 scalar: the sum of what is differentiated, as the tape takes it."""
        return total([recomputed(target) for target in targets if target.dtype.is_floating], scale)

    def _brought_home(self, tensor: Any) -> Any:
        """The tensor, or for one in a nested function's graph a sink that the step can read."""
        if tensor.graph is self.root:
            return tensor
        sink = Sink(tensor.shape)
        sink.write(tensor)
        return sink

    def _inside(self) -> Iterator[tuple[Ref, Any]]:
        """Where in functions that the gradient went through something has arrived, and float32 `[6]` of it."""
        return iter(())

    def _answer(self, gradient: Any, rows: list[Any]) -> Answer:
        if gradient is None:
            return Answer("none", None)
        rows.append(gradient_statistics(gradient))
        return Answer("value", self.row_count + len(rows) - 1)

    def _answer_all(self, call: Call, sources: Any, outcome: Outcome) -> None:
        for source in flat_sources(sources):
            index = self.variables.index_of_source(source)
            if index is not None:
                call.variables[index] = Answer(outcome, None)

    def _scale_of(self, target: Any) -> Any:
        return self._scales.behind(self.symbol(each) for each in tf.nest.flatten(target) if self.knows(each))


_OF_REPLICAS = "The gradients of the terms of the loss are not measured if a step runs on several replicas."
_UNMEASURED = "The gradients of the terms of the loss could not be measured. Please report this:"


def _filled(gradients: Any, sources: Any) -> Any:
    """Gradients with zeros in place of missing ones."""
    flat = zip(flat_gradients(gradients), tf.nest.flatten(sources), strict=True)
    return tf.nest.pack_sequence_as(sources, [tf.zeros_like(source) if each is None else each for each, source in flat])
