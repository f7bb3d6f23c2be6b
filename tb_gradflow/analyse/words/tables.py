"""Rows that are looked up by a position: the table in the user's line."""

from __future__ import annotations

from dataclasses import dataclass

from tb_gradflow.analyse.evidence.discrete import INDEX_INPUTS
from tb_gradflow.analyse.evidence.suspects import discrete_part
from tb_gradflow.analyse.graph.op_sets import LOOKUPS
from tb_gradflow.analyse.words.code import Call, bracketed, call_on
from tb_gradflow.analyse.words.names import Group, called, namespace, source_of


@dataclass(frozen=True, slots=True)
class Row:
    """A look-up that is the only use of a position.

    Attributes:
        call: The user's own call of it.
        table: The table that contains the rows.
        rank: Its number of axes.
        keras: Whether they write it in Keras's functions.
    """

    call: Call
    table: str
    rank: int
    keras: bool

    def weighed(self, weights: str) -> str:
        """The same with a weight for every row, as code."""
        if self.rank == 1:
            total = "keras.ops.sum" if self.keras else "tf.reduce_sum"
            return f"`{total}({weights} * {bracketed(self.table)}, axis=-1)`"
        product = "keras.ops.matmul" if self.keras else "tf.matmul"
        return f"`{product}({weights}, {self.table})`"


def looked_up(group: Group) -> Row | None:
    """The one look-up along the first axis that takes the culprit's positions; None if there is another use of them."""
    ops, uses = group.trace.ops, discrete_part(group.suspect).uses
    takers = {use.consumer for use in uses}
    taker = takers.pop() if len(takers) == 1 else -1
    if taker < 0 or ops[taker].type not in LOOKUPS or any(use.input != INDEX_INPUTS[ops[taker].type] for use in uses):
        return None
    source = source_of(group.trace, taker)
    call = call_on(source.code, called(group.trace, taker).strip("`")) if source is not None else None
    table = (call.argument(0, "params") or call.argument(0, "x")) if call is not None else None
    rank = _rank_of_table(group, taker)
    if call is None or table is None or rank == 0 or any(each.startswith(_OTHERWISE) for each in call.arguments):
        return None
    return Row(call, table, rank, namespace(group) == "keras.ops")


# Along another axis, or a different row for each element of the batch.
_OTHERWISE = ("axis=", "batch_dims=")


def _rank_of_table(group: Group, taker: int) -> int:
    """How many axes the table has; 0 if that is unknown."""
    op = group.trace.ops[taker]
    if op.reads is not None:
        return len(group.trace.variables[op.reads].shape)
    table, positions = _shape_of_input(group, taker, 0), _shape_of_input(group, taker, 1)
    rows = op.outputs[0].shape if op.outputs else None
    if table is None and rows is not None and positions is not None:
        return len(rows) - len(positions) + 1
    return len(table) if table is not None else 0


def _shape_of_input(group: Group, op: int, place: int) -> tuple[int, ...] | None:
    edge = next((edge for edge in group.trace.ops[op].inputs if edge.input == place and edge.op >= 0), None)
    outputs = group.trace.ops[edge.op].outputs if edge is not None else ()
    return outputs[edge.output].shape if edge is not None and edge.output < len(outputs) else None
