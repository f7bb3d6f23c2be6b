"""What a function does besides computing: it takes a batch out of an iterator, prints, calls a Python function. When a
copy of it runs again, this must not happen again: the copy is given what it resulted in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import op_def_registry

from tb_gradflow.trace.engine.additions import SCOPE
from tb_gradflow.trace.engine.calls import CallSite, Path, argument_at_caller, called, callers_of, places
from tb_gradflow.trace.engine.cells import Cell
from tb_gradflow.trace.engine.definitions import CALLING, Definition, new_node, node_of
from tb_gradflow.trace.engine.draws import is_random, is_shareable

# A variable is an argument, and so a copy is given another one. Others live as long as the call, or only look as if
# they had effects.
_HARMLESS = (
    *("Assign", "ReadVariable", "Resource", "VarHandleOp", "VarIsInitialized", "VariableShape", "Stateful", "RngSkip"),
    *(
        "TensorArray",
        "Stack",
        "Stateless",
        "DeepCopy",
        "GuaranteeConst",
        "Empty",
        "DeviceIndex",
        "CudnnRNN",
        "IsTensor",
    ),
)

_PASSING_ON = ("CheckNumerics", "CheckNumericsV2", "DebugIdentityV2", "DebugIdentityV3", "Print")
"""These do something with a tensor, and pass it on."""

Output = tuple[Path, str]
"""An output of a node: the path to its function, and what this function calls it."""


class Effects:
    """The effects of a function, an `AtomicFunction`, and of those that it calls.

    Attributes:
        apart: See `Edit`.
        unknown: The types of the ops whose results cannot be kept, because they run several times or in XLA.
    """

    def __init__(self, function: Any) -> None:
        self._function = function
        self._cells: dict[Output, Cell] = {}
        found = {name for name, each in called(function).items() if any(effects_of(Definition(each.cached_definition)))}
        self.apart = frozenset(callers_of(called(function), found))
        unclear = [place for place in places(function) if place.in_loop or place.in_xla]
        nodes = [node for place in unclear for node in effects_of(Definition(place.definition))]
        self.unknown = sorted({node.op for node in nodes if node.op not in _PASSING_ON and any(_outputs(node))})

    def keeping(self, of: Path) -> Keeping:
        """An edit of a function that calls this one at a place."""
        return Keeping(self.apart, of, self._cell)

    def taken(self) -> dict[Output, Any]:
        """What the last run has resulted in."""
        return {output: value for output, cell in self._cells.items() if (value := cell.take()) is not None}

    def of_eager(self, value: Callable[[str], Any]) -> dict[Output, Any]:
        """What those of the function itself have resulted in, if it is the graph of ops that ran one by one: `value`
        returns the tensor of this name."""
        nodes = effects_of(Definition(self._function.cached_definition))
        named = [(node, number, name) for node in nodes for number, (name, _) in enumerate(_outputs(node))]
        return {((), name): value(f"{node.name}:{number}") for node, number, name in named}

    def given(self, values: Mapping[Output, Any], *, all_run: bool = False, redraws: bool = False) -> Giving:
        """An edit of this function: these are the results of its effects; of all that occurred, with `all_run`. With
        `redraws`, it draws new random numbers."""
        return Giving(self.apart, values, all_run=all_run, redraws=redraws)

    def _cell(self, of: Output, dtype: Any) -> Cell:
        if of not in self._cells:
            self._cells[of] = Cell(dtype)
        return self._cells[of]


@dataclass(frozen=True, slots=True)
class Keeping:
    """See `Effects.keeping`."""

    apart: frozenset[str]
    _path: Path
    _cell: Callable[[Output, Any], Cell]

    def changes(self, place: CallSite) -> bool:
        return not place.in_xla and place.name in self.apart and place.path[: len(self._path)] == self._path

    def make(self, definition: Definition, place: CallSite) -> Sequence[Any]:
        path = place.path[len(self._path) :]
        for node in list(effects_of(definition)):
            if node.op not in _PASSING_ON:
                for name, dtype in _outputs(node):
                    number = len(definition.proto.node_def)
                    self._cell((path, name), dtype).put(definition, f"{SCOPE}/kept_{number}", name)
        return []


class Giving:
    """See `Effects.given`."""

    def __init__(
        self, apart: frozenset[str], values: Mapping[Output, Any], *, all_run: bool = False, redraws: bool = False
    ) -> None:
        self.apart = apart
        self._values = values
        self._all_run = all_run
        self._redraws = redraws
        self._cells: list[tuple[Cell, Any]] = []

    def write(self, change: Callable[[Any], Any]) -> None:
        """From now on, functions that it was made for have other results."""
        for cell, value in self._cells:
            cell.write(change(value))

    def changes(self, place: CallSite) -> bool:
        return place.name in self.apart

    def changed(self, change: Callable[[Any], Any]) -> Giving:
        """The same with other results."""
        values = {output: change(value) for output, value in self._values.items()}
        return Giving(self.apart, values, all_run=self._all_run, redraws=self._redraws)

    def lacking(self, path: Path, definition: Definition) -> Iterator[str]:
        """The types of the effects in a function whose results are not known, because it did not take that branch: a
        copy that computes something else may take it."""
        for node in self._nodes(definition):
            is_known = all((path, name) in self._values for name, _ in _outputs(node))
            if not is_known and node.op not in _PASSING_ON and not is_shareable(node):
                yield node.op

    def make(self, definition: Definition, place: CallSite) -> Sequence[Any]:
        added: list[Any] = []
        given: dict[str, str] = {}
        for node in self._nodes(definition):
            if node.op in _PASSING_ON:
                node.CopyFrom(new_node(node.name, "Identity", node.input[:1], T=tf.as_dtype(node.attr["T"].type)))
                continue
            named = list(_outputs(node))
            if self._all_run and named and not any((place.path, name) in self._values for name, _ in named):
                continue  # in a branch that is not taken
            for name, dtype in named:
                value = self._values.get((place.path, name))
                if value is None:
                    raise ValueError(f"the result of the {node.op} {node.name} is not known")
                cell = Cell(dtype)
                cell.write(value)
                self._cells.append((cell, value))
                scope = f"{SCOPE}/given_{len(added)}"
                added += cell.reading(scope)
                given[name] = f"{scope}:value:0"
            node.CopyFrom(new_node(node.name, "NoOp", []))
        definition.proto.node_def.extend(added)
        definition.redirect(given)
        return []

    def held(self, place: CallSite, definition: Definition) -> Iterator[str]:
        """The types of the effects in a function, as it is called at a place, whose results follow from the values of
        variables, such as a draw with given probabilities: a copy is given the same result, whatever these are."""
        fixed = _Fixed()
        for node in self._nodes(definition):
            inputs = [each for each in node.input if not each.startswith("^")]
            if node.op in _PASSING_ON or not any(_outputs(node)):
                continue
            if not all(fixed(place, each) for each in inputs):
                yield node.op

    def unclear(self, place: CallSite, definition: Definition) -> Iterator[str]:
        """The types of the effects in a function whose results cannot be kept: see `Effects`."""
        if place.in_loop or place.in_xla:
            for node in self._nodes(definition):
                if node.op not in _PASSING_ON and any(_outputs(node)):
                    yield node.op

    def _nodes(self, definition: Definition) -> list[Any]:
        return [node for node in effects_of(definition) if not (self._redraws and is_random(node))]


def effects_of(definition: Definition) -> Iterator[Any]:
    """The nodes of a definition that have effects."""
    handles = definition.handles()
    for node in definition.proto.node_def:
        kind = op_def_registry.get(node.op)
        if kind is None or not kind.is_stateful or node.op in CALLING or node.op.startswith(_HARMLESS):
            continue
        if node.op == "RngReadAndSkip" and node.input[0] in handles:
            continue  # a generator of the user's is a variable
        if any(dtype == tf.resource for _, dtype in _outputs(node)):
            continue  # a new one for each call
        yield node


class _Fixed:
    """Tells which values in functions are the same whatever values the variables have."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[dict[str, Any], set[str]]] = {}

    def __call__(self, place: CallSite, reference: str) -> bool:
        """Whether one is, in a function as it is called at a place."""
        nodes, effects = self._of(place)
        waiting, seen = [node_of(reference)], set[str]()
        while waiting:
            name = waiting.pop()
            if name in seen or name in effects:  # an effect is given what it resulted in
                continue
            seen.add(name)
            node = nodes.get(name)
            if node is None:
                given = argument_at_caller(place, name)
                if given is not None and not self(*given):
                    return False
            elif is_random(node) or any(dtype == tf.resource for dtype in _inputs(node)):
                return False
            else:
                waiting += [node_of(each) for each in node.input if not each.startswith("^")]
        return True

    def _of(self, place: CallSite) -> tuple[dict[str, Any], set[str]]:
        """The nodes of a function by name, and the names of those that have effects."""
        if place.path not in self._known:
            definition = Definition(place.definition)
            nodes = {each.name: each for each in definition.proto.node_def}
            self._known[place.path] = nodes, {each.name for each in effects_of(definition)}
        return self._known[place.path]


def _inputs(node: Any) -> Iterator[Any]:
    """The types of a node's inputs."""
    for argument in op_def_registry.get(node.op).input_arg:
        if argument.type_list_attr:
            yield from map(tf.as_dtype, node.attr[argument.type_list_attr].list.type)
        else:
            yield tf.as_dtype(node.attr[argument.type_attr].type if argument.type_attr else argument.type)


def _outputs(node: Any) -> Iterator[tuple[str, Any]]:
    """What a definition calls the outputs of a node, each with its type."""
    for argument in op_def_registry.get(node.op).output_arg:
        if argument.type_list_attr:
            kinds = list(node.attr[argument.type_list_attr].list.type)
        else:
            kind = node.attr[argument.type_attr].type if argument.type_attr else argument.type
            kinds = [kind] * (node.attr[argument.number_attr].i if argument.number_attr else 1)
        for number, kind in enumerate(kinds):
            yield f"{node.name}:{argument.name}:{number}", tf.as_dtype(kind)
