"""The functions that a compiled function calls: branches and loops are functions too."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tb_gradflow.analyse.graph.op_sets import LOOPS
from tb_gradflow.trace.engine.definitions import BRANCHES, calls_in, is_for_xla
from tb_gradflow.trace.engine.reached import reached

Path = tuple[str, ...]
"""The nodes that call each other, down to a function. TensorFlow runs a function that is called at two places as
two."""


MADE_AGAIN = "_tb_gradflow_made_again"
"""The attribute of a graph for another one with the same ops: see `repeated`."""


@dataclass(frozen=True, slots=True)
class CallSite:
    """Where a function is called.

    Attributes:
        function: The called one, an `AtomicFunction`.
        path: How it is reached.
        in_xla: Whether XLA compiles it.
        in_loop: Whether it may run several times.
        above: The functions that the nodes of the path belong to.
    """

    function: Any
    path: Path = ()
    in_xla: bool = False
    in_loop: bool = False
    above: tuple[Any, ...] = ()

    @property
    def name(self) -> str:
        return name_of(self.function)

    @property
    def definition(self) -> Any:
        return self.function.cached_definition

    @property
    def graph(self) -> Any:
        """The graph that it was made from, or one with the same ops that was made again; `None` if that is not
        known."""
        graph = getattr(self.function, "_cached_graph", None)
        return getattr(graph, MADE_AGAIN, graph)


def name_of(function: Any) -> str:
    name = function.name
    return name.decode() if isinstance(name, bytes) else str(name)


def called(function: Any) -> dict[str, Any]:
    """An `AtomicFunction` and those that may be called from it, by name."""
    found: dict[str, Any] = {}
    waiting = [function]
    while waiting:
        each = waiting.pop()
        if found.setdefault(name_of(each), each) is each:
            waiting.extend(
                child
                for child in getattr(each, "children", ())  # a function of TensorFlow 1 has none
                if hasattr(child, "cached_definition") and name_of(child) not in found
            )
    return found


def places(function: Any) -> Iterator[CallSite]:
    """Where these functions are really called, the first one first. A function that calls itself is called once."""
    functions = called(function)

    def below(place: CallSite, above: Sequence[str]) -> Iterator[CallSite]:
        yield place
        for node, listed in calls_in(place.definition):
            for func in listed:
                each = functions.get(func.name)
                if each is not None and func.name not in above:
                    in_xla = place.in_xla or is_for_xla(each.cached_definition)
                    in_loop, callers = place.in_loop or node.op in LOOPS, (*place.above, place.function)
                    inner = CallSite(each, (*place.path, node.name), in_xla, in_loop, callers)
                    yield from below(inner, [*above, func.name])

    yield from below(CallSite(function, in_xla=is_for_xla(function.cached_definition)), [name_of(function)])


def argument_at_caller(place: CallSite, name: str) -> tuple[CallSite, str] | None:
    """What the caller of a function gives for an argument, and where that is called; `None` of the first function."""
    if not place.above:
        return None
    caller = place.above[-1]
    node = next(each for each in caller.cached_definition.node_def if each.name == place.path[-1])
    number = [each.name for each in place.definition.signature.input_arg].index(name)
    return CallSite(caller, place.path[:-1], above=place.above[:-1]), node.input[number + (node.op in BRANCHES)]


def argument_of_root(place: CallSite, number: int) -> int | None:
    """Which argument of the first function on the path an argument of the last one is; `None` if it is computed."""
    for function, name in zip(reversed(place.above), reversed(place.path), strict=True):
        definition = function.cached_definition
        node = next(each for each in definition.node_def if each.name == name)
        given = node.input[number + (node.op in BRANCHES)]
        names = [each.name for each in definition.signature.input_arg]
        if given not in names:
            return None
        number = names.index(given)
    return number


def graphs_called(function: Any) -> list[Any]:
    """The graph of a `ConcreteFunction`, and those of the functions that it calls."""
    graphs = (place.graph for place in places(function._inference_function))
    return list({id(graph): graph for graph in graphs if graph is not None}.values())


def callers_of(functions: Mapping[str, Any], names: Iterable[str]) -> set[str]:
    """Of these functions, those of these names and those from which they are called."""
    callers: dict[str, set[str]] = defaultdict(set)
    for name, each in functions.items():
        for _, listed in calls_in(each.cached_definition):
            for func in listed:
                callers[func.name].add(name)
    return set(reached(names, callers.__getitem__))
