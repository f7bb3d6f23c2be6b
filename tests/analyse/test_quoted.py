"""The advice of a finding quotes the code that its edit writes."""

from __future__ import annotations

import pytest

from tb_gradflow.analyse.report.quoted import changed_code, with_code_of
from tb_gradflow.record.report import Edit


def edit(before: str, after: str) -> Edit:
    return Edit("model.py", 3, 3 + before.count("\n"), before, after)


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        (
            "    n = tf.sqrt(tf.abs(x))",
            "    n = tf.sqrt(tf.maximum(tf.abs(x), 1e-12))",
            "tf.sqrt(tf.maximum(tf.abs(x), 1e-12))",
        ),
        ("    return 2 * tf.norm(x)", "    return 2 * tf.sqrt(tf.reduce_sum(x * x))", "tf.sqrt(tf.reduce_sum(x * x))"),
        ("    y = tf.divide(a, b)", "    y = tf.math.divide_no_nan(a, b)", "tf.math.divide_no_nan(a, b)"),
        (
            "    y = f(a,\n          a > b)",
            "    y = f(a,\n          tf.sigmoid(\n              a - b))",
            "tf.sigmoid( a - b)",
        ),
        ("    y = tf.round(x)", "    v = x\n    y = v + tf.stop_gradient(tf.round(v) - v)", ""),
        ("    def f(self):", "    def f(self, x):", ""),
        ("    y = g(x)", "    y = g(" + "x + " * 60 + "x)", ""),
    ],
    ids=["bound", "call", "function", "lines", "two statements", "no expression", "long"],
)
def test_what_an_edit_writes_in_the_place_of_another_expression(before: str, after: str, code: str) -> None:
    assert changed_code(edit(before, after)) == code


ROOT = edit("    n = tf.sqrt(x)", "    n = tf.sqrt(tf.maximum(x, 1e-12))")
LEADS = ("Keep it away from zero: ",)


@pytest.mark.parametrize(
    ("fix", "said"),
    [
        ("`tf.sqrt(x + 1e-12)`.", "`tf.sqrt(tf.maximum(x, 1e-12))`."),
        ("`tf.sqrt(x + 1e-12)`; or scale it. More.", "`tf.sqrt(tf.maximum(x, 1e-12))`; or scale it. More."),
        ("`v = x + 1.5`, then `tf.sqrt(v)`. More.", "`tf.sqrt(tf.maximum(x, 1e-12))`. More."),
        ("`tf.sqrt(x)` instead of `x`.", "`tf.sqrt(x)` instead of `x`."),
    ],
)
def test_the_advice_goes_on_with_the_code_of_the_edit(fix: str, said: str) -> None:
    assert with_code_of(ROOT, LEADS[0] + fix, LEADS) == LEADS[0] + said
    assert with_code_of(None, LEADS[0] + fix, LEADS) == LEADS[0] + fix
    assert with_code_of(ROOT, "Do not: " + fix, LEADS) == "Do not: " + fix
