"""What one kind of `run` executes: the ops that its fetches and targets need, up to the tensors that are fed.

A recorded step may fetch only what is executed anyway, so that it runs exactly the ops that it would have run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import tensorflow as tf

from tb_gradflow.analyse.graph.op_sets import LOOPS
from tb_gradflow.trace.engine.definitions import BRANCHES, CALLS
from tb_gradflow.trace.engine.reached import reached
from tb_gradflow.trace.graph_v1.variables_v1 import MAKERS, changes_variable

_SWITCHES = ("Switch", "RefSwitch")
_EXITS = ("Exit", "RefExit")
_JOINS = ("Merge", "RefMerge", *_EXITS)
_HANDS_ON_VARIABLE = frozenset({"Identity", "RefIdentity", "Enter", "RefEnter", *_SWITCHES})
_SHARES_MEMORY = _HANDS_ON_VARIABLE | {
    "Reshape",
    "Squeeze",
    "ExpandDims",
    "StopGradient",
    "Snapshot",
    "PreventGradient",
}
_FUNCTIONS = CALLS | BRANCHES | LOOPS


class Execution:
    """The ops that one kind of `run` executes.

    Attributes:
        graph: The graph.
        fetched: The names of the tensors that the program fetches.
        fed: The names of the tensors that it feeds.
        ops: By name.
    """

    def __init__(
        self, graph: Any, fetches: Sequence[Any] = (), targets: Sequence[Any] = (), fed: Iterable[str] = ()
    ) -> None:
        self.graph = graph
        self.fetched = frozenset(tensor.name for tensor in fetches)
        self.fed = frozenset(fed)
        needed = reached([*(tensor.op for tensor in fetches), *targets], self._needed_by)
        self.ops: dict[str, Any] = {op.name: op for op in needed}

    def __contains__(self, tensor: Any) -> bool:
        """Whether a tensor is computed."""
        return tensor.op.name in self.ops and tensor.name not in self.fed

    def influenced_by(self, tensors: Iterable[Any]) -> set[str]:
        """The names of the ops whose values depend on one of these tensors."""

        def users(tensors: Iterable[Any]) -> Iterator[str]:
            return (user for tensor in tensors for user in self._users.get(tensor.name, ()))

        start = users(tensor for tensor in tensors if tensor in self)
        return set(reached(start, lambda name: users(self.ops[name].outputs)))

    def may_fetch(self, tensor: Any) -> bool:
        """Whether a tensor has a value in this run that can be fetched: those inside branches and loops may have none,
        or many.
        """
        return (
            tensor in self
            and tensor.op.name not in self._conditional
            and _context_of(tensor.op) is None
            and not tensor.dtype._is_ref_dtype
            and tensor.dtype not in (tf.resource, tf.variant)
            and tensor.graph.is_fetchable(tensor)
        )

    @cached_property
    def is_racing(self) -> bool:
        """Whether the program fetches something that reads a reference variable which the same run changes, before or
        after that: neither TensorFlow nor the program decides. Weight decay in a loss that is fetched together with the
        update is an example. As a rule the value is the one before the change, but anything else that is fetched may
        alter the order in which TensorFlow runs these ops.
        """
        changes = [
            (op, maker)
            for op in self.ops.values()
            if changes_variable(op.type) and op.inputs and op.inputs[0].dtype._is_ref_dtype
            for maker in [maker_of(op.inputs[0])]
            if maker is not None
        ]
        shown = self._needed_for_fetches if changes else set()
        readers = {
            maker: [name for name in self._readers_of(maker) if name in shown]
            for maker in dict.fromkeys(maker for _, maker in changes)
        }
        if not any(readers.values()):
            return False
        before = self._before({name for listed in readers.values() for name in listed})
        return any(reader not in before[op.name] for op, maker in changes for reader in readers[maker])

    def _before(self, sought: set[str]) -> dict[str, frozenset[str]]:
        """Which of these ops have to run before each op."""
        found: dict[str, frozenset[str]] = {}
        stack = list(self.ops.values())
        opened: set[str] = set()
        while stack:
            op = stack[-1]
            needed = [each for each in self._needed_by(op) if each.name not in found and each.name not in opened]
            if op.name in found or not needed:
                stack.pop()
                own = frozenset({op.name} & sought)
                found.setdefault(
                    op.name, own.union(*(found.get(each.name, frozenset()) for each in self._needed_by(op)))
                )
                continue
            opened.add(op.name)
            stack.extend(needed)
        return found

    @cached_property
    def _needed_for_fetches(self) -> set[str]:
        """The names of the ops that the values depend on which the program fetches."""
        ends = (op for op in self.ops.values() if any(each.name in self.fetched for each in op.outputs))
        return {op.name for op in reached(ends, self._needed_by)}

    def _needed_by(self, op: Any) -> list[Any]:
        """The ops that have to run before one, directly."""
        return [*(tensor.op for tensor in op.inputs if tensor.name not in self.fed), *op.control_inputs]

    def _readers_of(self, maker: str) -> Iterator[str]:
        """The names of the ops that read the value of a reference variable, directly or through something that shares
        its memory.
        """
        stack = list(self.graph.get_operation_by_name(maker).outputs)
        while stack:
            tensor = stack.pop()
            for name in self._users.get(tensor.name, ()):
                op = self.ops[name]
                if op.type in _SHARES_MEMORY:
                    stack.extend(op.outputs)
                elif not changes_variable(op.type):
                    yield name

    @cached_property
    def _users(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name, op in self.ops.items():
            for tensor in op.inputs:
                if tensor.name not in self.fed:
                    found.setdefault(tensor.name, []).append(name)
        return found

    @cached_property
    def _conditional(self) -> set[str]:
        """The names of the ops that do not always run, because one of their inputs comes from a branch that is not
        taken.
        """
        after: dict[str, list[str]] = defaultdict(list)
        for name, op in self.ops.items():
            if op.type not in _JOINS or _context_of(op) is not None:
                for before in (*(tensor.op for tensor in op.inputs), *op.control_inputs):
                    after[before.name].append(name)
        return set(reached((name for name, op in self.ops.items() if op.type in _SWITCHES), after.__getitem__))


def _context_of(op: Any) -> Any:
    """The branch or loop in which a value is computed; `None` for one that a run computes once. A loop's result is
    there once the loop has ended.
    """
    context = op._get_control_flow_context()
    return context.outer_context if context is not None and op.type in _EXITS else context


def variables_written_by(op: Any) -> Iterator[str]:
    """The names of the ops that create the variables that an op changes."""
    if op.type in _FUNCTIONS:
        if any(types_in(op, changes_variable)):
            yield from filter(None, (maker_of(tensor) for tensor in op.inputs))
    elif op.inputs and changes_variable(op.type):
        maker = maker_of(op.inputs[0])
        if maker is not None:
            yield maker


def maker_of(tensor: Any) -> str | None:
    """The name of the op that creates the variable of a handle or reference; `None` for other tensors."""
    if tensor.dtype != tf.resource and not tensor.dtype._is_ref_dtype:
        return None
    while tensor.op.type in _HANDS_ON_VARIABLE:
        tensor = tensor.op.inputs[0]
    return str(tensor.op.name) if tensor.op.type in MAKERS else None


def variable_read_by(tensor: Any) -> str | None:
    """The name of the op that creates the variable whose value a tensor is; `None` for other tensors."""
    if tensor.dtype._is_ref_dtype:
        return maker_of(tensor)
    return maker_of(tensor.op.inputs[0]) if tensor.op.type == "ReadVariableOp" else None


def types_in(op: Any, is_sought: Callable[[str], bool]) -> Iterator[str]:
    """The types of the ops in the functions that an op calls, as far as they are sought."""
    names = reached(
        _functions_of(op.node_def),
        lambda name: (inner for node in _nodes_of(op.graph, name) for inner in _functions_of(node)),
    )
    return (node.op for name in names for node in _nodes_of(op.graph, name) if is_sought(node.op))


def _functions_of(node: Any) -> Iterator[str]:
    for value in node.attr.values():
        kind = value.WhichOneof("value")
        if kind == "func":
            yield value.func.name
        elif kind == "list":
            yield from (each.name for each in value.list.func)


def _nodes_of(graph: Any, name: str) -> Sequence[Any]:
    function = graph._get_function(name)
    if function is None:
        return ()
    known = getattr(function, "cached_definition", None)
    return list((function.function_def if known is None else known).node_def)
