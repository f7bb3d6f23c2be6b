"""Observes a function that was traced when nobody looked on."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tb_gradflow.analyse.words.phrases import DECIDED_ONCE
from tb_gradflow.trace.capture.collector import Collector
from tb_gradflow.trace.engine.calls import MADE_AGAIN, graphs_called
from tb_gradflow.trace.engine.draws import Draws
from tb_gradflow.trace.engine.repeated import NotRepeatable, Request, repeated, request_in, requests_gradient
from tb_gradflow.trace.graph.flat_ops import Known
from tb_gradflow.trace.graph.flatten import is_write
from tb_gradflow.trace.graph.variables import Variables
from tb_gradflow.trace.source.frames import frames_of
from tb_gradflow.trace.source.statements import condition_of_request
from tb_gradflow.trace.source.user_line import is_users
from tb_gradflow.trace.step.observation import Observation, observation_in, observed


def observed_again(
    function: Any, variables: Callable[[], Variables], collector: Callable[..., Collector]
) -> Observation | None:
    """What would have been observed of a `ConcreteFunction`, from its graph alone: the user's Python code does not run.
    `None` if it requests no gradient.

    Args:
        function: See above.
        variables: Returns the variables of the model.
        collector: See `Observation`; it is also given what is `known` of the ops, see `Flattener`.

    Raises:
        NotRepeatable: that is not possible.
    """
    known = observation_in(function)
    graphs = [graph for graph in graphs_called(function) if requests_gradient(graph)]
    if known is not None or not graphs:
        return known
    if len(graphs) > 1:
        raise NotRepeatable("several of the functions that it calls compute gradients")
    draws = Draws(function._inference_function)
    if draws.has_seeds or draws.unshared:
        raise NotRepeatable("it draws seeded random numbers, whose position is not known any more")
    [graph] = graphs
    request = request_in(graph, list(_choices(graph, variables())))
    if _is_scaled(request):
        raise NotRepeatable("its loss is multiplied by a variable, such as a loss scale")
    ops = {op.name: Known(op.type, frames=frames_of(op.traceback)) for op in graph.get_operations()}
    observation = Observation(functools.partial(collector, known=ops), [_NOTE])
    with observed(observation, lambda error, each: None):
        again = repeated(graph, request)
    for each in observation.collectors:
        for call in each.calls:
            call.frames = frames_of(request.seed.traceback)
    setattr(graph, MADE_AGAIN, again)
    return observation


def without_gradient(called: Sequence[Any]) -> str:
    """Why functions request no gradient, with the condition under which alone the user's code requests one."""
    graphs = (graph for function in called for graph in graphs_called(function))
    frames = (frame for graph in graphs for op in graph.get_operations() for frame in frames_of(op.traceback))
    for file, line in dict.fromkeys((frame.file, frame.line) for frame in frames if is_users(frame.file)):
        found = condition_of_request(file, line)
        if found is not None:
            return _BY_CONDITION.format(file=Path(file).name, line=found[0], code=found[1])
    return "its step requests no gradient."


_BY_CONDITION = (
    "its step requests no gradient: Python decided `{code}` ({file}:{line}) once, while the step was compiled, and it "
    "was false then. "
) + DECIDED_ONCE


def _choices(graph: Any, variables: Variables) -> Iterator[Sequence[Any]]:
    """For which variables the gradient may have been requested: those that can be trained, or those of them that could
    be when the step was traced."""
    listed = [each.variable for each in variables if each.trainable] or list(graph.trainable_variables)
    yield listed
    inside = {id(outer): inner for outer, inner in graph.captures}
    written = {id(op.inputs[0]) for op in graph.get_operations() if is_write(op.type)}
    yield [each for each in listed if id(inside.get(id(each.handle))) in written or id(each.handle) not in inside]


def _is_scaled(request: Request) -> bool:
    """Whether the differentiated tensor is a product with the value of a variable."""
    op = request.loss.op
    return op.type in ("Mul", "RealDiv") and any(each.op.type == "ReadVariableOp" for each in op.inputs)


_NOTE = (
    "This step was compiled before the recorder came, so it was read from its graph. What the optimizer makes of each "
    "gradient is not recorded, nor to which layer an op belongs. `model.compile(...)` before `fit` records both."
)
