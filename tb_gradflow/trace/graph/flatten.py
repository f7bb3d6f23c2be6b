"""The forward graph of a step as one flat list of ops, functions inlined.

A nested `tf.function` disappears: it is replaced by the ops of its body, under its name. Each output of an `If` and
each loop variable of a `While` becomes a separate op, so that a path through one output of a function is not mistaken
for a path through another.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import function_def_to_graph
from tensorflow.python.ops import cond_v2, while_v2

from tb_gradflow.analyse.graph.op_sets import LOOPS
from tb_gradflow.trace.engine.definitions import BRANCHES, CALLS
from tb_gradflow.trace.graph.flat_ops import FlatOp, Input, Known, Ref, Scope, held_by, runs_functions

_WRITE_PREFIXES = ("Assign", "ResourceScatter", "ResourceApply", "ResourceSparseApply", "ResourceStridedSliceAssign")


def is_write(op_type: str) -> bool:
    """Whether ops of a type change a variable."""
    return op_type.startswith(_WRITE_PREFIXES)


def symbol_in(graph: Any, tensor: Any) -> Any:
    """The tensor of a graph that represents a tensor: itself, or the placeholder that captured it, through enclosing
    graphs; `None` if the graph does not contain it.
    """
    if tensor is None or getattr(tensor, "graph", None) is graph:
        return tensor
    around = getattr(graph, "outer_graph", None)
    known = {id(tensor)}
    if hasattr(around, "captures"):
        known.add(id(symbol_in(around, tensor)))
    return next((inner for outer, inner in getattr(graph, "captures", ()) if id(outer) in known), None)


def results_around(graph: Any, name: str) -> Sequence[Any]:
    """The results of a flat op by its name; for an op inside a function, those of the call, as far as the graph has
    it.
    """
    while name:
        try:
            return tuple(graph.get_operation_by_name(name).outputs)
        except (KeyError, ValueError):
            name = name.rpartition("/")[0]
    return ()


class Flattener:
    """Flattens a graph as it grows: each call of `extend` adds the ops created since the last call.

    `variable_of` returns the variable of a handle that the graph captured: its index, a negative number for state that
    is not listed, or None. `known` holds, by name, facts about the ops that the graph does not contain.

    Attributes:
        graph: The graph.
        ops: The flat ops.
        of_optimizers: The names of the ops of the graph that an optimizer created.
        uses: For the name of each placeholder of the graph, the flat ops that consume it, and as which input.
    """

    def __init__(
        self, graph: Any, variable_of: Callable[[Any, Any], int | None], known: Mapping[str, Known] | None = None
    ) -> None:
        self.ops: list[FlatOp] = []
        self.of_optimizers: set[str] = set()
        self.uses: dict[str, list[tuple[int, int]]] = {}
        self.graph = graph
        self._variable_of = variable_of
        self._known = known if known is not None else {}
        self._root = Scope(caller="", nested=False)
        self._names: set[str] = set()
        self._done = 0
        self._backward = self._inner = False
        self._compiled = False
        self._writes: dict[int, int] = {}
        self._updated: set[int] = set()
        self._unlisted: dict[int, tuple[Any, Any]] = {}

    def extend(self, *, backward: bool = False, inner: bool = False) -> None:
        """Adds the new ops of the graph: forward ops, or ops of a gradient's computation or application, where
        functions stay calls. The loss may depend on an `inner` gradient.
        """
        operations = self.graph.get_operations()
        self._backward, self._inner = backward, inner
        self._flatten(self.graph, operations[self._done :], self._root)
        self._done = len(operations)

    def ref(self, tensor: Any) -> Ref | None:
        """The flat op that produces a tensor of the graph; None for an input of the graph."""
        return self._root.refs.get(tensor.name)

    def uses_of(self, given: Any) -> Sequence[tuple[int, int]]:
        """The flat ops that consume an input of the graph, and as which input."""
        return self.uses.get(given.name, ())

    def results(self) -> Mapping[Ref, Any]:
        """The tensors of the graph itself by the op that produces them, including functions, branches and loops."""
        found: dict[Ref, Any] = {}
        for name, ref in self._root.refs.items():
            with contextlib.suppress(KeyError, ValueError):
                found.setdefault(ref, self.graph.get_tensor_by_name(name))
        return found

    def taken(self, given: Any) -> Ref | None:
        """A flat op that represents an input of the graph, which has no op; None if nothing consumes it."""
        uses = self.uses.pop(given.name, ())
        if not uses:
            return None
        flat = FlatOp(self._name(self._root, given.op.name), given.op.type, given.op, (given,), nested=False)
        ref = self._root.refs[given.name] = Ref(self.put_before(flat, -1), 0)
        for user, slot in uses:
            self.ops[user].inputs.append(Input(ref, slot))
        return ref

    def read_at(self, ref: Ref, variable: int) -> None:
        """Marks an output of an op as a source for which a gradient is requested, under the number of a variable.

        If the op has several outputs, only this one is the source: a separate op represents it.
        """
        op = self.ops[ref.op]
        if len(op.tensors) == 1:
            op.reads = variable
            return
        tensor = op.tensors[ref.output]
        name = self._name(self._root, f"{op.name}/output_{ref.output}")
        users = [item for user in self.ops for item in user.inputs if item.ref == ref]
        flat = FlatOp(name, "Identity", op.op, (tensor,), op.nested, [Input(ref, 0, "yes")], reads=variable)
        own = Ref(self.put_before(flat, ref.op + 1), 0)
        for item in users:
            item.ref = own
        self._root.refs.update({known: own for known, each in self._root.refs.items() if each == ref})

    def put_before(self, flat: FlatOp, index: float) -> int:
        """Adds an op before another one, or before all with -1; returns its index."""
        flat.place = index - 0.5
        self.ops.append(flat)
        return len(self.ops) - 1

    def _flatten(self, graph: Any, operations: Sequence[Any], frame: Scope) -> None:
        for op in operations:
            if op.type == "Placeholder":
                self._placeholder(graph, op, frame)
            elif op.type in CALLS and not self._backward:
                self._call(op, frame)
            elif op.type in BRANCHES:
                self._if(op, frame)
            elif op.type in LOOPS:
                self._while(op, frame)
            else:
                self._plain(op, frame)

    def _placeholder(self, graph: Any, op: Any, frame: Scope) -> None:
        tensor = op.outputs[0]
        if tensor.name in frame.refs or tensor.name in frame.handles:
            return
        if tensor.dtype == tf.resource:
            variable = self._variable_of(graph, tensor)
            if variable is not None:
                frame.handles[tensor.name] = variable
            if variable is not None and variable < 0:
                self._unlisted[variable] = (graph, tensor)
        elif not frame.nested:
            frame.given[tensor.name] = tensor.name

    def _plain(self, op: Any, frame: Scope) -> None:
        outputs = tuple(op.outputs)
        known = None if frame.nested else self._known.get(op.name)
        kind = op.type if known is None else known.type
        unseen = [] if self._backward else self._unseen_reads(op, frame)
        flat = FlatOp(self._name(frame, op.name), kind, op, outputs, frame.nested, known=known)
        index = self._append(flat)
        for slot, tensor in enumerate(op.inputs):
            self._connect(flat, index, slot, tensor, frame)
        flat.derived = (flat.backward and not self._inner) or any(self.ops[item.ref.op].derived for item in flat.inputs)
        if unseen:
            flat.inputs.extend(unseen)
        else:
            self._handle(flat, index, op, frame)
        for number, tensor in enumerate(outputs):
            frame.refs[tensor.name] = Ref(index, number)

    def _unseen_reads(self, op: Any, frame: Scope) -> list[Input]:
        """Adds an op for each variable used by a function that the op runs unseen by tapes, such as those of
        `tf.data`.
        """
        found = []
        for slot, tensor in enumerate(op.inputs if runs_functions(op) else ()):
            variable = self._listed(frame.handles[tensor.name]) if tensor.name in frame.handles else None
            if variable is not None:
                name = self._name(frame, f"{op.name}/read_{slot}")
                read = FlatOp(name, "ReadVariableOp", op, (held_by(tensor),), True, reads=variable)
                found.append(Input(Ref(self._append(read), 0), slot, "not_differentiable"))
        return found

    def _handle(self, flat: FlatOp, index: int, op: Any, frame: Scope) -> None:
        variables = [frame.handles[tensor.name] for tensor in op.inputs if tensor.name in frame.handles]
        if not variables:
            return
        if op.type in ("Identity", "IdentityN"):
            frame.handles.update(
                (out.name, frame.handles[tensor.name])
                for out, tensor in zip(op.outputs, op.inputs, strict=True)
                if tensor.name in frame.handles
            )
        elif is_write(op.type):
            flat.writes = self._listed(variables[0])
            # The loss does depend on a variable that training has just updated, but that is not a path to the next
            # variable.
            if flat.derived:
                self._updated.add(variables[0])
            else:
                self._writes[variables[0]] = index
        else:
            flat.reads = self._listed(variables[0])
            flat.updated = variables[0] in self._updated
            written = self._writes.get(variables[0])
            if written is not None:
                flat.inputs.append(Input(Ref(written, 0), 0, "state"))

    def _listed(self, variable: int) -> int | None:
        """The index of a variable that may have been listed only after its handle was met: an argument of the step is
        known as a variable from the first gradient request for it.
        """
        if variable < 0 and variable in self._unlisted:
            known = self._variable_of(*self._unlisted[variable])
            return known if known is not None and known >= 0 else None
        return variable if variable >= 0 else None

    def _connect(self, flat: FlatOp, index: int, slot: int, tensor: Any, frame: Scope) -> None:
        ref = frame.refs.get(tensor.name)
        if ref is None and tensor.name in frame.given:
            self.uses.setdefault(frame.given[tensor.name], []).append((index, slot))
        elif ref is not None:
            flat.inputs.append(Input(ref, slot, flat.known.passes_to(slot) if flat.known is not None else None))

    def _call(self, op: Any, frame: Scope) -> None:
        body = function_graph(op, op.get_attr("f").name)
        if body is None:
            self._plain(op, frame)
            return
        inner = self._enter(op, body, op.inputs, frame)
        around, self._compiled = self._compiled, self._compiled or _is_compiled(op)
        self._flatten(body, body.get_operations(), inner)
        self._compiled = around
        for tensor, result in zip(op.outputs, body.outputs, strict=False):
            inner.hand_on(result.name, frame, tensor.name)

    def _if(self, op: Any, frame: Scope) -> None:
        branches = cond_v2.get_func_graphs(op)
        frames = []
        for branch in branches:
            inner = self._enter(op, branch, op.inputs[1:], frame)
            self._flatten(branch, branch.get_operations(), inner)
            frames.append(inner)
        for number, tensor in enumerate(op.outputs):
            name = op.name if number == 0 else f"{op.name}/output_{number}"
            flat = FlatOp(self._name(frame, name), op.type, op, (tensor,), frame.nested)
            predicate = frame.refs.get(op.inputs[0].name)
            if predicate is not None:
                flat.inputs.append(Input(predicate, 0, "not_differentiable"))
            for slot, (branch, inner) in enumerate(zip(branches, frames, strict=True), start=1):
                result = inner.refs.get(branch.outputs[number].name)
                if result is not None:
                    flat.inputs.append(Input(result, slot, "yes"))
            frame.refs[tensor.name] = Ref(self._append(flat), 0)

    def _while(self, op: Any, frame: Scope) -> None:
        body = while_v2._get_graph(op, "body", "_body_graph")
        condition = while_v2._get_graph(op, "cond", "_cond_graph")
        inner = Scope(_within(frame, op.name), nested=True)
        test = Scope(inner.caller + "/condition", nested=True)
        variables = self._loop_variables(op, body, frame, inner)
        for argument, tested in zip(body.inputs, condition.inputs, strict=False):
            inner.hand_on(argument.name, test, tested.name)
        self._flatten(body, body.get_operations(), inner)
        self._flatten(condition, condition.get_operations(), test)
        goes_on = test.refs.get(condition.outputs[0].name)
        for number, index in variables.items():
            flat = self.ops[index]
            if goes_on is not None:
                flat.inputs.append(Input(goes_on, 1, "not_differentiable", carried=True))
            result = inner.refs.get(body.outputs[number].name)
            if result is not None:
                flat.inputs.append(Input(result, 2, "yes", carried=True))
        for tensor, argument in zip(op.outputs, body.inputs, strict=False):
            inner.hand_on(argument.name, frame, tensor.name)

    def _loop_variables(self, op: Any, body: Any, frame: Scope, inner: Scope) -> dict[int, int]:
        """An op for each loop variable that changes; the others keep their value from outside."""
        variables = {}
        for number, (outer, argument, result) in enumerate(zip(op.inputs, body.inputs, body.outputs, strict=False)):
            if result is argument or outer.dtype == tf.resource:
                frame.hand_on(outer.name, inner, argument.name)
                continue
            name = self._name(inner, f"{op.name}/loop_variable_{number}")
            flat = FlatOp(name, op.type, op, (argument,), nested=True)
            initial = frame.refs.get(outer.name)
            if initial is not None:
                flat.inputs.append(Input(initial, 0, "yes"))
            variables[number] = self._append(flat)
            inner.refs[argument.name] = Ref(variables[number], 0)
        return variables

    def _enter(self, op: Any, body: Any, arguments: Sequence[Any], frame: Scope) -> Scope:
        inner = Scope(_within(frame, op.name), nested=True)
        for outer, argument in zip(arguments, body.inputs, strict=False):
            frame.hand_on(outer.name, inner, argument.name)
        return inner

    def _name(self, frame: Scope, name: str) -> str:
        """A unique name for a flat op. The two branches of a condition may use the same name."""
        base = full = _within(frame, name)
        number = 1
        while full in self._names:
            full = f"{base}_{number}"
            number += 1
        self._names.add(full)
        return full

    def _append(self, flat: FlatOp) -> int:
        flat.backward = self._backward
        flat.compiled = self._compiled
        self.ops.append(flat)
        return len(self.ops) - 1


def _is_compiled(call: Any) -> bool:
    """Whether XLA compiles the called function."""
    try:
        return bool(call.get_attr("_XlaMustCompile"))
    except ValueError:
        return False


def _within(frame: Scope, name: str) -> str:
    """An op's name below the call for which it is inlined; the names of ops in loops and branches already contain
    it.
    """
    return name if not frame.caller or name.startswith(frame.caller + "/") else f"{frame.caller}/{name}"


def function_graph(op: Any, name: str) -> Any:
    """The body of a called function, with its tracebacks if it was traced in this process."""
    function = op.graph._get_function(name)
    graph = getattr(function, "graph", None)
    if graph is not None:
        return graph
    try:
        return function_def_to_graph.function_def_to_graph(function.function_def)
    except (AttributeError, ValueError):
        return None
