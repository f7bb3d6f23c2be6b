"""Which side of a `tf.where` or branch of a `tf.cond` gets the gradient, that is, the derivative of a choice."""

from __future__ import annotations

from tb_gradflow.analyse.graph.op_sets import tensor_of
from tb_gradflow.analyse.words.code import call_on
from tb_gradflow.analyse.words.names import Group, called, source_of
from tb_gradflow.record.schema import Tensor


def who_gets_it(group: Group, choice: int) -> str:
    """A sentence on the share of the gradient that each side of a `tf.where` gets in this step; empty if it is not
    known."""
    taken = _share_of_first(group, choice)
    if taken is None:
        return ""
    first, second = _sides(group, choice)
    parts = [(first, taken), (second, 1 - taken)]
    told = [f"{side} in {share:.0%} of the elements" for side, share in parts if share > 0]
    hands = called(group.trace, choice)
    return f" {hands} passes the gradient to the side that it selects: {', '.join(told)}; its condition gets none."


def _sides(group: Group, choice: int) -> tuple[str, str]:
    """The user's expressions for both cases, as written."""
    source, name = source_of(group.trace, choice), called(group.trace, choice).strip("`")
    call = call_on(source.code, name) if source is not None else None
    first, second = ((call.argument(place, name) if call is not None else None) for place, name in ((1, "x"), (2, "y")))
    return f"`{first}`" if first else "the first side", f"`{second}`" if second else "the second"


def _share_of_first(group: Group, choice: int) -> float | None:
    """The share of the elements in which the first side is selected: those in which its gradient is not zero, among
    those in which the gradient of the result is not zero."""
    suspect, ops = group.suspect, group.trace.ops
    whole = suspect.measured.of_op(suspect.target, choice) if suspect.target >= 0 else None
    result = ops[choice].outputs[0] if ops[choice].outputs else None
    if whole is None or whole.zero_fraction == 1 or whole.nan_count or whole.inf_count:
        return None
    for edge in ops[choice].inputs:
        if edge.input == 0 or edge.op < 0 or list(suspect.topology.onward(edge.op)) != [choice]:
            continue
        side = suspect.measured.of_op(suspect.target, edge.op)
        if (
            side is None
            or side.nan_count
            or side.inf_count
            or not _alike(tensor_of(suspect.topology.trace, edge), result)
        ):
            continue
        share = min((1 - side.zero_fraction) / (1 - whole.zero_fraction), 1.0)
        return share if edge.input == 1 else 1 - share
    return None


def _alike(side: Tensor | None, result: Tensor | None) -> bool:
    """Whether both have the same number of elements: the gradient of a broadcast value is a sum."""
    return side is not None and result is not None and side.shape is not None and side.shape == result.shape
