"""Custom gradients in an eager step: the forward pass runs as if there were none, and only the tape knows them.

In a graph `tf.custom_gradient` creates an IdentityN, which takes results and arguments and has the name of the gradient
function. The shadow graph gets the same.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any

from tensorflow.python.eager import record
from tensorflow.python.framework import op_def_library

from tb_gradflow.record.schema import Passes
from tb_gradflow.trace.eager.custom_gradient_values import EagerChecks
from tb_gradflow.trace.eager.shadow import Shadow
from tb_gradflow.trace.graph.custom_gradients import cells_of, described
from tb_gradflow.trace.graph.flat_ops import Known
from tb_gradflow.trace.graph.flatten import Flattener
from tb_gradflow.trace.tf_internals.patching import replaced

# TensorFlow's wrapper around the user's gradient function; other wrappers record calls of compiled functions.
_WRAPPER = "_eager_mode_decorator.<locals>.actual_grad_fn"


class CustomGradients:
    """The custom gradients of one eager step."""

    def __init__(self, shadow: Shadow, checks: EagerChecks | None) -> None:
        self._shadow = shadow
        self._checks = checks
        self._ops: list[tuple[Any, list[Passes]]] = []

    def watch(self, undo: contextlib.ExitStack) -> None:
        """Until `undo` is closed, custom gradients are recorded."""

        def noting(original: Callable[..., Any]) -> Callable[..., Any]:
            def record_operation(
                op_type: Any, output_tensors: Any, input_tensors: Any, backward_function: Any, *rest: Any, **named: Any
            ) -> Any:
                if getattr(backward_function, "__qualname__", "").endswith(_WRAPPER) and not self._shadow.is_paused:
                    backward_function = self._noted(output_tensors, input_tensors, backward_function)
                return original(op_type, output_tensors, input_tensors, backward_function, *rest, **named)

            return record_operation

        replaced(undo, record, "record_operation", noting)

    def tell(self, flattener: Flattener) -> None:
        """Records in the flat ops which arguments got a gradient."""
        for op, passes in self._ops:
            ref = flattener.ref(op.outputs[0])
            for item in flattener.ops[ref.op].inputs if ref is not None else ():
                item.passes = passes[item.slot]

    def _noted(self, outputs: Sequence[Any], inputs: Sequence[Any], backward: Callable[..., Any]) -> Any:
        symbols = [self._shadow.symbol(tensor) for tensor in (*outputs, *inputs)]
        op = self._shadow.make(
            "IdentityN",
            symbols,
            [symbol.dtype for symbol in symbols],
            {
                "T": op_def_library.value_to_attr_value([symbol.dtype for symbol in symbols], "list(type)", "T"),
                "_gradient_op_type": op_def_library.value_to_attr_value("CustomGradient-eager", "string", ""),
            },
            "IdentityN",
        )
        for tensor, symbol in zip(outputs, op.outputs, strict=False):
            self._shadow.keep(symbol, tensor)
        none: Passes = "none"
        passes = [none for _ in outputs] + ["yes" for _ in inputs]
        self._ops.append((op, passes))
        cells = cells_of(backward)
        variables = len(cells.get("variables", ()))
        own = described(op, cells.get("grad_fn", backward), "CustomGradient", len(outputs), variables)
        self._shadow.known[op.name] = Known("IdentityN", passes=passes, own=own)
        if own is not None and self._checks is not None:
            backward = self._checks.watched(own, backward)
            if not inputs:
                self._checks.passed_over(own)

        @functools.wraps(backward)
        def watched(*arguments: Any) -> Any:
            gradients = backward(*arguments)
            for place, gradient in enumerate(gradients):
                passes[len(outputs) + place] = "none" if gradient is None else "yes"
            return gradients

        return watched
