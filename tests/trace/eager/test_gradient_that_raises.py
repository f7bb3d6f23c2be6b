"""A loop that ends with an error while it takes a gradient: the op whose gradient function raised it is named."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

import tb_gradflow
from tb_gradflow.recorded import Recorded
from tb_gradflow.serve.reports.report import Report

PROGRAM = """
import tensorflow as tf

weights, bias = tf.Variable(tf.ones(3), name="weights"), tf.Variable(tf.zeros(3), name="bias")
for _ in range(2):
    with tf.GradientTape() as tape:
        matrix = tf.SparseTensor([[0, 0], [1, 1], [2, 2]], weights, (3, 3))
        matrix = matrix / FACTOR
        loss = tf.reduce_sum(tf.square(tf.sparse.sparse_dense_matmul(matrix, tf.eye(3)) + bias))
    gradients = tape.gradient(loss, [weights, bias])
    weights.assign_sub(0.1 * gradients[0])
"""


def recorded(program: str, directory: Path) -> Report:
    file = directory / "program.py"
    file.write_text(program)
    recorder = Recorded(lambda: str(directory / "logs"), {})
    recorder.start()
    try:
        exec(compile(program, str(file), "exec"), vars(ModuleType("program")))
    finally:
        recorder.stop()
    return tb_gradflow.open_log(directory / "logs" / recorder.names[0]).report()


def test_the_op_of_the_forward_pass_is_named_with_the_error(tmp_path: Path) -> None:
    """A sparse tensor divided by a scalar: TensorFlow's gradient function expects a matrix."""
    with pytest.raises(Exception, match="at least a vector"):
        recorded(PROGRAM.replace("FACTOR", "2.0"), tmp_path)

    report = tb_gradflow.open_log(next((tmp_path / "logs").iterdir())).report()
    [finding] = [each for each in report.findings if each.severity == "error"]
    assert finding.op is not None
    assert finding.op.type == "SparseDenseCwiseDiv"
    assert finding.source is not None
    assert finding.source.code.strip() == "matrix = matrix / 2.0"
    assert "at least a vector" in finding.message


def test_a_matrix_of_one_element_is_healthy(tmp_path: Path) -> None:
    assert not [
        each
        for each in recorded(PROGRAM.replace("FACTOR", "tf.fill([1, 1], 2.0)"), tmp_path).findings
        if each.severity == "error"
    ]
