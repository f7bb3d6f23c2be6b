"""A sentence in a message about further ops that cut off the same variables."""

from __future__ import annotations

from tb_gradflow.analyse.graph.op_sets import is_float
from tb_gradflow.analyse.words.names import Group, called, layer_of, place_of, source_of
from tb_gradflow.record.schema import Op, Trace


def also_cut_by(group: Group) -> str:
    """A sentence on the other ops that cut off the same variables, each on a separate path; empty if there are none.

    Stops inside a library function, such as in the variance of a normalisation, need no fix. Nor do the positions that
    an op passes to the culprit next to its values, as `tf.sparse.reorder` does.
    """
    if not group.others or group.verdict.cause in ("second_order_missing", "output_not_used"):
        return ""
    trace = group.trace
    inputs = trace.ops[group.culprit].inputs if group.culprit >= 0 else ()
    valued = {edge.op for edge in inputs if edge.op >= 0 and _has_positions_beside(trace.ops[edge.op], edge.output)}
    inside = {_call_scope(op) for op in trace.ops if _stops_inside(op)}
    others = [
        op
        for op in group.others
        if op not in valued and _call_scope(trace.ops[op]) not in inside and not _is_of_a_layer(trace, op)
    ]
    own = called(trace, group.culprit) + place_of(trace, group.culprit)
    seen = [each for each in dict.fromkeys(called(trace, op) + place_of(trace, op) for op in others) if each != own]
    if not seen:
        return ""
    ways = "On another path" if len(seen) == 1 else "On other paths"
    blocks = "blocks" if len(seen) == 1 else "block"
    return f" {ways} {' and '.join(seen[:2])} {blocks} the gradient too."


def _is_of_a_layer(trace: Trace, index: int) -> bool:
    """Whether a `stop_gradient` is not the user's: it is inside a layer, and not on a line of the user's code."""
    op, source = trace.ops[index], source_of(trace, index)
    said = source is not None and "stop_gradient" in source.code
    return op.type == "StopGradient" and bool(layer_of(trace, index)) and not said


def _has_positions_beside(op: Op, output: int) -> bool:
    """Whether an op's output is floating-point, and another of its outputs is not."""
    floating = [is_float(tensor.dtype) for tensor in op.outputs]
    return output < len(floating) and floating[output] and not all(floating)


def _call_scope(op: Op) -> tuple[str, str | None]:
    """What identifies the ops of one call: the innermost name scope, and the function that was called."""
    return op.name.rpartition("/")[0], op.api


def _stops_inside(op: Op) -> bool:
    return op.type == "StopGradient" and "stop_gradient" not in (op.api or "stop_gradient")
