"""Functions made from the trace of a user's function: they take the same arguments and have the same results, do what
that does, and more."""

from __future__ import annotations

import itertools
import re
import weakref
from collections.abc import Collection, Sequence
from typing import Any, Protocol

import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.eager.polymorphic_function import atomic_function
from tensorflow.python.util import function_utils

from tb_gradflow.trace.engine.additions import SCOPE, Additions
from tb_gradflow.trace.engine.calls import CallSite, Path, called, callers_of, name_of
from tb_gradflow.trace.engine.definitions import (
    CALLS,
    Definition,
    below,
    calls_in,
    is_for_xla,
    made_stateful,
    results_of,
)
from tb_gradflow.trace.engine.run import run, without_memory_optimizer

_NUMBERS = itertools.count()

# In a message, before TensorFlow adds the lines of the user's code.
_FAILED_NODE = re.compile(r"\[\[(\{\{function_node \S+?\}\})?\{\{node ")
_OWN_NODE = re.compile(r"\{\{node (\S*/)?" + SCOPE + "/")


class Outlet(Protocol):
    """Takes a tensor that a function computes."""

    def put(self, definition: Definition, name: str, value: str) -> None:
        """Lets a function that XLA does not compile give a value to this, by nodes below this name."""


Left = tuple[Outlet, str, int]
"""What takes a tensor, the tensor's reference, and its type."""


class Edit(Protocol):
    """A change of functions that are called.

    Attributes:
        apart: The names of those that it changes differently wherever they are called.
    """

    @property
    def apart(self) -> Collection[str]: ...

    def changes(self, place: CallSite) -> bool:
        """Whether it changes the definition of a function itself."""

    def make(self, definition: Definition, place: CallSite) -> Sequence[Left]:
        """Changes it; returns what the function is to give away."""


class Sibling:
    """A function made from another's trace.

    Args:
        function: The user's `AtomicFunction`.
        edits: What is different, in this order.
        optimized: Whether TensorFlow optimises its graph, as it does the user's, and XLA compiles what it compiles
            there.
        in_order: The graphs in which more ops read variables than in the user's: see `Definition.keep_in_order`.
    """

    def __init__(
        self, function: Any, edits: Sequence[Edit], *, optimized: bool = True, in_order: Collection[Any] = ()
    ) -> None:
        self._plain = function
        self._edits = list(edits)
        self._optimized = optimized
        self._in_order = in_order
        self._functions = called(function)
        self._apart = callers_of(self._functions, {name for edit in edits for name in edit.apart})
        self._made: dict[tuple[str, Path], _Made | None] = {}
        self._blamed: BaseException | None = None
        self._has_run = False
        root = self._of(CallSite(function, in_xla=optimized and is_for_xla(function.cached_definition)))
        if root is None:  # there is nothing to change in what it calls
            self._name = name_of(function)
            return
        self._name = self._wrapped(root) if root.left else root.name
        weakref.finalize(self, _removed, [self._name, *(each.name for each in self._made.values() if each)])

    def __call__(self, args: Sequence[Any]) -> Any:
        """Does what the user's function does for these arguments, which are flat and include what it captures. Raises
        what that would raise."""
        plain = self._plain
        with atomic_function.InterpolateRuntimeError(plain):
            try:
                results = run(self._name, args, len(plain.function_type.flat_outputs), optimized=self._optimized)
            except tf.errors.OpError as error:
                self._blamed = error if self._is_blamed(error.message) else None
                error._message = self._as_of_plain(error.message)
                raise
        self._has_run = True
        return plain.function_type.pack_output(results)

    def is_own(self, error: BaseException) -> bool:
        """Whether an op of the edits has raised an error, or there was no memory for them, or nothing has run yet: ops
        raise errors of TensorFlow's, whatever Python raises in them."""
        is_of_op = isinstance(error, tf.errors.OpError)
        return error is self._blamed or not is_of_op or isinstance(error, tf.errors.ResourceExhaustedError)

    def _is_blamed(self, message: str) -> bool:
        # An op that fails is named; what TensorFlow says before it runs a function for the first time names none,
        # or where a definition is wrong.
        return _OWN_NODE.search(message) is not None or not (self._has_run or _FAILED_NODE.search(message))

    def _as_of_plain(self, message: str) -> str:
        for (name, _), made in self._made.items():
            if made is not None:
                message = message.replace(made.name, name)
        return message

    def _of(self, place: CallSite) -> _Made | None:
        """The new form of a function; `None` if nothing in it changes."""
        key = (place.name, place.path if place.name in self._apart else ())
        if key not in self._made:
            self._made[key] = None  # a function that calls itself
            self._made[key] = self._changed(place)
        return self._made[key]

    def _changed(self, place: CallSite) -> _Made | None:
        inner = {
            (node.name, func.name): made
            for node, listed in calls_in(place.definition)
            for func in listed
            if func.name in self._functions and (made := self._of(self._called(place, node, func.name))) is not None
        }
        edits = [edit for edit in self._edits if edit.changes(place)]
        if not inner and not edits:
            return None
        definition = Definition(place.definition, place.graph)
        left: list[Left] = []
        for node, listed in list(calls_in(definition.proto)):
            for func in listed:
                made = inner.get((node.name, func.name))
                if made is not None:
                    func.name = made.name
                    made_stateful(node)
                    if "config_proto" in node.attr:
                        node.attr["config_proto"].s = without_memory_optimizer(node.attr["config_proto"].s)
                    left += _more_results(node, made)
        for edit in edits:
            left += edit.make(definition, place)
        if place.graph in self._in_order:
            definition.keep_in_order()
        definition.proto.signature.name = name = f"{place.name}_gradflow_{next(_NUMBERS)}"
        if not self._optimized:
            definition.without_xla()
        left = _left(definition, left, in_xla=place.in_xla)
        definition.check()
        context.context().add_function_def(definition.proto)
        return _Made(name, left)

    def _called(self, place: CallSite, node: Any, name: str) -> CallSite:
        function = self._functions[name]
        in_xla = place.in_xla or (self._optimized and is_for_xla(function.cached_definition))
        return CallSite(function, (*place.path, node.name), in_xla)

    def _wrapped(self, root: _Made) -> str:
        """A function that calls one that XLA compiles, and gives away what XLA cannot."""
        inner = Definition(context.context().get_function_def(root.name.encode()))
        outer = Definition(inner.proto)
        own = len(self._plain.function_type.flat_outputs)
        outer.proto.signature.name = f"{root.name}_called"
        for field in ("node_def", "control_ret", "attr", "ret"):
            outer.proto.ClearField(field)
        del outer.proto.signature.control_output[:]
        del outer.proto.signature.output_arg[own:]
        node = outer.proto.node_def.add(name=f"{SCOPE}_call", op="StatefulPartitionedCall")
        node.input.extend(each.name for each in outer.proto.signature.input_arg)
        for name, arguments in (("Tin", inner.proto.signature.input_arg), ("Tout", inner.proto.signature.output_arg)):
            node.attr[name].list.type.extend(each.type for each in arguments)
            node.attr[name].list.SetInParent()
        node.attr["f"].func.name = root.name
        node.attr["_XlaMustCompile"].b = True
        node.attr["config_proto"].s = function_utils.get_disabled_rewriter_config()
        node.attr["executor_type"].s = b""
        for number, result in enumerate(outer.proto.signature.output_arg):
            outer.proto.ret[result.name] = f"{node.name}:output:{number}"
        outer.run_always(node.name)
        given = [
            (outlet, f"{node.name}:output:{own + number}", kind) for number, (outlet, _, kind) in enumerate(root.left)
        ]
        _left(outer, given, in_xla=False)
        context.context().add_function_def(outer.proto)
        return str(outer.proto.signature.name)


class _Made:
    """A function in its new form.

    Attributes:
        name: Its name.
        left: What takes its last results, which XLA cannot give away itself.
    """

    def __init__(self, name: str, left: Sequence[Left]) -> None:
        self.name = name
        self.left = left


class Added:
    """An edit: additional ops in some of the graphs.

    Args:
        additions: The ops.
    """

    apart: Collection[str] = ()

    def __init__(self, additions: Sequence[Additions]) -> None:
        self._additions = list(additions)

    def changes(self, place: CallSite) -> bool:
        return any(each.of is place.graph for each in self._additions)

    def make(self, definition: Definition, place: CallSite) -> list[Left]:
        return [left for each in self._additions if each.of is place.graph for left in _added(definition, each)]


def _added(definition: Definition, additions: Additions) -> list[Left]:
    """Adds ops to a definition; returns what they give away."""
    graph = additions.graph
    tensors = [tensor for _, tensor in additions.results]
    graph.outputs = [tensor if tensor.graph is graph else graph.capture(tensor) for tensor in tensors]
    made = atomic_function.from_func_graph(f"{SCOPE}_{next(_NUMBERS)}", graph, {})
    own = below(additions.scope, made.definition)
    arguments = {
        argument.name: definition.reference(_inside(additions.of, outer))
        for (outer, _), argument in zip(graph.captures, own.signature.input_arg, strict=True)
    }
    for node in own.node_def:
        if node.op in CALLS:  # of a function with few ops, which TensorFlow would take longer to optimise than to run
            node.attr["config_proto"].s = function_utils.get_disabled_rewriter_config()
    definition.add(own.node_def, arguments)
    definition.read_early({node.name for node in own.node_def})
    for node in own.control_ret.values():
        definition.run_always(node)
    kinds = [argument.type for argument in own.signature.output_arg]
    values = [arguments.get(each, each) for each in results_of(own)]
    return [(outlet, value, kind) for (outlet, _), value, kind in zip(additions.results, values, kinds, strict=True)]


def _inside(graph: Any, tensor: Any) -> Any:
    """The tensor of a graph that is, or represents, a tensor."""
    if getattr(tensor, "graph", None) is graph:
        return tensor
    for outer, inner in graph.captures:
        if outer is tensor:
            return inner
    raise ValueError(f"{tensor} is not known in the function {graph.name}")


def _more_results(node: Any, made: _Made) -> list[Left]:
    """Lets a call take what a function could not give away itself."""
    first = len(node.attr["Tout"].list.type)
    if made.left and node.op not in CALLS:
        raise ValueError(f"{node.name} is a {node.op} of a function that XLA compiles")
    node.attr["Tout"].list.type.extend(kind for _, _, kind in made.left)
    return [
        (outlet, f"{node.name}:output:{first + number}", kind) for number, (outlet, _, kind) in enumerate(made.left)
    ]


def _left(definition: Definition, left: Sequence[Left], *, in_xla: bool) -> list[Left]:
    """Lets a function give away what it computes, and returns what only its caller can."""
    if in_xla:
        for _, value, kind in left:
            definition.add_result(value, kind)
        return list(left)
    for number, (outlet, value, _) in enumerate(left):
        outlet.put(definition, f"{SCOPE}/left_{number}", value)
    return []


def _removed(names: Sequence[str]) -> None:
    here = context.context()
    for name in names:
        if here.has_function(name.encode()):
            here.remove_function(name.encode())
