"""`explain(..., try_fixes=True)`: the edits of a report, run in memory."""

from __future__ import annotations

import linecache
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.record.report import Alternative, Finding
from tb_gradflow.trace.explain import tried_edits
from tb_gradflow.trace.explain.one_step import explain_function
from tb_gradflow.trace.explain.tried_edits import StepOutcome, seen, with_tried

HEAD = """
import functools
import keras
import tensorflow as tf

threshold = tf.Variable(2.2, name="threshold")
weight = tf.Variable([0.5, -1.0, 2.0, 1.0], name="weight")
x = tf.constant([[0.1, 1.4, 2.6, 3.0], [2.1, 0.4, 1.6, 5.0]])
"""

# Each loses `threshold` in a comparison, in another form of program.
FORMS = {
    "function": """
def loss():
    gate = tf.cast(x > threshold, tf.float32)
    return tf.reduce_mean(gate * weight * x)
""",
    "lambda": "loss = lambda: tf.reduce_mean(tf.cast(x > threshold, tf.float32) * weight * x)\n",
    "nested function": """
def make(scale):
    def gated(values):
        def gate(v):
            return tf.cast(v > threshold, tf.float32)
        return gate(values) * scale
    return lambda: tf.reduce_mean(gated(x) * weight * x)
loss = make(2.0)
""",
    "tf.function that was traced before": """
@tf.function
def gated(values):
    return tf.cast(values > threshold, tf.float32)
def loss():
    return tf.reduce_mean(gated(x) * weight * x)
loss()
""",
    "decorated": """
def logged(function):
    @functools.wraps(function)
    def call(*args):
        return function(*args)
    return call
@logged
def gated(values):
    return tf.cast(
        values > threshold,
        tf.float32,
    )
def loss():
    return tf.reduce_mean(gated(x) * weight * x)
""",
    "method": """
class Gate:
    def __call__(self, values):
        return tf.cast(values > threshold, tf.float32)
gated = Gate()
def loss():
    return tf.reduce_mean(gated(x) * weight * x)
""",
    "branch of autograph": """
def loss():
    if tf.reduce_sum(x) > 1.0:
        gate = tf.cast(x > threshold, tf.float32)
    else:
        gate = tf.ones_like(x)
    return tf.reduce_mean(gate * weight * x)
""",
}

MODEL = """
import keras
import tensorflow as tf

class Gate(keras.layers.Layer):
    def build(self, shape):
        self.threshold = self.add_weight(name="threshold", shape=(), initializer=keras.initializers.Constant(0.3))
    def call(self, values):
        return tf.cast(values > self.threshold, tf.float32) * values

def model_of(**settings):
    keras.utils.set_random_seed(3)
    layers = [keras.Input((4,)), keras.layers.Dense(3, name="first"), Gate(name="gate"), keras.layers.Dense(1)]
    model = keras.Sequential(layers)
    model.compile("sgd", "mse", **settings)
    return model
"""


def first(report: Any) -> Finding:
    found: Finding = report.findings[0]
    return found


@pytest.mark.parametrize("form", FORMS)
def test_an_edit_is_run_in_each_form_of_a_program(form: str, loaded: Any) -> None:
    program = loaded(HEAD + FORMS[form])

    report = tb_gradflow.explain(program.loss, variables=[program.threshold, program.weight], try_fixes=True)

    tried = first(report).tried
    assert tried is not None
    assert tried.works
    assert tried.loss[0] == pytest.approx(float(program.loss()), rel=1e-5)
    assert [each.variable for each in tried.gradient_norm] == ["threshold"]
    assert "Tried on this batch: `threshold` now gets a gradient of norm" in " ".join(str(report).split())


@pytest.mark.parametrize("settings", [{}, {"run_eagerly": True}, {"jit_compile": True}])
def test_an_edit_is_run_in_the_step_of_a_model(settings: dict[str, Any], loaded: Any) -> None:
    model = loaded(MODEL).model_of(**settings)
    x, y = np.random.default_rng(0).normal(size=(8, 4)).astype("f4"), np.ones((8, 1), "f4")

    report = tb_gradflow.explain(model, x, y, try_fixes=True)

    tried = first(report).tried
    assert tried is not None
    assert tried.works
    assert "sequential/gate/threshold" in [each.variable for each in tried.gradient_norm]


def test_an_edit_is_run_while_functions_run_eagerly(loaded: Any) -> None:
    program = loaded(HEAD + FORMS["tf.function that was traced before"])

    tf.config.run_functions_eagerly(True)
    try:
        report = tb_gradflow.explain(program.loss, variables=[program.threshold, program.weight], try_fixes=True)
    finally:
        tf.config.run_functions_eagerly(False)

    tried = first(report).tried
    assert tried is not None
    assert tried.works


def test_the_numbers_are_those_of_the_edited_file(loaded: Any) -> None:
    program = loaded(HEAD + FORMS["function"])
    finding = first(tb_gradflow.explain(program.loss, variables=[program.threshold, program.weight], try_fixes=True))
    assert finding.edit is not None
    assert finding.tried is not None
    text = Path(program.__file__).read_text(encoding="utf-8").split("\n")
    text[finding.edit.line - 1 : finding.edit.end_line] = finding.edit.after.split("\n")

    edited = loaded("\n".join(text))
    with tf.GradientTape() as tape:
        loss = edited.loss()
    gradient = tape.gradient(loss, edited.threshold)

    assert finding.tried.loss[1] == pytest.approx(float(loss), rel=1e-5)
    assert finding.tried.gradient_norm[0].norm == pytest.approx(abs(float(gradient)), rel=1e-5)


def state_of(program: ModuleType) -> tuple[Any, ...]:
    """All that trying an edit changes for a while."""
    return (
        program.gated.python_function.__code__,
        program.loss.__code__,
        Path(str(program.__file__)).read_text(encoding="utf-8"),
        linecache.getlines(str(program.__file__)),
        linecache.updatecache,
        sys.getprofile(),
        program.gated.experimental_get_tracing_count(),
        program.gated(program.x).numpy().tolist(),
    )


def test_all_is_left_as_it_was(loaded: Any) -> None:
    program = loaded(HEAD + FORMS["tf.function that was traced before"])
    before = state_of(program)

    tb_gradflow.explain(program.loss, variables=[program.threshold, program.weight], try_fixes=True)

    assert state_of(program) == before
    assert float(program.threshold) == pytest.approx(2.2)


def test_a_path_that_is_cut_twice_is_tried_with_both_edits(loaded: Any) -> None:
    program = loaded(
        HEAD
        + """
def loss():
    gate = tf.cast(x > threshold, tf.float32)
    return tf.reduce_mean(tf.round(gate * weight * x) ** 2)
"""
    )

    report = tb_gradflow.explain(program.loss, variables=[program.threshold, program.weight], try_fixes=True)

    together = {each.cause: each.tried.with_others for each in report.findings if each.tried is not None}
    assert together == {"nondiff_rounding": False, "nondiff_comparison": True}


def test_what_ran_before_the_step_is_not_tried(loaded: Any) -> None:
    program = loaded(
        """
import keras
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, activation="softmax", name="only_unit")])
model.compile("sgd", "binary_crossentropy")
"""
    )

    finding = first(tb_gradflow.explain(program.model, np.ones((8, 4)), np.ones((8, 1)), try_fixes=True))

    assert finding.cause == "softmax_single_class"
    assert finding.edit is not None
    assert finding.tried is None
    assert finding.not_tried == "These lines ran before the step, so the edit could not be tried in it."


def outcome_of(finding: Finding, program: ModuleType) -> Finding:
    """What is left of a finding whose edits were changed."""

    def run() -> StepOutcome:
        explained = explain_function(program.loss, (), [program.threshold, program.weight], trains=True)
        return seen(explained, explained.diagnosis())

    before = run()
    return with_tried(replace(before, diagnosis=replace(before.diagnosis, findings=(finding,))), run).findings[0]


@pytest.mark.parametrize(
    "after",
    [
        "    gate = tf.cast(x > unknown, tf.float32)",
        "    gate = tf.cast(x >= threshold, tf.float32)",
        "    gate = (x - threshold) / 0.0",
        "    gate = tf.sigmoid(x - threshold); weight = tf.stop_gradient(globals()['weight'])",
        "    gate = tf.sigmoid(x - threshold",
    ],
    ids=["raises", "is cut as before", "is not finite", "cuts another variable", "is no Python"],
)
def test_an_edit_that_does_not_work_is_not_offered(after: str, loaded: Any) -> None:
    program = loaded(HEAD + FORMS["function"])
    finding = first(tb_gradflow.explain(program.loss, variables=[program.threshold, program.weight]))
    assert finding.edit is not None
    wrong = replace(finding.edit, after=after)

    assert outcome_of(replace(finding, edit=wrong, alternatives=()), program).edit is None


def test_the_next_best_edit_is_offered_in_the_place_of_one_that_does_not_work(loaded: Any) -> None:
    program = loaded(HEAD + FORMS["function"])
    finding = first(tb_gradflow.explain(program.loss, variables=[program.threshold, program.weight]))
    assert finding.edit is not None
    wrong = replace(finding.edit, after="    gate = tf.cast(x > unknown, tf.float32)")

    left = outcome_of(replace(finding, edit=wrong, alternatives=(Alternative(finding.edit, "Soft."),)), program)

    assert left.edit == finding.edit
    assert left.cost == "Soft."
    assert left.tried is not None
    assert left.tried.works


def test_the_step_is_not_run_again_without_end(loaded: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tried_edits, "MOST_RUNS", 0)
    program = loaded(HEAD + FORMS["function"])

    finding = first(tb_gradflow.explain(program.loss, variables=[program.threshold, program.weight], try_fixes=True))

    assert finding.edit is not None
    assert finding.tried is None
    assert "was not tried" in finding.not_tried


def test_a_healthy_step_is_run_once(loaded: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    program = loaded(HEAD + "def loss():\n    return tf.reduce_mean((x - threshold) * weight)\n")
    monkeypatch.setattr(tried_edits, "edited", None)

    assert tb_gradflow.explain(program.loss, variables=[program.threshold, program.weight], try_fixes=True).healthy
