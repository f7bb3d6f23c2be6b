"""Rows of statistics are numbered once, by the table that owns them."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

import tb_gradflow
from tb_gradflow.trace.numerics.statistics_table import Block, StatisticsTable
from tests.trace.recording import COLUMN, read


def row(first: float) -> Any:
    return tf.constant([first, 0.0, 0.0, 0.0, 0.0, 0.0])


def test_a_rows_number_is_where_the_table_has_its_statistics() -> None:
    table, blocks = StatisticsTable(), [Block(), Block(), Block()]
    rows = [
        (first, block.add(row(first))) for first, block in zip((1.0, 2.0, 3.0, 4.0), (*blocks, blocks[0]), strict=True)
    ]
    for block in reversed(blocks):
        block.stack()
        table.append(block)

    number_of, found = table.numbers(), table.take()

    assert [float(found[number_of(each), 0]) for _, each in rows] == [first for first, _ in rows]


def test_rows_that_could_not_be_completed_are_forgotten_and_those_before_stay() -> None:
    block = Block()
    first = block.add(row(1.0))
    block.stack()
    block.add(row(2.0))

    block.drop_waiting()
    second = block.add(row(3.0))
    block.stack()

    number_of = StatisticsTable([block]).numbers()
    assert [number_of(first), number_of(second)] == [0, 1]
    assert block.tensor.numpy()[:, 0].tolist() == [1.0, 3.0]


def test_a_scale_of_the_loss_divides_only_the_rows_that_it_was_in() -> None:
    block = Block()
    block.add(row(8.0))
    block.stack(tf.constant(4.0))
    block.add(row(8.0))
    block.stack()

    assert block.tensor.numpy()[:, 0].tolist() == [2.0, 8.0]


def test_gradients_in_functions_that_are_never_called_take_no_rows(tmp_path: Any) -> None:
    """Several gradients of one step, some of them in functions: each variable's row has its own gradient's norm."""
    slow, fast = tf.Variable(2.0, name="slow"), tf.Variable(3.0, name="fast")

    @tf.function
    def gradient_of(variable: Any, power: int) -> Any:
        with tf.GradientTape() as tape:
            loss = variable**power
        return tape.gradient(loss, variable)

    def step(x: Any) -> Any:
        gradient_of.get_concrete_function(slow, 5)
        with tf.GradientTape() as tape:
            loss = x * fast**2
        found = gradient_of(slow, 2), tape.gradient(loss, fast)
        fast.assign_sub(0.0 * found[1])
        return found

    watched = tb_gradflow.watch(tmp_path, update_freq=1)(step)
    expected = [float(each) for each in watched(tf.constant(7.0))]
    watched.flush()

    log = read(tmp_path)
    norms = {
        log.trace.variables[each.variable].name: log.gradients[0][each.row, COLUMN["norm"]]
        for each in log.trace.variable_gradients
        if each.row is not None
    }
    assert norms == {"slow": expected[0], "fast": expected[1]} == {"slow": 4.0, "fast": 42.0}
    assert len(log.trace.targets) == 2
