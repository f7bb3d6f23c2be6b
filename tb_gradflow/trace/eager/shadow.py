"""The graph of an eager step, built op by op while TensorFlow runs the ops.

Eager tensors know neither their producer nor a graph. A shadow graph is notified of each op that ran, creates the same
op in a graph that is never run, and remembers the symbol for each tensor, so that an eager step is analysed exactly
like a traced one. The ops are created while the user's call is still on the stack, so they have its traceback.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
from tensorflow.python import pywrap_tfe
from tensorflow.python.eager import context, core, record
from tensorflow.python.eager.polymorphic_function import atomic_function
from tensorflow.python.framework import constant_op, func_graph, op_callbacks, op_def_library, op_def_registry, ops

from tb_gradflow.trace.graph.flat_ops import Known
from tb_gradflow.trace.protection.foreign import faults
from tb_gradflow.trace.protection.functions import hearer_of_faults, in_step, raising
from tb_gradflow.trace.source.frames import Frame, stack_now
from tb_gradflow.trace.tf_internals.patching import replaced

# Its second input is an iterator, from which the elements of the first, a dataset, are taken afterwards.
_FILLS = "MakeIterator"

# A variable's handle must look captured, as in a traced step, even if the step itself creates the variable.
_HANDLES = frozenset({"VarHandleOp"})


@dataclass(frozen=True, slots=True)
class Arrival:
    """A tensor that no op of the step produced.

    Attributes:
        tensor: The eager tensor.
        symbol: Its symbol in the graph.
        inside: Whether it was created during the step, from a Python value.
        frames: The stack under which it was created; empty if not known.
    """

    tensor: Any
    symbol: Any
    inside: bool
    frames: Sequence[Frame]


class Shadow:
    """Ops and tensors of one eager step.

    Args:
        most: How many tensors to keep; None for all of them.
        on_full: Called if the step creates more.

    Attributes:
        graph: The graph of the ops that ran while `listening`.
        known: Facts about an op that the graph does not contain, by op name.
        arrivals: The tensors from outside, in the order of their first use.
        is_full: Whether the step has run more ops than `most`: the rest is not recorded, and nothing is kept.
    """

    def __init__(self, most: int | None = None, on_full: Callable[[], None] = lambda: None) -> None:
        self.graph = func_graph.FuncGraph("gradflow_eager")
        self.known: dict[str, Known] = {}
        self.arrivals: list[Arrival] = []
        self._symbols: dict[int, Any] = {}
        self._tensors: dict[str, Any] = {}
        self._passing: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
        self._is_passing = False
        self._functions: dict[bytes, Any] = {}
        self._made: dict[int, Sequence[Frame]] = {}
        self._began = ops.uid()
        self._paused = 0
        self._most, self._on_full = most, on_full
        self.is_full = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """While the context is open, eager ops of this thread are recorded."""
        with contextlib.ExitStack() as undo:
            # TensorFlow's fast path for running an op reads variables without an op. With the fallback, it uses ops.
            falls_back = raising(lambda: core._FallbackException(""))
            replaced(undo, pywrap_tfe, "TFE_Py_FastPathExecute", lambda original: falls_back, raises=True)
            replaced(undo, atomic_function.AtomicFunction, "call_flat", self._noting_function)
            replaced(undo, constant_op, "convert_to_eager_tensor", self._noting_place)
            listener = in_step(self._heard, None, hearer_of_faults())
            op_callbacks.add_op_callback(listener)
            undo.callback(_remove, listener, context.context().op_callbacks)
            yield

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Ops that run in this context are not part of the step."""
        self._paused += 1
        try:
            yield
        finally:
            self._paused -= 1

    @contextmanager
    def resumed(self) -> Iterator[None]:
        """Ops that run in this context are part of the step after all."""
        paused, self._paused = self._paused, 0
        try:
            yield
        finally:
            self._paused = paused

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Tensors that are computed in this context are not kept: a gradient takes as many as the loss does, and an
        optimizer several of the size of each variable."""
        outer, self._is_passing = self._is_passing, True
        try:
            yield
        finally:
            self._is_passing = outer

    @property
    def is_paused(self) -> bool:
        """Whether code other than the step's is running."""
        return self._paused > 0

    def symbol(self, tensor: Any) -> Any:
        """The symbol of an eager tensor; an unknown tensor is added as an arrival."""
        found = self._symbols.get(tensor._id)
        if found is None:
            with self.paused(), self.graph.as_default(), record.stop_recording():
                found = self.graph.capture(tensor)
            self.keep(found, tensor)
            self.arrivals.append(Arrival(tensor, found, tensor._id > self._began, self._made.get(tensor._id, ())))
        return found

    def is_inside(self, symbol: Any) -> bool:
        """Whether a tensor was created during the step, from a Python value."""
        return any(arrival.symbol is symbol and arrival.inside for arrival in self.arrivals)

    def known_symbol(self, tensor: Any) -> Any:
        """The symbol of a tensor that the step has used or produced; None for others."""
        return self._symbols.get(tensor._id)

    def actual(self, symbol: Any) -> Any:
        """The eager tensor of a symbol; None if only the shadow graph has it, or a function that the step calls, whose
        tensors have the same names."""
        return self.value(symbol.name) if getattr(symbol, "graph", None) is self.graph else None

    def value(self, name: str) -> Any:
        """The eager tensor of the symbol of this name; `None` if there is none."""
        return self._tensors.get(name, self._passing.get(name))

    def make_opaque(self, kind: str, inputs: Sequence[Any], dtypes: Sequence[Any], known: Known) -> Any:
        """An op of which only the inputs and outputs (symbols and types) are known, under the name `kind`."""
        attributes = {
            "token": op_def_library.value_to_attr_value("", "string", "token"),
            "Tin": op_def_library.value_to_attr_value([t.dtype for t in inputs], "list(type)", "Tin"),
            "Tout": op_def_library.value_to_attr_value(list(dtypes), "list(type)", "Tout"),
        }
        op = self.make("PyFunc", inputs, dtypes, attributes, kind)
        self.known[op.name] = known
        return op

    def _noting_function(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def call_flat(function: Any, *args: Any) -> Any:
            self._functions[function.name] = function
            return original(function, *args)

        return call_flat

    def _noting_place(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def convert_to_eager_tensor(*args: Any, **kwargs: Any) -> Any:
            tensor = original(*args, **kwargs)
            if not self._paused:
                self._made[tensor._id] = stack_now()
            return tensor

        return convert_to_eager_tensor

    def _heard(
        self, kind: Any, inputs: Sequence[Any], attributes: Sequence[Any], outputs: Any, name: Any = None, **more: Any
    ) -> None:
        kind = kind.decode() if isinstance(kind, bytes) else kind
        if self._paused or self.is_full:
            return
        if more.get("graph") is not None or kind in _HANDLES or not tf.executing_eagerly():
            return
        if self._most is not None and len(self._symbols) >= self._most:
            self._let_go()
            return
        with self.paused(), record.stop_recording():
            symbols = [self.symbol(tensor) for tensor in inputs]
            if kind == _FILLS:
                filled = self.make_opaque(kind, symbols, [tf.resource], Known(kind, passes="not_differentiable"))
                self.keep(filled.outputs[0], inputs[1])
                return
            made = self._same_op(kind, symbols, attributes, outputs)
            for symbol, tensor in zip(made, outputs, strict=False):
                # A kernel may return another shape than TensorFlow declares, as a batch normalisation does for values
                # that only its gradient uses.
                if symbol.shape.is_compatible_with(tensor.shape):
                    symbol.set_shape(tensor.shape)
                self.keep(symbol, tensor)

    def _let_go(self) -> None:
        """Stops recording the step when it is too large: the tensors that were kept would fill the memory."""
        self.is_full = True
        self._paused += 1
        self.forget()
        self._on_full()

    def forget(self) -> None:
        """No tensors are kept any more."""
        for kept in (self._symbols, self._tensors, self._made, self.arrivals):
            kept.clear()

    def _same_op(self, kind: str, inputs: list[Any], attributes: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
        dtypes = [tensor.dtype for tensor in outputs]
        function = self._functions.get(kind.encode())
        try:
            if function is not None:
                return self._call(function, inputs)
            return list(self.make(kind, inputs, dtypes, _attributes(kind, attributes), kind).outputs)
        # Whatever an eager op accepts and a graph op does not: the path through it must not be lost.
        except faults():
            return list(self.make_opaque(kind.strip("_"), inputs, dtypes, Known(kind, passes="unknown")).outputs)

    def make(self, kind: str, inputs: Any, dtypes: Any, attributes: dict[str, Any], name: str) -> Any:
        """An op of type `kind` with inputs in the graph, in the name scope that the step is in."""
        scope = tf.get_current_name_scope()
        with self.graph.as_default(), self.graph.name_scope(f"{scope}/" if scope else None):
            return self.graph._create_op_internal(kind, list(inputs), dtypes, name=name, attrs=attributes)

    def _call(self, function: Any, inputs: list[Any]) -> list[Any]:
        scope = tf.get_current_name_scope()
        with self.graph.as_default(), self.graph.name_scope(f"{scope}/" if scope else None):
            attributes = function._bound_context.function_call_options.as_attrs()
            return list(atomic_function.make_call_op_in_graph(function, inputs, attributes))

    def keep(self, symbol: Any, tensor: Any) -> None:
        """From now on `symbol` represents the eager tensor."""
        self._symbols[tensor._id] = symbol
        (self._passing if self._is_passing else self._tensors)[symbol.name] = tensor


def _remove(listener: Callable[..., None], listed: list[Any]) -> None:
    """Removes a callback from those of the thread that has added it, `listed`."""
    if listener in context.context().op_callbacks:
        op_callbacks.remove_op_callback(listener)
    else:  # this is another thread
        listed.remove(listener)


def _attributes(kind: str, listed: Sequence[Any]) -> dict[str, Any]:
    """The attributes of an eager op, `(name, value, name, value, …)`, as a graph takes them."""
    types = {each.name: each.type for each in op_def_registry.get(kind).attr}
    found = {}
    for name, value in zip(listed[::2], listed[1::2], strict=True):
        name = name.decode() if isinstance(name, bytes) else name
        if name in types:
            found[name] = op_def_library.value_to_attr_value(value, types[name], name)
    return found
