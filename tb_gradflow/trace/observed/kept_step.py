"""What it takes to run a recorded step again when the program has ended."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDef
from tensorflow.python.ops.resource_variable_ops import BaseResourceVariable

from tb_gradflow.analyse.graph.op_sets import PYTHON_CALLS
from tb_gradflow.trace.engine.calls import places
from tb_gradflow.trace.engine.definitions import Definition
from tb_gradflow.trace.engine.draws import is_random
from tb_gradflow.trace.engine.effects import effects_of
from tb_gradflow.trace.engine.repeated import NotRepeatable
from tb_gradflow.trace.nonfinite.guard import Caught, Unit

MOST_BYTES = 2**30
"""Of a step's batch and variables."""

_NEXT = ("IteratorGetNext", "IteratorGetNextSync")

_REPEATABLE = ("Assert", "Print", "LookupTableFind", "LookupTableFindV2", "LookupTableSizeV2")
"""These do nothing that lasts."""


@dataclass(frozen=True, slots=True, eq=False)
class KeptStep:
    """A step of a training, before or after its update.

    Attributes:
        given: Returns what its function was given, by position and by name; an iterator returns the step's batch each
            time.
        state: The resource of each variable, and the value that it had, as an array.
    """

    given: Callable[[], tuple[Sequence[Any], Mapping[str, Any]]]
    state: Sequence[tuple[Any, Any]]

    @contextlib.contextmanager
    def restored(self) -> Iterator[None]:
        """While the context is open, the variables have the values that they had."""
        now = [(handle, tf.raw_ops.ReadVariableOp(resource=handle, dtype=value.dtype)) for handle, value in self.state]
        try:
            _assign(self.state)
            yield
        finally:
            _assign(now)


def kept_step(units: Sequence[Unit], caught: Caught | None, function: Any, name: str = "") -> KeptStep:
    """The step that was caught, or else the last one. It is `function`, or one of this name that it calls.

    Raises:
        NotRepeatable: it cannot be run again, or not without doing something again.
    """
    if len(units) != 1:
        raise NotRepeatable("it takes gradients in several functions")
    [unit] = units
    if unit.in_loop:
        raise NotRepeatable("it is one of several in a loop of the function that the program calls")
    if unit.function is not function and (not name or name not in tf.compat.as_str(unit.function.name)):
        raise NotRepeatable("its gradients are taken in a function that the program does not call itself")
    check_effects(unit.function)
    step = caught or unit.taken()
    state = [(unit.resource(number), step.arguments[number]) for number in unit.variables]
    if sum(map(_bytes, (*step.arguments.values(), *step.effects.values()))) > MOST_BYTES:
        raise NotRepeatable(f"its batch and variables take more than {MOST_BYTES / 2**30:.0f} GiB")
    if caught is None:
        _check_finite(value for _, value in state)
    arguments = _arguments(step)
    # Copies: otherwise TensorFlow would copy each variable when it changes the next time, and keep both on its device.
    return KeptStep(lambda: arguments, [(handle, np.array(value.numpy())) for handle, value in state])


def step_that_raised(
    graphs: Iterable[Any], args: Sequence[Any], kwargs: Mapping[str, Any], variables: Iterable[Any]
) -> KeptStep:
    """A step that has raised while these graphs of it were traced, so that nothing in it has run.

    Raises:
        NotRepeatable: it cannot be run, or not without doing something that lasts.
    """
    iterators = [each for each in tf.nest.flatten((args, dict(kwargs))) if isinstance(each, tf.data.Iterator)]
    if not all(map(_draws_no_python, iterators)):
        raise NotRepeatable("its batch comes from Python code, which may wait for something")
    if lasting := sorted({kind for graph in graphs for kind in _lasting_in(graph)}):
        raise NotRepeatable(f"it contains {', '.join(lasting)}, which would happen")
    state = _state_of(variables)

    def given() -> tuple[Sequence[Any], Mapping[str, Any]]:
        # Only when the program has ended: until then it may take these batches itself.
        positional, named = tf.nest.map_structure(_with_its_next, (tuple(args), dict(kwargs)))
        return positional, named

    return KeptStep(given, state)


def step_of_statements(variables: Iterable[Any], before: Iterable[tuple[Any, Any]]) -> KeptStep:
    """An eager step that has just run, or raised: its variables, and the values that some of them had before it.

    Raises:
        NotRepeatable: it cannot be run again.
    """
    known = {id(variable.handle): np.array(value) for variable, value in before if hasattr(variable, "handle")}
    state = [(handle, known.get(id(handle), value)) for handle, value in _state_of(variables)]
    _check_finite(value for _, value in state)
    return KeptStep(lambda: ((), {}), state)


def _state_of(variables: Iterable[Any]) -> list[tuple[Any, Any]]:
    """The `state` of a step: those that have a value. Raises NotRepeatable if they are too large."""
    own = [each for each in variables if isinstance(each, BaseResourceVariable)]
    if sum(map(_bytes, own)) > MOST_BYTES:
        raise NotRepeatable(f"its variables take more than {MOST_BYTES / 2**30:.0f} GiB")
    with tf.init_scope():
        return [(each.handle, np.array(each.numpy())) for each in own if each.is_initialized()]


def check_effects(function: Any) -> None:
    """Raises NotRepeatable if a `ConcreteFunction` or `AtomicFunction` does something that lasts."""
    if lasting := sorted(_lasting(getattr(function, "_inference_function", function))):
        raise NotRepeatable(f"it contains {', '.join(lasting)}, which would happen again")


def _check_finite(values: Iterable[Any]) -> None:
    if any(tf.as_dtype(value.dtype).is_floating and _is_broken(value) for value in values):
        raise NotRepeatable("its weights are no longer finite")


def _with_its_next(given: Any) -> Any:
    """An iterator that returns its next batch each time; anything else as it is."""
    if not isinstance(given, tf.data.Iterator):
        return given
    try:
        batch = next(given)
    except StopIteration:
        raise NotRepeatable("its iterator has no other batch") from None
    return iter(tf.data.Dataset.from_tensors(batch).repeat())


def _draws_no_python(iterator: Any) -> bool:
    """Whether it is certain that no Python code runs when a batch is taken."""
    datasets = [getattr(iterator, "_dataset", None)]
    for dataset in datasets:
        if not isinstance(dataset, tf.data.Dataset):
            return False
        if any(node.op in PYTHON_CALLS for each in dataset._functions() for node in all_nodes(each.function.graph)):
            return False
        datasets += dataset._inputs()
    return True


def _lasting_in(graph: Any) -> Iterator[str]:
    """As `_lasting`, in a graph that is being made."""
    while graph is not None and getattr(graph, "building_function", False):
        yield from _lasting_of(FunctionDef(node_def=all_nodes(graph)))
        graph = graph.outer_graph


def all_nodes(graph: Any) -> Iterator[Any]:
    """Those of a graph, and of all functions that may run in it."""
    known = graph.as_graph_def()
    yield from known.node
    for each in known.library.function:
        yield from each.node_def


def _bytes(value: Any) -> int:
    return max(value.dtype.size or 0, 1) * (value.shape.num_elements() or 0)


def _is_broken(value: Any) -> bool:
    return not bool(tf.reduce_all(tf.math.is_finite(value)))


def _lasting(function: Any) -> Iterator[str]:
    """The types of the ops that do something outside of it."""
    for place in places(function):
        yield from _lasting_of(place.definition)


def _lasting_of(definition: Any) -> Iterator[str]:
    for node in effects_of(Definition(definition)):
        prints = node.op == "PrintV2" and not node.attr["output_stream"].s.startswith(b"file:")
        if node.op not in (*_NEXT, *_REPEATABLE) and not prints and not is_random(node):
            yield node.op


def _arguments(step: Caught) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Those of the function, which has them in a flat order."""
    graph = step.unit.function.graph
    if graph.structured_input_signature is None:
        raise NotRepeatable("its arguments are not known")
    numbers = iter(range(len(graph.inputs)))
    drawn = [value for (_, name), value in step.effects.items() if name.split(":")[1] == "components"]

    def given(spec: Any) -> Any:
        if not isinstance(spec, tf.TypeSpec):
            return spec
        parts = [next(numbers) for _ in tf.nest.flatten(spec, expand_composites=True)]
        if isinstance(spec, tf.data.IteratorSpec):
            return _repeating(spec._element_spec, drawn)
        if missing := [each for each in parts if each not in step.arguments]:
            kinds = ", ".join(str(graph.inputs[each].dtype.name) for each in missing)
            raise NotRepeatable(f"its arguments include a {kinds}")
        return tf.nest.pack_sequence_as(spec, [step.arguments[each] for each in parts], expand_composites=True)

    args, kwargs = tf.nest.map_structure(given, graph.structured_input_signature)
    if drawn and not any(
        isinstance(each, tf.data.IteratorSpec) for each in tf.nest.flatten(graph.structured_input_signature)
    ):
        raise NotRepeatable("it takes its batch out of an iterator that is no argument")
    return args, kwargs


def _repeating(spec: Any, drawn: Sequence[Any]) -> Any:
    flat = tf.nest.flatten(spec)
    if len(drawn) != len(flat) or not all(isinstance(each, tf.TensorSpec) for each in flat):
        raise NotRepeatable("its iterator gives more than one batch of tensors")
    batch = tf.nest.pack_sequence_as(spec, drawn)
    return iter(tf.data.Dataset.from_tensors(batch).repeat())


def _assign(state: Sequence[tuple[Any, Any]]) -> None:
    for handle, value in state:
        tf.raw_ops.AssignVariableOp(resource=handle, value=tf.convert_to_tensor(value))
