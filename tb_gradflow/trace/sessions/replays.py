"""The values of tensors that the program's own run does not compute, such as a loss that is not fetched: the gradient
does not need it.

They are computed in a run of their own, from the same feeds, variables and random numbers, if no op in it changes
anything or calls the program's code. What is computed from anything else, such as a random number, the next batch or
the update of a moving average, is fetched in the program's run and fed here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tensorflow.python.framework import op_def_registry

from tb_gradflow.analyse.graph.op_sets import LOOPS
from tb_gradflow.trace.engine.definitions import BRANCHES, CALLS
from tb_gradflow.trace.engine.reached import reached
from tb_gradflow.trace.graph_v1.variables_v1 import MAKERS
from tb_gradflow.trace.sessions.exact import Array, Values, is_exact
from tb_gradflow.trace.sessions.executions import Execution, types_in, variable_read_by

# These have a state for TensorFlow, but running them changes nothing, and calls nothing of the program's.
_READS = MAKERS | {"ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VariableShape", "Assert"}
_ARRAYS = ("TensorArray", "Stack")
_HANDS_ON_REFERENCE = "Ref"

_PYTHON = ("PyFunc", "EagerPyFunc")


@dataclass(frozen=True, slots=True)
class Replay:
    """A run of the recorder's own.

    Attributes:
        tensors: What it computes.
        is_after: Whether it runs after the program's run, with the values from it; else before.
        fed: The names of the tensors that it is fed with the program's values.
        fetches: Those that it is fed with what the program's run has computed, which has to fetch them.
        reads: The tensors that it is fed with the value of a variable before the program's run, and the name of the op
            that creates that variable.
    """

    tensors: tuple[Any, ...]
    is_after: bool
    fed: tuple[str, ...]
    fetches: tuple[Any, ...]
    reads: tuple[tuple[Any, str], ...]

    def feeds(self, graph: Any, values: Values, before: Values) -> dict[Any, Array]:
        """What to feed."""
        found = {graph.get_tensor_by_name(name): values[name] for name in self.fed}
        found.update((tensor, values[tensor.name]) for tensor in self.fetches)
        found.update((tensor, before[variable]) for tensor, variable in self.reads)
        return found


def replay_of(tensors: Sequence[Any], execution: Execution, *, is_later: bool = False) -> Replay | None:
    """The run that computes these tensors; `None` if it would change something, or would compute other values. If it is
    later, it is fed with each variable that it can be fed with.
    """
    impure = _Impure(tensors, execution)
    fed: set[str] = set()
    drawn: dict[str, Any] = {}
    reads: dict[str, tuple[Any, str]] = {}
    seen: set[str] = set()
    waiting = list(tensors)
    while waiting:
        tensor = waiting.pop()
        if tensor.name in seen:
            continue
        seen.add(tensor.name)
        variable = variable_read_by(tensor)
        if tensor.name in execution.fed:
            fed.add(tensor.name)
        elif tensor.op.name in impure.ops:
            if not impure.may_draw(tensor):
                return None
            drawn[tensor.name] = tensor
        elif variable is not None and execution.graph.is_feedable(tensor):
            reads[tensor.name] = tensor, variable
        else:
            waiting += _all_before(tensor.op)
    # Nothing has changed yet before the program's run, so variables need not be fed there.
    is_after = bool(drawn) or is_later
    return Replay(
        tuple(tensors), is_after, tuple(sorted(fed)), tuple(drawn.values()), tuple(reads.values()) if is_after else ()
    )


class _Impure:
    """What the recorder's own run may not compute.

    Args:
        tensors: What it is to compute.
        execution: What the program's run executes.

    Attributes:
        ops: The names of the ops that it may not run, and of those that need one, unless it is fed what they need.
    """

    def __init__(self, tensors: Sequence[Any], execution: Execution) -> None:
        self._execution = execution
        self._needed = Execution(execution.graph, tensors, fed=execution.fed).ops
        self.ops = {op.name for op in reached((op for op in self._needed.values() if not _is_pure(op)), self._users)}

    def may_draw(self, tensor: Any) -> bool:
        """Whether the program's run can be asked for a tensor."""
        execution = self._execution
        if execution.is_racing and _is_pure(tensor.op):
            return False
        return bool(execution.may_fetch(tensor) and is_exact(tensor) and execution.graph.is_feedable(tensor))

    def _users(self, op: Any) -> Iterator[Any]:
        """Those that cannot do without an op."""
        yield from (each for each in op._control_outputs if each.name in self._needed)
        for tensor in op.outputs:
            if tensor.name not in self._execution.fed and not self.may_draw(tensor):
                yield from (each for each in tensor.consumers() if each.name in self._needed)


def _all_before(op: Any) -> list[Any]:
    """The tensors that have to be computed before an op."""
    waited_for = reached(op.control_inputs, lambda before: before.control_inputs)
    return [*op.inputs, *(tensor for before in waited_for for tensor in before.inputs)]


def _is_pure(op: Any) -> bool:
    if op.type == "Placeholder":
        return False
    if op.type in CALLS | BRANCHES | LOOPS:
        return not any(True for _ in types_in(op, lambda kind: not _is_pure_type(kind)))
    return _is_pure_type(op.type)


def _is_pure_type(kind: str) -> bool:
    if kind in _READS or kind.startswith(_ARRAYS) or kind in CALLS | BRANCHES | LOOPS:
        return True
    definition = op_def_registry.get(kind)
    if definition is None or definition.is_stateful or kind.startswith(_PYTHON):
        return False
    # For TensorFlow, what changes a reference variable has no state.
    return kind.startswith(_HANDS_ON_REFERENCE) or not any(each.is_ref for each in definition.input_arg)
