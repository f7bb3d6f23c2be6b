"""`explain(..., try_fixes=True)`: an edit that works in one step is trained for some steps."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras.src.random.seed_generator import global_seed_generator

import tb_gradflow
from tb_gradflow.record.codec import decode
from tb_gradflow.record.report import Finding, Tried
from tb_gradflow.record.schema import Trial
from tb_gradflow.trace.explain import tried_edits
from tb_gradflow.trace.explain.one_step import explain_function, explain_model
from tb_gradflow.trace.explain.tried_edits import STEPS, StepOutcome, seen, with_tried

MODEL = """
import keras
import tensorflow as tf

class Gate(keras.layers.Layer):
    def build(self, shape):
        self.threshold = self.add_weight(name="threshold", shape=(), initializer=keras.initializers.Constant(0.3))
    def call(self, values):
        return tf.cast(values > self.threshold, tf.float32) * values

def build(*more, **settings):
    keras.utils.set_random_seed(3)
    layers = [keras.Input((4,)), keras.layers.Dense(6, name="first"), Gate(name="gate"), *more, keras.layers.Dense(1)]
    model = keras.Sequential(layers)
    model.compile(keras.optimizers.Adam(0.02), "mse", metrics=["mae"], **settings)
    return model
"""
HEAD = """
import numpy as np
import tensorflow as tf

w = tf.Variable([0.2, 1.4, 2.6], name="w")
"""


def batch() -> tuple[Any, Any]:
    x = np.random.default_rng(0).normal(size=(16, 4)).astype("f4")
    return x, x[:, :1] * 2.0


def found(program: ModuleType, **options: Any) -> Finding:
    """The first finding of a loss function."""
    report = tb_gradflow.explain(program.loss, variables=[program.w], try_fixes=True, **options)
    finding: Finding = report.findings[0]
    return finding


def result(finding: Finding) -> Tried:
    assert finding.tried is not None
    assert finding.tried.works
    return finding.tried


def numbers(losses: tuple[float | None, ...]) -> list[float]:
    """Losses that are all finite."""
    known = [each for each in losses if each is not None]
    assert len(known) == len(losses)
    return known


def with_edit(program: ModuleType, finding: Finding) -> str:
    assert finding.edit is not None
    lines = Path(str(program.__file__)).read_text(encoding="utf-8").split("\n")
    lines[finding.edit.line - 1 : finding.edit.end_line] = finding.edit.after.split("\n")
    return "\n".join(lines)


def losses_of_fit(model: Any) -> list[float]:
    x, y = batch()
    losses = []
    for _ in range(STEPS + 1):
        model.reset_metrics()
        losses.append(float(model.train_on_batch(x, y)[0]))
    return losses


@pytest.mark.parametrize("settings", [{}, {"run_eagerly": True}, {"jit_compile": True}])
def test_the_losses_are_those_of_the_edited_program(settings: dict[str, Any], loaded: Any) -> None:
    program = loaded(MODEL)

    [finding, *_] = tb_gradflow.explain(program.build(**settings), *batch(), try_fixes=True).findings

    trained = result(finding).trained
    assert trained is not None
    assert trained.steps == STEPS
    without, edited = losses_of_fit(program.build()), losses_of_fit(loaded(with_edit(program, finding)).build())
    assert trained.without == pytest.approx((without[0], without[-1]), rel=1e-3)
    assert trained.loss == pytest.approx((edited[0], edited[-1]), rel=1e-3)
    assert numbers(trained.loss)[1] < numbers(trained.without)[1]


def state_of(model: Any) -> list[Any]:
    variables = [*model.variables, *model.optimizer.variables, *(each for m in model.metrics for each in m.variables)]
    seeds = [global_seed_generator().state]
    return [
        *(np.asarray(keras.ops.convert_to_numpy(each)).tobytes() for each in [*variables, *seeds]),
        random.getstate(),
        str(np.random.get_state()),
        tf.random.get_global_generator().state.numpy().tobytes(),
    ]


@pytest.mark.parametrize("settings", [{}, {"run_eagerly": True}])
def test_everything_is_bit_for_bit_what_it_was(settings: dict[str, Any], loaded: Any) -> None:
    noise = keras.layers.Lambda(lambda values: values + 0.01 * keras.random.normal((6,)))
    layers = (keras.layers.BatchNormalization(), keras.layers.Dropout(0.3), noise)
    model = loaded(MODEL).build(*layers, **settings)
    model.train_on_batch(*batch())
    before = state_of(model)

    finding = tb_gradflow.explain(model, *batch(), try_fixes=True).findings[0]

    assert result(finding).trained is not None
    assert state_of(model) == before


def test_dropout_is_the_same_in_the_first_and_the_last_loss(loaded: Any) -> None:
    """Otherwise a loss would rise and fall by chance."""
    program = loaded(MODEL)
    model = program.build(keras.layers.Dropout(0.5))
    model.optimizer.learning_rate = 0.0

    course = tried_edits_course(model)

    assert course.losses[0][0] == course.losses[0][-1]


def tried_edits_course(model: Any) -> Any:
    training = explain_model(model, *batch(), None, None, trains=True).training
    assert training is not None
    return training.course(STEPS, 60.0)


def test_what_stops_after_some_steps_is_not_offered(loaded: Any) -> None:
    """Once the rounded values leave the range of the clip, they have no slope, and nothing was learned until then."""
    text = "def loss():\n    return tf.reduce_sum(tf.square(tf.clip_by_value(tf.round(w), 0.0, 2.0) - 9.0))\n"
    program = loaded(HEAD + text)
    program.w.assign([2.3, 2.4, 2.35])

    finding = found(program)

    assert finding.cause == "nondiff_rounding"
    assert finding.edit is None
    assert finding.tried is None


def test_an_edit_under_which_the_loss_rises_is_not_offered(loaded: Any) -> None:
    text = HEAD + (
        "@tf.custom_gradient\ndef turned(x):\n    return x, lambda upstream: -upstream\n"
        "def loss():\n    return tf.reduce_sum(tf.square(turned(tf.round(w)) - 9.0))\n"
    )

    assert found(loaded(text)).edit is None


def test_a_loss_that_an_edit_scales_is_compared_with_itself(loaded: Any) -> None:
    program = loaded(
        HEAD + "def loss():\n    return tf.reduce_mean(tf.cast(tf.range(100.0) < w[2] * 20.0, tf.float32)) - 9.0\n"
    )

    trained = result(found(program)).trained

    assert trained is not None
    assert numbers(trained.loss)[1] < numbers(trained.loss)[0]
    assert trained.without[0] == trained.without[1]


def test_the_width_that_trains_is_offered(loaded: Any) -> None:
    """A step of a width of 0.1 is flat between positions that are ten apart."""
    text = (
        "import tensorflow as tf\nw = tf.Variable(55.0, name='w')\n"
        "def loss(x, wanted):\n    return tf.reduce_mean(tf.square(tf.cast(x < w, tf.float32) - wanted))\n"
    )
    program = loaded(text)
    x = tf.range(0.0, 100.0, 10.0)
    args = (x, tf.cast(x < 42.0, tf.float32))

    finding = found(program, args=args)

    assert finding.edit is not None
    assert "/ 0.1)" not in finding.edit.after
    assert not finding.alternatives
    assert learned(loaded(with_edit(program, finding)), program, args) < float(program.loss(*args))


def learned(edited: ModuleType, program: ModuleType, args: Any = ()) -> float:
    """The loss of the program itself with what the edited one learns by Adam, with the rate that `explain` says."""
    before = program.w.numpy()
    rate = max(1e-3, 0.01 * float(np.sqrt(np.mean(before**2))))
    optimizer = keras.optimizers.Adam(rate)
    for _ in range(STEPS):
        with tf.GradientTape() as tape:
            loss = edited.loss(*args)
        optimizer.apply(tape.gradient(loss, [edited.w]), [edited.w])
    program.w.assign(edited.w)
    value = float(program.loss(*args))
    program.w.assign(before)
    return value


def test_the_edit_with_which_the_step_learns_most_comes_first(loaded: Any) -> None:
    program = loaded(
        "import tensorflow as tf\nw = tf.Variable([[0.03, -0.02], [0.01, 0.04]], name='w')\n"
        "x = tf.random.stateless_normal((64, 2), (1, 2))\n"
        "def loss():\n    return tf.reduce_mean(tf.square(tf.matmul(x, tf.sign(w)) * 0.5 - tf.reverse(x, [1]) * 0.5))\n"
    )
    finding = found(program)

    assert len(finding.alternatives) == 1
    first, second = (
        learned(loaded(with_edit(program, replace(finding, edit=edit))), program)
        for edit in (finding.edit, finding.alternatives[0].edit)
    )
    assert first < second or first == pytest.approx(second, abs=0.01)


def test_what_an_edit_keeps_is_measured(loaded: Any) -> None:
    through = result(found(loaded(HEAD + "def loss():\n    return tf.reduce_sum(tf.square(tf.round(w) - 9.0))\n")))
    soft = result(found(loaded(HEAD + "def loss():\n    return tf.reduce_sum(tf.cast(w > 1.3, tf.float32))\n")))

    assert through.keeps == ("forward", "shape", "checkpoint")
    assert soft.keeps == ("shape", "checkpoint")


def test_what_is_not_trained_begins_each_step_as_it_was(loaded: Any) -> None:
    """A moving average would grow used to the one batch, and the gradient of its rate would vanish."""
    program = loaded(
        HEAD + "state = tf.Variable(tf.ones(3), trainable=False)\nx = tf.constant([1.0, 2.0, 3.0])\n"
        "def loss():\n    state.assign(state * (1.0 - w) + x * w)\n    return tf.reduce_mean(tf.square(state - 2.0))\n"
    )
    program.w.assign([0.5, 0.4, 0.6])

    trained = result(found(program)).trained

    assert trained is not None
    assert trained.without[0] == trained.without[1]
    assert numbers(trained.loss)[1] < numbers(trained.loss)[0]
    assert program.state.numpy().tolist() == [1.0, 1.0, 1.0]


def test_wide_steps_are_tried_where_values_are_large(loaded: Any) -> None:
    program = loaded(
        "import tensorflow as tf\nw = tf.Variable([120.0, 60.0, -30.0, 80.0], name='w')\n"
        "def loss():\n    return tf.square(tf.cast(tf.argmax(w), tf.float32) - 1.0)\n"
    )

    finding = found(program)

    assert result(finding).trained is not None
    assert finding.edit is not None
    assert "tf.nn.softmax(w / 20.0" in finding.edit.after


def test_an_edit_of_two_findings_keeps_the_same_for_both(loaded: Any) -> None:
    program = loaded(HEAD + "def loss():\n    return tf.reduce_sum(tf.square(tf.round(w) - 9.0))\n")

    def run() -> StepOutcome:
        explained = explain_function(program.loss, (), [program.w], trains=True)
        return seen(explained, explained.diagnosis())

    before = run()
    [finding] = before.diagnosis.findings
    tried = with_tried(replace(before, diagnosis=replace(before.diagnosis, findings=(finding, finding))), run)

    assert [result(each).keeps for each in tried.findings] == [("forward", "shape", "checkpoint")] * 2


CALLS = """
calls = []
def noted(value):
    calls.append(value)
    return np.float32(1.0)
"""


def test_python_that_the_step_calls_with_what_is_trained_is_not_called_again(loaded: Any) -> None:
    body = "    return tf.reduce_sum(tf.round(w)) * tf.numpy_function(noted, [tf.stop_gradient(w)], tf.float32)\n"
    program = loaded(HEAD + CALLS + "def loss():\n" + body)

    tried = result(found(program))

    assert tried.trained is None
    assert tried.not_trained == "It was not trained: it contains PyFunc, whose results change as it trains."
    assert len(program.calls) < STEPS


def test_a_batch_from_python_is_the_same_in_each_step(loaded: Any) -> None:
    body = (
        "    x = tf.numpy_function(noted, [1.0], tf.float32)\n    return tf.reduce_sum((tf.round(w) - 9.0 * x) ** 2)\n"
    )
    program = loaded(HEAD + CALLS + "def loss():\n" + body)

    assert result(found(program)).trained is not None
    assert len(program.calls) < STEPS


EFFECTS = """
import tensorflow as tf
w = tf.Variable([0.2, 1.4, 2.6], name="w")
calls = []
batches = iter(tf.data.Dataset.range(100).map(lambda number: tf.cast(number, tf.float32)))
known = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1, 2], [5.0, 6.0]), 0.0)
counted = tf.lookup.experimental.MutableHashTable(tf.int32, tf.float32, 0.0)
def noted(value):
    calls.append(value)
    return value
@tf.function
def scaled(x):
    return tf.py_function(noted, [x * known.lookup(tf.constant(1))], tf.float32)
def loss():
    tf.print("the loss is computed")
    counted.insert(1, counted.lookup(1) + 1.0)
    return tf.reduce_sum(tf.square(tf.round(w) - scaled(next(batches) + 2.0)))
"""


def test_effects_of_the_step_do_not_happen_again(loaded: Any, capfd: pytest.CaptureFixture[str]) -> None:
    program = loaded(EFFECTS)

    trained = result(found(program)).trained

    assert trained is not None
    assert numbers(trained.loss)[1] < numbers(trained.loss)[0]
    ran = len(program.calls)
    assert ran < 5
    assert capfd.readouterr().err.count("the loss is computed") == ran
    assert float(next(program.batches)) == ran
    assert float(program.counted.lookup(1)) == ran


def test_a_training_that_takes_too_long_is_given_up(loaded: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tried_edits, "MOST_SECONDS", 0.0)
    finding = found(loaded(HEAD + "def loss():\n    return tf.reduce_sum(tf.square(tf.round(w) - 9.0))\n"))

    tried = result(finding)

    assert tried.trained is None
    assert tried.not_trained == "It was not trained: 20 steps of it would take too long."
    assert finding.edit is not None


OF_AN_OWN_OPTIMIZER = """
class Own(keras.Model):
    def __init__(self):
        super().__init__()
        self.gate, self.last, self.own = Gate(name="gate"), keras.layers.Dense(1), keras.optimizers.Adam(0.02)
    def call(self, values):
        return self.last(self.gate(values))
    def train_step(self, data):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self(data[0]) - data[1]))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.own.apply_gradients([(g, v) for g, v in zip(gradients, self.trainable_variables) if g is not None])
        return {"loss": loss}
"""


def test_an_edit_is_trained_where_the_optimizer_has_no_variables_yet(loaded: Any) -> None:
    model = loaded(MODEL + OF_AN_OWN_OPTIMIZER).Own()
    model(batch()[0])
    model.compile()

    [finding] = tb_gradflow.explain(model, *batch(), try_fixes=True).findings

    trained = result(finding).trained
    assert trained is not None
    first, last = trained.loss
    assert first is not None
    assert last is not None
    assert last < first


def test_a_trial_of_an_older_log_was_not_trained() -> None:
    trial = decode(Trial, {"file": "a.py", "line": 1, "end_line": 1, "after": "x", "works": True})

    assert (trial.trained, trial.not_trained, trial.keeps) == (None, "", ())
