"""Terms of a loss that a nested `tf.function` sums up. A tape records only the call, so its body is computed again in a
separate function, and differentiated there with respect to its inputs. From there on the tape of the step continues.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import tensorflow as tf

from tb_gradflow.trace.engine.definitions import CALLING, CALLS
from tb_gradflow.trace.engine.reached import behind
from tb_gradflow.trace.graph.flat_ops import FlatOp, Ref
from tb_gradflow.trace.graph.flatten import Flattener, function_graph, is_write
from tb_gradflow.trace.numerics.fusion import is_constant, may_be_merged, seen_apart
from tb_gradflow.trace.terms.linear import Actual, is_small
from tb_gradflow.trace.terms.summands import Ground, Inside, Summand, summands_of
from tb_gradflow.trace.terms.written import Written
from tb_gradflow.trace.tf_internals.captured_tensors import around

_READS = frozenset({"ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VarIsInitializedOp", "VariableShape"})
"""Ops that TensorFlow calls stateful, and that can be run again."""


@dataclass(frozen=True, slots=True)
class _Body:
    """A call, and the function that it runs.

    Attributes:
        op: The call.
        path: The name of the call among the flat ops.
        graph: The graph of the function.
        result: The tensor of that graph that the call returns as the loss.
        flat: By name of a tensor of the graph, its flat op.
    """

    op: Any
    path: str
    graph: Any
    result: Any
    flat: dict[str, Ref]


class Calls:
    """Looks for terms inside of the calls of a step.

    Args:
        flattener: The graph of the step.
        moved: Indices of the flat ops that depend on the sources.
        actual: See `linear`.
        exact: See `fusion`.

    Attributes:
        problem: Why the terms in a call cannot be measured; empty if they can.
    """

    def __init__(self, flattener: Flattener, moved: set[int], actual: Actual, *, exact: bool) -> None:
        self.problem = ""
        self._flattener = flattener
        self._actual = actual
        self._moved = moved
        self._exact = exact

    def opened(self, summands: Sequence[Summand]) -> list[Summand]:
        """The terms, with those of the functions that they come from."""
        return [each for summand in summands for each in self._opened(summand)]

    def _opened(self, summand: Summand) -> list[Summand]:
        if summand.operand is not None:
            found = self._opened(summand.operand)
            return found if len(found) > 1 else [summand]
        is_called = summand.moves and summand.tensor.graph is self._flattener.graph
        body = self._body_of(summand.tensor) if is_called else None
        if body is None:
            return [summand]
        found, needed = self._seen_in(body, summand.written)
        if len(found) < 2:
            deeper = self._body_of(found[0].tensor, f"{body.path}/") if found else None
            if deeper is not None and len(self._seen_in(deeper, summand.written)[0]) > 1:
                self.problem = f"{_unmeasured(deeper)} is called by another nested function. {_ADVICE}"
            return [summand]
        if problem := self._problem_of(body, _ops_for(needed)):
            self.problem = f"{_unmeasured(body)} {problem}. {_ADVICE}"
            return [summand]
        return self._measured(body, summand, needed)

    def _seen_in(self, body: _Body, written: Written) -> tuple[list[Summand], list[Any]]:
        """The terms in a function, without any value; and the tensors that are needed for them."""
        needed: dict[str, Any] = {}
        with tf.Graph().as_default():
            weight = tf.compat.v1.placeholder(body.result.dtype, body.result.shape)
            found = self._terms_in(body, weight, written, _stand_in(needed))
        needed |= {each.tensor.name: each.tensor for each in found}
        return found, list(needed.values())

    def _body_of(self, tensor: Any, path: str = "") -> _Body | None:
        """The function whose result a tensor is; None if it is not."""
        op = tensor.op
        if op.type not in CALLS or not is_small(tensor):
            return None
        graph = function_graph(op, op.get_attr("f").name)
        place = tensor.value_index
        if graph is None or place >= len(graph.outputs):
            return None
        result = graph.outputs[place]
        # TensorFlow returns each result of a function through an identity.
        while result.op.type == "Identity":
            result = result.op.inputs[0]
        flat = {
            own.name: Ref(index, number)
            for index, each in self._inside(path + op.name)
            if each.op.graph is graph
            for number, own in enumerate(each.tensors)
        }
        return (
            _Body(op, path + op.name, graph, result, flat) if result.name in flat or result.op.type in CALLS else None
        )

    def _inside(self, path: str) -> list[tuple[int, FlatOp]]:
        """The flat ops of a call."""
        ops = self._flattener.ops
        return [(index, each) for index, each in enumerate(ops) if each.nested and each.name.startswith(f"{path}/")]

    def _terms_in(self, body: _Body, weight: Any, written: Written, actual: Actual) -> list[Summand]:
        def moves(tensor: Any) -> bool:
            ref = body.flat.get(tensor.name)
            return ref is not None and ref.op in self._moved

        ground = Ground(actual, moves, lambda tensor: is_constant(tensor.op), lambda _: False)
        return summands_of([(body.result, weight)], ground, written)

    def _problem_of(self, body: _Body, needed: Mapping[str, Any]) -> str:
        """Why these ops of the body cannot be run again; empty if they can."""
        functions = tuple(f"{body.path}/{name}/" for name, op in needed.items() if op.type in CALLING)
        inside = [
            (index, each)
            for index, each in self._inside(body.path)
            if (each.op.name in needed if each.op.graph is body.graph else each.name.startswith(functions))
        ]
        for _, each in inside:
            kind = str(each.op.type)
            # Of ops that run functions, it counts whether the ops of their bodies can be run again.
            if each.op.op_def.is_stateful and kind not in _READS | CALLING:
                why = "changes a variable" if is_write(kind) else f"runs `{kind}`"
                return f"{why}, which must happen only once in a step"
        read = {each.reads for _, each in inside} - {None}
        first = min((index for index, _ in inside), default=0)
        if any(each.writes in read for each in self._flattener.ops[first:]) or _writes_what_it_reads(body, needed):
            return "reads a variable that the step changes"
        if any(self._actual(tensor) is None for tensor in body.op.inputs):
            return "was called with values that are not known any more"
        return ""

    def _measured(self, body: _Body, summand: Summand, needed: Sequence[Any]) -> list[Summand]:
        arguments = [self._read(self._actual(tensor)) for tensor in body.op.inputs]
        ops = _ops_for(needed)
        definition = _definition_of(body.graph, ops)
        found: list[Summand] = []
        reached: list[list[int]] = []

        def terms_again() -> Any:
            graph = tf.compat.v1.get_default_graph()
            inputs = [graph.capture(tensor) for tensor in arguments]
            known = dict(zip((each.name for each in body.graph.inputs), inputs, strict=True))
            names = [tensor.name for tensor in needed if tensor.name not in known]
            given = {name: tensor for name, tensor in known.items() if name.rpartition(":")[0] in ops}
            copies = tf.graph_util.import_graph_def(definition, given, names, name="again")
            known |= dict(zip(names, copies, strict=True))
            weight = graph.capture(summand.weight)
            found[:] = self._terms_in(body, weight, summand.written, lambda tensor: known.get(tensor.name))
            results = []
            for each in found:
                value = known[each.tensor.name]
                arrived = tf.gradients([value], inputs, [each.weight]) if each.moves else [None] * len(inputs)
                reached.append([place for place, gradient in enumerate(arrived) if gradient is not None])
                results.append((value, each.weight, [tf.convert_to_tensor(arrived[place]) for place in reached[-1]]))
            return results

        # The optimizer of TensorFlow's graphs must not recognise the ops of the step in these.
        again = tf.function(terms_again, autograph=False, experimental_attributes={"_noinline": True})()
        targets = [around(self._actual(tensor)) for tensor in body.op.inputs]
        return [
            replace(
                each,
                weight=weight,
                inside=Inside(value, [targets[place] for place in places], gradients, body.flat[each.tensor.name]),
            )
            for each, places, (value, weight, gradients) in zip(found, reached, again, strict=True)
        ]

    def _read(self, tensor: Any) -> Any:
        if self._exact and tensor.dtype.is_floating and may_be_merged(tensor):
            apart = seen_apart(tensor)
            if apart is None:
                raise ValueError("an input of the function cannot be read without changing how the step rounds")
            return apart
        return tensor


_ADVICE = (
    "Remove `@tf.function` from it, because the function around it is compiled as a whole anyway, or return the terms "
    "and add them outside."
)


def _unmeasured(body: _Body) -> str:
    return f"The terms of the loss in the nested function `{body.graph.name}` are not measured, because it"


def _writes_what_it_reads(body: _Body, needed: Mapping[str, Any]) -> bool:
    """Whether the function, or the step after it, writes a variable that these ops read, listed or not."""
    read = {op.inputs[0].name for op in needed.values() if op.type in _READS}
    passed = {outer.name for outer, inner in zip(body.op.inputs, body.graph.inputs, strict=True) if inner.name in read}
    later = [op for op in body.op.graph.get_operations() if op._id > body.op._id]
    return any(
        is_write(op.type) and op.inputs[0].name in handles
        for ops, handles in ((body.graph.get_operations(), read), (later, passed))
        for op in ops
    )


def _ops_for(tensors: Sequence[Any]) -> dict[str, Any]:
    """The ops of a graph that tensors are computed by, by name."""
    return {op.name: op for op in behind(tensor.op for tensor in tensors)}


def _definition_of(graph: Any, ops: Mapping[str, Any]) -> Any:
    """Some ops of a graph, without the order in which they run. What else the function does, such as updates of moving
    averages, happens once."""
    whole = graph.as_graph_def()
    definition = tf.compat.v1.GraphDef(versions=whole.versions, library=whole.library)
    for node in whole.node:
        if node.name in ops:
            kept = definition.node.add()
            kept.CopyFrom(node)
            del kept.input[:]
            kept.input.extend(each for each in node.input if not each.startswith("^"))
    return definition


def _stand_in(needed: dict[str, Any]) -> Actual:
    made: dict[str, Any] = {}

    def actual(tensor: Any) -> Any:
        needed[tensor.name] = tensor
        if tensor.name not in made:
            made[tensor.name] = tf.compat.v1.placeholder(tensor.dtype, tensor.shape)
        return made[tensor.name]

    return actual
