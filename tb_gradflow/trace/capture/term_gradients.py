"""The gradient of each term of the differentiated value, if that is a sum."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Set
from typing import Any

import tensorflow as tf

from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.record.schema import Layer
from tb_gradflow.trace.capture.instruments import Ask, Instrument, Request
from tb_gradflow.trace.graph.flat_ops import Ref, consumers
from tb_gradflow.trace.graph.gradient_call import UNMEASURED, TermAnswers
from tb_gradflow.trace.graph.reach import influenced_by, last_of_scopes
from tb_gradflow.trace.graph.variables import is_replica
from tb_gradflow.trace.protection.foreign import faults
from tb_gradflow.trace.terms.inside_calls import Calls
from tb_gradflow.trace.terms.measured import measure
from tb_gradflow.trace.terms.named import terms_of
from tb_gradflow.trace.terms.summands import Ground, summands_of
from tb_gradflow.trace.tf_internals.kept_tapes import Asked, request_noted, tapes_kept
from tb_gradflow.trace.tf_internals.tapes import flat_sources

_OF_REPLICAS = "The gradient of each term of the loss is not measured where a step runs on several replicas."


class TermGradients(Instrument):
    """Measures the gradient of each term, unless the gradient of their sum is an inner one.

    Args:
        exact: Whether the step must round exactly as without this measurement: see `fusion`.
    """

    def __init__(self, *, exact: bool) -> None:
        self._exact = exact
        self._request: Request
        self._noted = Asked()

    def recording(self) -> contextlib.AbstractContextManager[None]:
        return tapes_kept()

    def asking(self, request: Request, ask: Ask) -> Ask:
        self._request, self._noted = request, Asked()

        def asking(*args: Any) -> Any:
            with request_noted() as self._noted:
                return ask(*args)

        return asking

    def failed(self) -> None:
        self._noted = Asked()

    def answered(self, asked: Any) -> None:
        call = self._request.call
        noted, self._noted = self._noted, Asked()  # nothing keeps the tape
        if not noted.is_known or call.inner or not call.measured:
            return
        try:
            self._measure(noted)
        except faults() as error:  # only the terms are lost, and nothing else of the step
            call.rows.drop_waiting()
            call.terms = TermAnswers(problem=f"{UNMEASURED} {type(error).__name__}: {error}")

    def _measure(self, noted: Asked) -> None:
        request, call, symbols = self._request, self._request.call, self._request.symbols
        targets = tf.nest.flatten(request.target)
        flat = [each for each in targets if isinstance(each, tf.Tensor) and symbols.knows(each)]
        if len(flat) != len(targets):
            return
        given = noted.output_gradients or [None] * len(flat)
        weights = [tf.ones_like(each) if weight is None else weight for each, weight in zip(flat, given, strict=True)]
        whole = list(zip(map(symbols.symbol, flat), weights, strict=True))
        ops = call.flattener.ops
        moved = influenced_by(ops, consumers(ops), request.starts())
        summands = summands_of(whole, self._ground(moved))
        calls = Calls(call.flattener, moved, symbols.actual, exact=self._exact)
        if not is_replica() and call.flattener.graph is symbols.root:
            summands = calls.opened(summands)
        terms = terms_of(summands, self._layer_behind)
        if len(terms) < 2:
            call.terms = TermAnswers(problem=calls.problem)
            return
        if is_replica():
            call.terms = TermAnswers(problem=_OF_REPLICAS)
            return
        listed = flat_sources(request.sources)
        places = {request.variables.index_of_source(source): place for place, source in enumerate(listed)}
        call.terms = measure(
            terms,
            noted,
            {index: place for index, place in places.items() if index is not None},
            len(listed),
            self._outputs_of_layers(),
            symbols.actual,
            request.scale,
            call.flattener.ref,
            call.rows,
            exact=self._exact,
        )
        call.terms.problem = calls.problem
        call.rows.stack()

    def _outputs_of_layers(self) -> dict[Ref, Any]:
        """The outputs of layers, as far as the gradient of the whole loss was measured there."""
        request, call = self._request, self._request.call
        ops, layers = call.flattener.ops, request.layers
        if not layers or call.flattener.graph is not request.symbols.root:
            return {}
        between = request.between()
        # A nested layer ends inside the outer one; if its output leaves both, it is the same tensor.
        last = {number for number in last_of_scopes(ops, layers, between) if ops[number].tensors}
        refs = [Ref(number, 0) for number in sorted(last)]
        known = {ref for ref in refs if (answer := call.tensors.get(ref)) is not None and answer.row is not None}
        found = {ref: request.symbols.actual(ops[ref.op].tensors[0]) for ref in refs if ref in known}
        return {ref: tensor for ref, tensor in found.items() if tensor is not None}

    def _ground(self, moved: Set[int]) -> Ground:
        """`moved` are the flat ops that depend on the sources."""
        request, flattener = self._request, self._request.call.flattener

        def moves(tensor: Any) -> bool:
            ref = flattener.ref(tensor)
            return ref is not None and ref.op in moved

        return Ground(
            request.symbols.actual,
            moves,
            request.symbols.is_constant,
            lambda op: bool(_layer_of(op.name, request.layers)),
        )

    def _layer_behind(self, tensor: Any) -> str:
        """The layer that a tensor was computed in, or from whose output it was computed; empty if there is none."""
        flattener = self._request.call.flattener
        ops, ref = flattener.ops, flattener.ref(tensor) if tensor.graph is flattener.graph else None
        behind = walked([] if ref is None else [ref.op], lambda index: (item.ref.op for item in ops[index].inputs))
        layers = (_layer_of(ops[index].name, self._request.layers) for index in behind)
        return next(filter(None, layers), "")


def _layer_of(name: str, layers: Mapping[str, Layer]) -> str:
    """The layer in whose call an op was created; empty if there is none."""
    scope = name.rpartition("/")[0]
    while scope and scope not in layers:
        scope = scope.rpartition("/")[0]
    return layers[scope].name if scope else ""
