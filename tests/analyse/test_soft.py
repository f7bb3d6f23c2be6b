"""Comparisons made smooth: of integers, in a `tf.where`, in a `tf.cond`, in Keras's functions."""

from __future__ import annotations

import pytest

from tb_gradflow.record.report import Finding
from tests.analyse.builders import FINE, Graph


def compared(line: str, *, chooses: str = "", branches: str = "") -> Finding:
    graph = Graph()
    mask = graph.op("Greater", graph.variable("limit"), passes="not_differentiable", dtype="bool", api=">", line=line)
    if chooses:
        weight = graph.variable("kernel")
        used = graph.op("SelectV2", mask, weight, passes=("dtype", "yes"), api="tf.where", line=chooses)
    elif branches:
        used = graph.op("If", mask, passes="not_differentiable", api="tf.cond", line=branches)
    else:
        used = graph.op("Square", graph.op("Cast", mask, passes="dtype", api="tf.cast", line=line))
    graph.target(graph.op("Mean", used))
    graph.ask("limit")
    if chooses:
        graph.ask("kernel", FINE)
    return graph.only_finding()


@pytest.mark.parametrize(
    ("chooses", "told"),
    [
        ("return tf.where(big, x, tf.zeros_like(x))", "then `gate * x`."),
        ("y = tf.where(big, x, 0.0)", "Replace `tf.where(big, x, 0.0)` with a soft choice: "),
        ("y = tf.where(big, a + b, c)", "`gate * (a + b) + (1 - gate) * c`."),
        ("y = tf.where(big, tf.math.log(x), c)", "; both sides must be finite everywhere."),
    ],
)
def test_a_choice_between_two_values_becomes_a_blend_of_them(chooses: str, told: str) -> None:
    finding = compared("big = x > self.limit", chooses=chooses)

    assert "with a soft choice: `gate = tf.sigmoid((x - self.limit) / 0.1)`, then `gate * " in finding.fix
    assert told in finding.fix


def test_a_choice_that_the_line_does_not_show_is_not_guessed_at() -> None:
    assert (
        "for example `tf.sigmoid((x - self.limit) / 0.1)`." in compared("big = x > self.limit", chooses="y = f()").fix
    )


@pytest.mark.parametrize(
    ("branches", "blend"),
    [
        ("y = tf.cond(big, lambda: 2 * x, lambda: 0.1 * x)", "`gate * (2 * x) + (1 - gate) * (0.1 * x)`"),
        (
            "y = tf.cond(big, true_fn=self.loud, false_fn=self.quiet)",
            "`gate * self.loud() + (1 - gate) * self.quiet()`",
        ),
        ("if big:", "then `gate * true_branch + (1 - gate) * false_branch`"),
    ],
)
def test_the_branches_of_a_condition_are_blended(branches: str, blend: str) -> None:
    finding = compared("big = x > self.limit", branches=branches)

    assert finding.cause == "predicate_only"
    assert blend in finding.fix


def test_the_cast_around_a_comparison_is_replaced_with_it() -> None:
    fix = compared("mask = tf.cast(x > self.limit, tf.float32)").fix

    assert fix.startswith("Replace `tf.cast(x > self.limit, tf.float32)` with a soft step, `soft = tf.sigmoid(")
    assert "`soft + tf.stop_gradient(tf.cast(x > self.limit, tf.float32) - soft)`" in fix


@pytest.mark.parametrize(
    "line",
    ["m = tf.cast((x > self.limit) & (x <= top), tf.float32)", "m = tf.logical_and(x > self.limit, x <= top)"],
)
def test_a_band_between_two_limits_becomes_the_product_of_two_soft_steps(line: str) -> None:
    """A soft step inside `tf.logical_and` or beside `&` would not run."""
    fix = compared(line).fix

    assert fix.endswith("`tf.sigmoid((x - self.limit) / 0.1) * tf.sigmoid((top - x) / 0.1)`.")
    assert fix.startswith(("Replace `tf.logical_and(x > self.limit, x <= top)`", "Replace `(x > "))


def test_two_conditions_that_are_no_inequalities_are_left_to_the_user() -> None:
    assert "product" not in compared("m = (x > self.limit) & known").fix


def test_an_operator_beside_keras_functions_is_answered_in_keras_functions() -> None:
    assert (
        "`soft = keras.ops.sigmoid((x - self.limit) / 0.1)`" in compared("m = ops.cast(x > self.limit, 'float32')").fix
    )


def test_integers_that_are_compared_are_what_they_were_before_their_cast() -> None:
    graph = Graph()
    last = graph.op(
        "Cast",
        graph.variable("cutoff"),
        passes="none",
        dtype="int32",
        api="tf.cast",
        line="last = tf.cast(c * n, tf.int32)",
    )
    line = "mask = tf.cast(tf.range(n) < last, tf.float32)"
    mask = graph.op("Less", last, first=1, passes="dtype", dtype="bool", api="<", line=line)
    graph.target(graph.op("Mean", graph.op("Square", graph.op("Cast", mask, passes="dtype"))))
    graph.ask("cutoff")

    assert "`soft = tf.sigmoid(((c * n) - tf.cast(tf.range(n), tf.float32)) / 0.5)`" in graph.only_finding().fix
