"""Ops of which TensorFlow keeps no stack."""

from tb_gradflow.trace.source import frames_of


def test_an_op_without_a_stack_has_no_frames() -> None:
    assert frames_of(None) == []
