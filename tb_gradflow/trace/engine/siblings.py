"""Functions made from the trace of a user's function: they take the same arguments and have the same results, do what
that does, and more."""

from __future__ import annotations

import itertools
import re
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.eager.polymorphic_function import atomic_function
from tensorflow.python.util import function_utils

from tb_gradflow.trace.engine.additions import SCOPE, Additions
from tb_gradflow.trace.engine.cells import Cell
from tb_gradflow.trace.engine.definitions import CALLS, Definition, calls_in, is_for_xla, made_stateful, results_of
from tb_gradflow.trace.engine.draws import Draws, Path, draws_in, unshared_in

_NUMBERS = itertools.count()

# In a message, before TensorFlow adds the lines of the user's code.
_OWN_NODE = re.compile(r"\{\{node (\S*/)?" + SCOPE + "/")

Change = Callable[[Definition], None]
"""Changes the definition of a function that has additions, after they were added."""


class Sibling:
    """A function made from another's trace.

    Args:
        function: The user's `ConcreteFunction`.
        additions: What it has in addition, for graphs of functions that it calls or for its own.
        change: What else is done to the definitions of these functions.
        draws: Where its random ops draw; `None` if they keep positions of their own.
        optimized: Whether TensorFlow optimises its graph, as it does the user's.

    Attributes:
        graphs: The graphs with additions that the function really calls: one that TensorFlow has traced twice, for its
            variables, is called once.
    """

    def __init__(
        self,
        function: Any,
        additions: Sequence[Additions],
        change: Change = lambda definition: None,
        draws: Draws | None = None,
        *,
        optimized: bool = True,
    ) -> None:
        self._plain = function._inference_function
        self._pack = function.function_type.pack_output
        self._additions = list(additions)
        self._change = change
        self._optimized = optimized
        self._functions = dict(_called(self._plain))
        self._draws = draws
        self._drawing = set() if draws is None else _names_of_drawing(self._plain)
        self._made: dict[tuple[str, Path], _Made | None] = {}
        self._blamed: BaseException | None = None
        self.graphs: list[Any] = []
        root = self._of(_text(self._plain.name), (), in_xla=False)
        if root is None:
            raise ValueError("the function calls none of the functions that it was made for")
        self._name = self._wrapped(root) if root.left else root.name
        weakref.finalize(self, _removed, [self._name, *(each.name for each in self._made.values() if each)])

    def __call__(self, args: Sequence[Any]) -> Any:
        """Does what the user's function does for these arguments, which are flat and include what it captures. Raises
        what that would raise."""
        here, plain = context.context(), self._plain
        with atomic_function.InterpolateRuntimeError(plain):
            try:
                results = here.call_function(self._name.encode(), list(args), len(plain.function_type.flat_outputs))
            except tf.errors.OpError as error:
                self._blamed = error if _OWN_NODE.search(error.message) else None
                error._message = self._as_of_plain(error.message)
                raise
        return self._pack(results)

    def is_own(self, error: BaseException) -> bool:
        """Whether an op of the additions has raised an error, or there was no memory for them."""
        return error is self._blamed or isinstance(error, tf.errors.ResourceExhaustedError)

    def _as_of_plain(self, message: str) -> str:
        for (name, _), made in self._made.items():
            if made is not None:
                message = message.replace(made.name, name)
        return message

    def _of(self, name: str, path: Path, *, in_xla: bool) -> _Made | None:
        """The new form of a function that is called so; `None` if nothing in it changes."""
        key = (name, path if name in self._drawing else ())
        if key not in self._made:
            self._made[key] = None  # a function that calls itself
            self._made[key] = self._changed(*key, in_xla=in_xla)
        return self._made[key]

    def _changed(self, name: str, path: Path, *, in_xla: bool) -> _Made | None:
        function = self._functions.get(name)
        if function is None:
            return None
        graph = function._cached_graph
        left: list[tuple[Cell, str, int]] = []
        in_xla = in_xla or is_for_xla(function.cached_definition)
        inner = {
            (node.name, func.name): made
            for node, listed in calls_in(function.cached_definition)
            for func in listed
            if (made := self._of(func.name, (*path, node.name), in_xla=in_xla)) is not None
        }
        own = [each for each in self._additions if each.of is graph]
        draws = self._draws if name in self._drawing and not in_xla else None
        if not inner and not own and draws is None:
            return None
        definition = Definition(function.cached_definition, graph)
        if draws is not None:
            draws.share(definition, path)
        for node, listed in list(definition.calls()):
            for func in listed:
                made = inner.get((node.name, func.name))
                if made is not None:
                    func.name = made.name
                    made_stateful(node)
                    left += _more_results(node, made)
        for each in own:
            self.graphs.append(graph)
            left += _added(definition, each)
        if own:
            self._change(definition)
        definition.name = f"{name}_gradflow_{next(_NUMBERS)}"
        left = _left(definition, left, in_xla=in_xla)
        context.context().add_function_def(definition.proto)
        return _Made(definition.name, left)

    def _wrapped(self, root: _Made) -> str:
        """A function that calls one that XLA compiles, and leaves what XLA cannot."""
        inner = Definition(context.context().get_function_def(root.name.encode()))
        outer = Definition(inner.proto)
        own = len(self._plain.function_type.flat_outputs)
        outer.name = f"{root.name}_called"
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
        for number, (cell, _, _) in enumerate(root.left):
            outer.leave(f"{SCOPE}/left_{number}", cell, f"{node.name}:output:{own + number}")
        context.context().add_function_def(outer.proto)
        return outer.name


class _Made:
    """A function in its new form.

    Attributes:
        name: Its name.
        left: The cells for its last results, which XLA cannot leave itself; each with its type.
    """

    def __init__(self, name: str, left: Sequence[tuple[Cell, str, int]]) -> None:
        self.name = name
        self.left = left


def _called(function: Any) -> Iterator[tuple[str, Any]]:
    """A function and those that it calls, by name."""
    waiting, seen = [function], set[str]()
    while waiting:
        each = waiting.pop()
        name = _text(each.name)
        if name not in seen:
            seen.add(name)
            yield name, each
            waiting.extend(child for child in each.children if hasattr(child, "cached_definition"))


def _added(definition: Definition, additions: Additions) -> list[tuple[Cell, str, int]]:
    """Adds ops to a definition; returns what they leave: each cell, with what it gets and its type."""
    graph = additions.graph
    tensors = [tensor for _, tensor in additions.results]
    graph.outputs = [tensor if tensor.graph is graph else graph.capture(tensor) for tensor in tensors]
    made = atomic_function.from_func_graph(f"{SCOPE}_{next(_NUMBERS)}", graph, {})
    own = made.definition
    arguments = {
        argument.name: definition.reference(_inside(additions.of, outer))
        for (outer, _), argument in zip(graph.captures, own.signature.input_arg, strict=True)
    }
    definition.add(own.node_def, arguments)
    for node in own.control_ret.values():
        definition.run_always(node)
    kinds = [argument.type for argument in own.signature.output_arg]
    values = [arguments.get(each, each) for each in results_of(own)]
    return [(cell, value, kind) for (cell, _), value, kind in zip(additions.results, values, kinds, strict=True)]


def _inside(graph: Any, tensor: Any) -> Any:
    """The tensor of a graph that is, or represents, a tensor."""
    if getattr(tensor, "graph", None) is graph:
        return tensor
    for outer, inner in graph.captures:
        if outer is tensor:
            return inner
    raise ValueError(f"{tensor} is not known in the function {graph.name}")


def _more_results(node: Any, made: _Made) -> list[tuple[Cell, str, int]]:
    """Lets a call take what a function could not leave itself."""
    first = len(node.attr["Tout"].list.type)
    if made.left and node.op not in CALLS:
        raise ValueError(f"{node.name} is a {node.op} of a function that XLA compiles")
    node.attr["Tout"].list.type.extend(kind for _, _, kind in made.left)
    return [(cell, f"{node.name}:output:{first + number}", kind) for number, (cell, _, kind) in enumerate(made.left)]


def _left(
    definition: Definition, left: Sequence[tuple[Cell, str, int]], *, in_xla: bool
) -> list[tuple[Cell, str, int]]:
    """Lets a function leave what it computes, and returns what only its caller can."""
    if in_xla:
        for _, value, kind in left:
            definition.add_result(value, kind)
        return list(left)
    for number, (cell, value, _) in enumerate(left):
        definition.leave(f"{SCOPE}/left_{number}", cell, value)
    return []


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name


def _removed(names: Sequence[str]) -> None:
    here = context.context()
    for name in names:
        if here.has_function(name.encode()):
            here.remove_function(name.encode())


def _names_of_drawing(function: Any) -> set[str]:
    """The functions that draw random numbers from positions that can be shared, and those that call one."""
    functions = dict(_called(function))
    found = {name for name, each in functions.items() if draws_in(each.cached_definition)}
    callers: dict[str, set[str]] = defaultdict(set)
    for name, each in functions.items():
        for _, listed in calls_in(each.cached_definition):
            for func in listed:
                callers[func.name].add(name)
    waiting = list(found)
    while waiting:
        waiting.extend(new := callers[waiting.pop()] - found)
        found |= new
    return found


def can_draw(function: Any) -> bool:
    """Whether a `ConcreteFunction` has random ops whose positions a sibling can share."""
    return _text(function._inference_function.name) in _names_of_drawing(function._inference_function)


def unshared(function: Any) -> list[str]:
    """The types of its seeded random ops for which that is impossible. XLA has generators of its own, whose numbers
    differ from run to run."""
    reached = [each for each, in_xla in _reached(function) if not in_xla]
    return [op for each in reached for op in unshared_in(each.cached_definition)]


def graphs_called(function: Any) -> list[Any]:
    """The graph of a `ConcreteFunction`, and those of the functions, branches and loops that it calls."""
    return [each._cached_graph for each, _ in _reached(function) if each._cached_graph is not None]


def graphs_in_xla(function: Any) -> list[Any]:
    """Those of them that XLA compiles."""
    return [each._cached_graph for each, in_xla in _reached(function) if in_xla and each._cached_graph is not None]


def _reached(function: Any) -> Iterator[tuple[Any, bool]]:
    """The functions that one really calls, itself included, each with whether XLA compiles it."""
    functions = dict(_called(function._inference_function))
    waiting, seen = [(_text(function._inference_function.name), False)], set[str]()
    while waiting:
        name, in_xla = waiting.pop()
        each = functions.get(name)
        if each is None or name in seen:
            continue
        seen.add(name)
        in_xla = in_xla or is_for_xla(each.cached_definition)
        yield each, in_xla
        waiting.extend((func.name, in_xla) for _, listed in calls_in(each.cached_definition) for func in listed)
