"""A step that has run eagerly, as the function that it would have been."""

from __future__ import annotations

import itertools
from typing import Any

import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import atomic_function

from tb_gradflow.trace.eager.shadow import Shadow
from tb_gradflow.trace.engine.additions import SCOPE
from tb_gradflow.trace.engine.copies import variables_given
from tb_gradflow.trace.engine.effects import Effects
from tb_gradflow.trace.experiments.loss_alone import LastStep

_NUMBERS = itertools.count()


def last_step_of(shadow: Shadow) -> LastStep:
    """The step with this shadow; nothing is added to that any more. Its variables have the values that it has read."""
    graph = shadow.graph
    args, graph.inputs = ([each[place] for each in graph.captures] for place in (0, 1))
    function: Any = atomic_function.from_func_graph(f"{SCOPE}_eager_{next(_NUMBERS)}", graph, {})
    first: dict[str, str] = {}
    for op in graph.get_operations():
        if op.type == "ReadVariableOp":
            first.setdefault(op.inputs[0].name, op.outputs[0].name)
    values = {
        number: shadow.value(first[graph.inputs[number].name])
        if graph.inputs[number].name in first
        else tf.raw_ops.ReadVariableOp(resource=args[number], dtype=dtype)
        for number, dtype in variables_given(function).items()
    }
    effects = Effects(function)
    return LastStep(function, args, values, effects, effects.given(effects.of_eager(shadow.value)))
