"""The tensors of edges."""

from __future__ import annotations

from dataclasses import replace

from tb_gradflow.analyse.diagnose import diagnose
from tb_gradflow.analyse.graph.op_sets import is_without_elements, shape_along, tensor_of
from tb_gradflow.record.schema import Edge, Op, Tensor
from tests.store.samples import session, trace


def test_the_state_of_a_variable_is_no_tensor() -> None:
    """An assignment has no outputs, and what reads the variable after it has an edge from it."""
    whole = trace()
    assign = Op("assign", "AssignVariableOp", (Edge(0, 0, 1, "dtype", False),), (), 0, None, None, 1, None)
    read = Op(
        "read", "ReadVariableOp", (Edge(6, 0, 0, "state", False),), (Tensor((0, 2), "int32"),), 0, None, 1, None, None
    )
    with_state = replace(whole, ops=(*whole.ops, assign, read))
    [state], [given] = read.inputs, assign.inputs

    assert tensor_of(with_state, state) is None
    assert shape_along(with_state, state) is None
    assert not is_without_elements(with_state, state)
    assert tensor_of(with_state, given) == whole.ops[0].outputs[0]
    assert tensor_of(with_state, replace(given, op=-1)) is None
    assert diagnose(with_state, session(), None, None, (), -1).findings
