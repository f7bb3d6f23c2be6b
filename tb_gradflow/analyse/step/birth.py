"""Where the forward pass of a step stops being finite, according to its measured values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tb_gradflow.analyse.graph.op_sets import is_float, tensor_of
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.analyse.step.measured import Measured
from tb_gradflow.record.schema import OpValue

Test = Callable[[OpValue], bool]


@dataclass(frozen=True, slots=True)
class Birth:
    """The first op whose value is not finite, on the path to a target that is not.

    Attributes:
        op: Index of the op.
        inside: The ops without measured values in the loop, branch or function that the op stands for, the nearest
            first: one of them broke. Empty if the op itself is known to have broken.
        given: Whether its input from outside of the step's ops was already not finite.
    """

    op: int
    inside: tuple[int, ...] = ()
    given: bool = False


def is_nan(value: OpValue) -> bool:
    return value.nan_count > 0


def is_infinite(value: OpValue) -> bool:
    return value.inf_count > 0 or value.negative_inf_count > 0


def is_bad(value: OpValue) -> bool:
    return is_nan(value) or is_infinite(value)


class Values:
    """The values of one step, by op and output."""

    def __init__(self, topology: Topology, values: Sequence[OpValue]) -> None:
        self._topology = topology
        self._outputs = {(each.op, each.output): each for each in values if each.input < 0}
        self._inputs = {(each.op, each.input): each for each in values if each.input >= 0}

    def of(self, op: int, output: int = 0) -> OpValue | None:
        """An output of an op; None if it was not measured."""
        return self._outputs.get((op, output))

    def given_to(self, op: int, place: int) -> OpValue | None:
        """An input of an op; None likewise."""
        found = self._inputs.get((op, place))
        edge = next((each for each in self._topology.trace.ops[op].inputs if each.input == place), None)
        return found if found is not None or edge is None else self.of(edge.op, edge.output)

    def outputs(self, op: int) -> list[OpValue]:
        return [value for (each, _), value in self._outputs.items() if each == op] if op >= 0 else []

    def given(self, op: int) -> list[OpValue]:
        """The inputs of an op that no op of the trace computes."""
        return [value for (each, _), value in self._inputs.items() if each == op]

    def inputs(self, op: int) -> list[OpValue]:
        """The inputs of an op that were measured."""
        edges = self._topology.trace.ops[op].inputs
        made = [self.of(edge.op, edge.output) for edge in edges if edge.op >= 0]
        return [*(value for value in made if value is not None), *self.given(op)]

    def makers(self, op: int, test: Test) -> list[int]:
        """The ops that compute those inputs of an op for which it holds."""
        edges = self._topology.trace.ops[op].inputs
        found = [(edge.op, self.of(edge.op, edge.output)) for edge in edges if edge.op >= 0]
        return [maker for maker, value in found if value is not None and test(value)]

    def unseen(self, op: int) -> list[int]:
        """The ops that compute floating-point inputs of an op and were not measured, such as those inside a loop."""
        ops = self._topology.trace.ops
        return [
            edge.op
            for edge in ops[op].inputs
            if edge.op >= 0
            and self.of(edge.op, edge.output) is None
            and (tensor := tensor_of(self._topology.trace, edge)) is not None
            and is_float(tensor.dtype)
        ]


def values_of(measured: Measured) -> Values | None:
    """None if the forward pass was not measured."""
    known = measured.values
    if known is None:
        return None
    return measured.once("values", lambda: Values(measured.topology, known.values))


def birth_of(measured: Measured, target: int) -> Birth | None:
    """Where the target stops being finite; None if that was not measured, or if the target is finite."""
    if measured.loss_is_finite(target) or values_of(measured) is None:
        return None
    return measured.once(("birth", target), lambda: _birth_of(measured, target))


def birth_before(measured: Measured, op: int) -> Birth | None:
    """Where the input of an op stops being finite although the target does not show it, as after a bounded function;
    None if all of the input is finite, or was not measured."""
    values = values_of(measured)
    if values is None or op < 0:
        return None

    def search() -> Birth | None:
        makers = values.makers(op, is_bad)
        return _first(values, makers, is_bad) if makers else None

    return measured.once(("birth before", op), search)


def _birth_of(measured: Measured, target: int) -> Birth | None:
    values, goal = values_of(measured), measured.topology.trace.targets[target].op
    assert values is not None
    if goal < 0 or not any(map(is_bad, values.outputs(goal))):
        return None
    test = is_nan if any(map(is_nan, values.outputs(goal))) else is_infinite
    first = _first(values, [goal], test)
    if first is None or test is is_infinite or first.given or first.inside:
        return first
    # NaN from infinities: infinity minus infinity, zero times infinity. Infinities in the input of the program are a
    # mask.
    infinite = values.makers(first.op, is_infinite)
    before = _first(values, infinite, is_infinite) if infinite else None
    return first if before is None or before.given else before


def _first(values: Values, starts: Sequence[int], test: Test) -> Birth | None:
    """Going back along the ops for which it holds, the first op in the order of the trace that has no such input."""
    queue, found = list(dict.fromkeys(starts)), []
    for op in queue:  # grows while it is walked
        makers = values.makers(op, test)
        unseen = _unseen_before(values, op)
        # The input of the iterations of a loop.
        makers += [maker for each in unseen for maker in values.makers(each, test)]
        if makers:
            queue.extend(maker for maker in dict.fromkeys(makers) if maker not in queue)
        else:
            given = any(map(test, values.given(op)))
            found.append(Birth(op, (op, *unseen) if unseen and not given else (), given))
    return min(found, key=lambda birth: birth.op, default=None)


def _unseen_before(values: Values, op: int) -> list[int]:
    return [*walked(values.unseen(op), values.unseen)]


def is_cleared(measured: Measured, target: int, op: int) -> bool:
    """Whether measured values show that an op is not the reason why a target is not finite: its output is finite, or
    its input is not."""
    values = values_of(measured)
    if values is None or measured.loss_is_finite(target):
        return False
    made = values.outputs(op)
    if made and not any(map(is_bad, made)):
        return True
    test = is_nan if any(map(is_nan, made)) else is_infinite
    return bool(values.makers(op, test)) or any(map(test, values.given(op)))
