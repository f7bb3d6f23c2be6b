"""Edits definitions of functions, as TensorFlow's runtime has them, and names what is in their graphs as they do."""

from __future__ import annotations

import graphlib
import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import function_pb2, node_def_pb2, types_pb2
from tensorflow.python.framework import auto_control_deps_utils

from tb_gradflow.trace.engine.reached import reached

BRANCHES = frozenset({"If", "StatelessIf", "Case", "StatelessCase"})
"""Their first input is none of the function's arguments."""

_XLA = "_XlaMustCompile"

CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})

# What calls a function that does more than its results show, in the place of what calls one that does not.
_STATEFUL = {
    "PartitionedCall": "StatefulPartitionedCall",
    "StatelessIf": "If",
    "StatelessCase": "Case",
    "StatelessWhile": "While",
}
CALLING = frozenset({*_STATEFUL, *_STATEFUL.values()})

_TRIGGER = "ControlTrigger"


class Definition:
    """A copy of a function's definition, which may be changed.

    Args:
        definition: The original.
        graph: The graph that it was made from; `None` if that is not known.
    """

    def __init__(self, definition: Any, graph: Any = None) -> None:
        self.proto = function_pb2.FunctionDef()
        self.proto.CopyFrom(definition)
        self._graph = graph
        self._arguments: dict[str, str] | None = None

    def reference(self, tensor: Any) -> str:
        """What nodes of the definition call a tensor of its graph."""
        if self._arguments is None:
            given = zip(self._graph.inputs, self.proto.signature.input_arg, strict=True)
            self._arguments = {each.name: argument.name for each, argument in given}
        name = self._arguments.get(tensor.name)
        return name if name is not None else output_of(tensor.op, tensor.value_index)

    def add(self, nodes: Iterable[Any], arguments: Mapping[str, str]) -> None:
        """Adds nodes of another definition, whose arguments are these references here."""
        for node in nodes:
            added = self.proto.node_def.add()
            added.CopyFrom(node)
            for place, given in enumerate(added.input):
                if given in arguments:
                    added.input[place] = arguments[given]

    def read_early(self, names: Collection[str]) -> None:
        """Lets these nodes read variables before other nodes change them, but for what the reads follow from."""
        uses = list(self.uses())
        order = {node.name: place for place, node in enumerate(self.proto.node_def)}
        first = len(order)
        for reader, read, written in uses:
            if reader.name not in names or written:
                continue
            known = self.ancestors([reader.name])
            for node, _, changed in uses:
                if node.name not in known and node.name not in names and not set(read).isdisjoint(changed):
                    self.wait(node, [reader.name])
                    first = min(first, order[node.name])
        if first == len(order):
            return
        # What comes first is what the program does first: see `keep_in_order`.
        nodes = list(self.proto.node_def)
        early = [each for each in nodes[first:] if each.name in names]
        later = [each for each in nodes[first:] if each.name not in names]
        del self.proto.node_def[:]
        self.proto.node_def.extend([*nodes[:first], *early, *later])

    def run_always(self, node: str) -> None:
        """A node that nothing else needs."""
        name = f"tb_gradflow_{len(self.proto.signature.control_output)}"
        self.proto.control_ret[name] = node
        self.proto.signature.control_output.append(name)

    def add_result(self, value: str, dtype: int) -> int:
        """One more result; returns which of them it is."""
        number = len(self.proto.signature.output_arg)
        taken = {each.name for each in (*self.proto.signature.output_arg, *self.proto.signature.input_arg)}
        name = next(each for count in itertools.count() if (each := f"tb_gradflow_{number}_{count}") not in taken)
        self.proto.signature.output_arg.add(name=name, type=dtype)
        self.proto.ret[name] = value
        return number

    def handles(self) -> set[str]:
        """The arguments that are handles of resources."""
        return {each.name for each in self.proto.signature.input_arg if each.type == types_pb2.DT_RESOURCE}

    def wait(self, waiting: Any, before: Iterable[str]) -> None:
        """A node runs after others."""
        known = {*waiting.input}
        waiting.input.extend(each for name in before if (each := f"^{name}") not in known)

    def keep_in_order(self) -> None:
        """Keeps the reads and writes of variables that are read several times in order, whatever TensorFlow's graph
        optimizers do.

        TensorFlow orders them with control edges. Its dependency optimizer removes such an edge if another path leads
        from the read to the write, and then an `IdentityN` that only passes values on, with the paths through it. Keras
        passes all gradients of a step through one, so each gradient seems to have a path to every write: in a critic
        with a gradient penalty, a step with more ops read weights that had already been written. The plain step has
        the same race with a smaller window. A path that survives leads through a `ControlTrigger`.
        """
        reads: dict[str, list[str]] = defaultdict(list)
        last: dict[str, str] = {}
        added: list[Any] = []
        for node, read, written in self.uses():
            before = [last[each] for each in (*read, *written) if each in last]
            for handle in written:
                own = reads.pop(handle, [])
                before += own if len(own) > 1 else []
                last[handle] = node.name
            for handle in read:
                reads[handle].append(node.name)
            before = [each for each in dict.fromkeys(before) if each != node.name]
            if before:
                trigger = node_def_pb2.NodeDef(name=f"tb_gradflow/order_{len(added)}", op=_TRIGGER)
                trigger.input.extend(f"^{each}" for each in before)
                added.append(trigger)
                node.input.append(f"^{trigger.name}")
        self.proto.node_def.extend(added)

    def uses(self) -> Iterator[tuple[Any, list[str], list[str]]]:
        """The nodes that use resources which are arguments, in the order of their creation: which of these each reads,
        and which it may change."""
        handles = self.handles()
        for node in self.proto.node_def:
            used = [(place, each) for place, each in enumerate(node.input) if each in handles]
            if not used:
                continue
            if node.op in auto_control_deps_utils.RESOURCE_READ_OPS:
                yield node, [each for _, each in used], []
                continue
            only_read = set(node.attr[_READ_ONLY].list.i) if _READ_ONLY in node.attr else set()
            yield (
                node,
                [each for place, each in used if place in only_read],
                [each for place, each in used if place not in only_read],
            )

    def without_xla(self) -> None:
        """TensorFlow runs it, and the functions that it calls."""
        self.proto.attr.pop(_XLA, None)
        for node in self.proto.node_def:
            node.attr.pop(_XLA, None)

    def ancestors(self, references: Iterable[str]) -> set[str]:
        """The nodes that run before these values, or nodes, are there; those of the latter included."""
        nodes = {node.name: node for node in self.proto.node_def}
        found = reached(map(node_of, references), lambda name: map(node_of, nodes[name].input) if name in nodes else ())
        return {name for name in found if name in nodes}

    def descendants(self, references: Iterable[str]) -> set[str]:
        """The nodes that can only run once these values, or nodes, are there; those of the latter included."""
        users: dict[str, list[str]] = defaultdict(list)
        for node in self.proto.node_def:
            for each in node.input:
                users[node_of(each)].append(node.name)
        return set(reached(map(node_of, references), users.__getitem__))

    def check(self) -> None:
        """Raises ValueError if its nodes wait for each other."""
        waits = {node.name: {node_of(each) for each in node.input} for node in self.proto.node_def}
        graph = {name: before & waits.keys() for name, before in waits.items()}
        try:
            graphlib.TopologicalSorter(graph).prepare()
        except graphlib.CycleError as error:
            raise ValueError(f"nodes of {self.proto.signature.name} wait for each other: {error.args[1]}") from None

    def redirect(self, references: Mapping[str, str]) -> None:
        """What takes the values of the first takes those of the second."""
        for node in self.proto.node_def:
            for place, given in enumerate(node.input):
                if given in references:
                    node.input[place] = references[given]
        for name, given in self.proto.ret.items():
            if given in references:
                self.proto.ret[name] = references[given]

    def node(self, name: str) -> Any:
        """The node of this name."""
        return next(each for each in self.proto.node_def if each.name == name)


_READ_ONLY = auto_control_deps_utils.READ_ONLY_RESOURCE_INPUTS_ATTR


def new_node(name: str, op: str, inputs: Sequence[str], **attributes: Any) -> Any:
    """A node of a definition, whose attributes are types, ints or bools."""
    node = node_def_pb2.NodeDef(name=name, op=op, input=inputs)
    for key, value in attributes.items():
        if isinstance(value, tf.DType):
            node.attr[key].type = value.as_datatype_enum
        elif isinstance(value, bool):
            node.attr[key].b = value
        else:
            node.attr[key].i = value
    return node


def is_for_xla(definition: Any) -> bool:
    """Whether XLA compiles a function."""
    return _XLA in definition.attr and bool(definition.attr[_XLA].b)


def new_constant(name: str, value: Any) -> Any:
    """A node with integers."""
    node = new_node(name, "Const", [], dtype=tf.int32)
    node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, tf.int32))
    return node


def calls_in(definition: Any) -> Iterator[tuple[Any, list[Any]]]:
    """The nodes of a definition that call functions, each with the names that it calls them by."""
    for node in definition.node_def:
        if node.op in CALLING:
            listed = [each.func for each in node.attr.values() if each.HasField("func")]
            listed += [func for each in node.attr.values() if each.HasField("list") for func in each.list.func]
            yield node, listed


def made_stateful(node: Any) -> None:
    """The function that a node calls does more now than its results show."""
    node.op = _STATEFUL.get(node.op, node.op)


def output_of(op: Any, number: int) -> str:
    """What a definition calls an output of an op."""
    for argument in op.op_def.output_arg:
        if argument.number_attr:
            size = int(op.get_attr(argument.number_attr))
        elif argument.type_list_attr:
            size = len(op.get_attr(argument.type_list_attr))
        else:
            size = 1
        if number < size:
            return f"{op.name}:{argument.name}:{number}"
        number -= size
    raise ValueError(f"{op.name} has no such output")


def node_of(reference: str) -> str:
    """The name of the node, or argument, that a node's input refers to."""
    return reference.removeprefix("^").partition(":")[0]


def below(scope: str, definition: Any) -> Any:
    """The same definition, with the names of all its nodes below a scope. A tape names the ops of a gradient after
    those of the forward pass, whatever the scope in which it computes the gradient."""
    names = {node.name: f"{scope}{node.name}" for node in definition.node_def if not node.name.startswith(scope)}

    def named(reference: str) -> str:
        node = node_of(reference)
        return reference.replace(node, names[node], 1) if node in names else reference

    made = type(definition)()
    made.CopyFrom(definition)
    for node in made.node_def:
        node.name = names.get(node.name, node.name)
        for place, given in enumerate(node.input):
            node.input[place] = named(given)
        if "_class" in node.attr:
            listed = node.attr["_class"].list
            listed.s[:] = [
                b"loc:@" + named(each.decode().removeprefix("loc:@")).encode() if each.startswith(b"loc:@") else each
                for each in listed.s
            ]
    for results in (made.ret, made.control_ret):
        for key, reference in list(results.items()):
            results[key] = named(reference)
    return made


def results_of(definition: Any) -> Sequence[str]:
    """The references of a definition's results, in their order."""
    return [definition.ret[each.name] for each in definition.signature.output_arg]
