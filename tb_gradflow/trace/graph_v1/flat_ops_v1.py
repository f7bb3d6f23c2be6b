"""The forward graph of a `tf.compat.v1` graph as flat ops.

Here variables live in the graph, as handles or references, and branches and loops may be made of single ops: `Switch`,
`Merge`, `Enter`, `Exit`. An assigned value is read by every op that runs after the assignment.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tb_gradflow.record.schema import Passes
from tb_gradflow.trace.graph.differentiable import is_differentiable_dtype
from tb_gradflow.trace.graph.flat_ops import FlatOp, Input, Ref
from tb_gradflow.trace.graph.flatten import Flattener
from tb_gradflow.trace.graph_v1.values_v1 import is_initialiser
from tb_gradflow.trace.graph_v1.variables_v1 import MAKERS, changes_variable

_CONDITIONS = frozenset({"Switch", "RefSwitch"})
_ROUTING = frozenset(
    {"Merge", "RefMerge", "Enter", "RefEnter", "Exit", "RefExit", "NextIteration", "RefNextIteration"} | _CONDITIONS
)
_HANDS_ON_HANDLE = _ROUTING | {"Identity", "RefIdentity"}
# Only `tf.gradients` may call their gradient functions.
_ARRAYS = (
    "TensorArrayRead",
    "TensorArrayWrite",
    "TensorArrayGather",
    "TensorArrayScatter",
    "TensorArrayConcat",
    "TensorArraySplit",
)

# Ops for saving, logging and initializing a model compute no part of the loss.
_SERVICE = frozenset(
    {"SaveV2", "RestoreV2", "VarIsInitializedOp", "IsVariableInitialized", "HistogramSummary", "ScalarSummary"}
    | {"ImageSummary", "AudioSummary", "MergeSummary", "TensorSummaryV2", "Print", "PrintV2"}
)


class GraphFlattener(Flattener):
    """Flattens a whole graph at once."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._index: dict[str, int] = {}

    def extend(self, *, backward: bool = False, inner: bool = False) -> None:
        """Adds all ops of the graph. The other arguments have no meaning here: the names in the graph identify its
        gradients.
        """
        if self._done:
            return
        operations = in_order(self.graph.get_operations())
        self._flatten(self.graph, operations, self._root)
        self._done = len(operations)
        self._close_loops()

    def is_gradient(self, op: Any) -> bool:
        """Whether an op computes a gradient: `tf.gradients` works in a name scope of this name, numbered if there are
        several.
        """
        return any(part == "gradients" or part.startswith("gradients_") for part in op.name.split("/"))

    def is_inner_gradient(self, op: Any) -> bool:
        """Whether the loss depends on the gradient that an op computes."""
        return False

    def mark_tensor(self, tensor: Any, variable: int) -> None:
        """A tensor for which a gradient is requested is read where it is produced."""
        ref = self.ref(tensor) or self.taken(tensor)
        if ref is not None:
            self.read_at(ref, variable)

    def _plain(self, op: Any, frame: Any) -> None:
        if frame is self._root:
            self._index[op.name] = len(self.ops)
        super()._plain(op, frame)
        if frame is not self._root:
            return
        flat = self.ops[self._index[op.name]]
        flat.nested = op._get_control_flow_context() is not None
        flat.backward = op.type in _SERVICE or self.is_gradient(op)
        starts = flat.backward and not self.is_inner_gradient(op)
        flat.derived = starts or any(self.ops[item.ref.op].derived for item in flat.inputs)
        for item in flat.inputs:
            item.passes = item.passes or _routed(op, item.slot)
        if op.type == "Merge":
            flat.inputs.extend(self._conditions(op))
        if op.type in MAKERS:
            variable = self._variable_of(self.graph, op.outputs[0])
            if variable is not None:
                frame.handles[op.outputs[0].name] = variable

    def _conditions(self, merge: Any) -> list[Input]:
        """The condition of the branches that meet in a `Merge`: a branch without inputs depends on it only by control
        edges.
        """
        contexts = [tensor.op._get_control_flow_context() for tensor in merge.inputs]
        chosen = {context.pred.name: context.pred for context in contexts if hasattr(context, "pred")}
        refs = [self.ref(tensor) for tensor in chosen.values()]
        return [Input(ref, len(merge.inputs), "not_differentiable") for ref in refs if ref is not None]

    def _handle(self, flat: FlatOp, index: int, op: Any, frame: Any) -> None:
        held = [frame.handles[tensor.name] for tensor in op.inputs if tensor.name in frame.handles]
        if frame is not self._root or not held:
            super()._handle(flat, index, op, frame)
            return
        variable = held[0]
        if op.type in _HANDS_ON_HANDLE and any(_is_handle(tensor) for tensor in op.outputs):
            frame.handles.update((tensor.name, variable) for tensor in op.outputs if _is_handle(tensor))
        elif changes_variable(op.type):
            if not is_initialiser(op):
                flat.writes = variable if variable >= 0 else None
        elif op.type not in _SERVICE:
            flat.reads = variable if variable >= 0 else None
            flat.inputs.extend(Input(ref, 0, "state") for ref in self._written_before(op, variable, frame))

    def _written_before(self, op: Any, variable: int, frame: Any) -> list[Ref]:
        """The assignments to a variable that have to run before `op`."""
        found: list[Ref] = []
        stack, seen = list(op.control_inputs), set()
        while stack:
            before = stack.pop()
            if before.name in seen:
                continue
            seen.add(before.name)
            ours = any(frame.handles.get(tensor.name) == variable for tensor in before.inputs)
            if ours and changes_variable(before.type):
                found.append(Ref(self._index[before.name], 0))
            elif before.type in ("NoOp", "Identity"):
                stack.extend(before.control_inputs)
        return found

    def _close_loops(self) -> None:
        """The values of a loop also come from its last iteration: that op comes after the one that uses it."""
        for flat in self.ops:
            if flat.op.type not in ("Merge", "RefMerge"):
                continue
            for slot, tensor in enumerate(flat.op.inputs):
                ref = self.ref(tensor)
                known = any(item.slot == slot for item in flat.inputs)
                if tensor.op.type.endswith("NextIteration") and ref is not None and not known:
                    flat.inputs.append(Input(ref, slot, "yes", carried=True))


def is_at_the_top(op: FlatOp) -> bool:
    """Whether the gradient of its results can be requested: those in branches and loops of TensorFlow 1 belong to
    separate frames.
    """
    return not op.nested and op.writes is None


def has_gradient(tensor: Any) -> bool:
    """Whether a tensor is of a type that `tf.gradients` has a gradient for."""
    is_value = tensor.dtype not in (tf.resource, tf.variant) and not tensor.dtype._is_ref_dtype
    return is_value and is_differentiable_dtype(tensor)


def in_order(operations: Sequence[Any]) -> list[Any]:
    """The ops in an order in which every input comes before its consumer, except for values from the previous
    iteration.
    """
    order: list[Any] = []
    state: dict[str, bool] = {}
    stack = list(reversed(operations))
    while stack:
        op = stack[-1]
        if state.get(op.name):
            stack.pop()
            continue
        if op.name in state:
            state[op.name] = True
            order.append(stack.pop())
            continue
        state[op.name] = False
        before = [
            *(tensor.op for tensor in op.inputs if not tensor.op.type.endswith("NextIteration")),
            *op.control_inputs,
        ]
        stack.extend(each for each in before if each.name not in state)
    return order


def _routed(op: Any, slot: int) -> Passes | None:
    """Which inputs of old control-flow ops, and of tensor arrays, propagate a gradient; None for all other ops."""
    kind = op.type
    if kind.startswith(_ARRAYS):
        return "yes" if is_differentiable_dtype(op.inputs[slot]) else "dtype"
    if kind not in _ROUTING:
        return None
    return "not_differentiable" if kind in _CONDITIONS and slot == 1 else "yes"


def _is_handle(tensor: Any) -> bool:
    return tensor.dtype == tf.resource or bool(tensor.dtype._is_ref_dtype)
