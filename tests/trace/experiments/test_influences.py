"""A variable without a gradient is moved, and the loss is computed again: does it react?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow import GradFlowCallback
from tb_gradflow.record.experiments import Influence
from tb_gradflow.record.report import Evidence
from tests.trace.experiments.logs import tried_in

RANDOM = np.random.default_rng(3)
X = RANDOM.uniform(size=(32, 8)).astype("float32")
Y = X.sum(1, keepdims=True)


class Span(keras.layers.Layer):
    """Sums the first elements of a row: how many, is to be learned."""

    def build(self, shape: Any) -> None:
        self.span = self.add_weight(name="span", shape=(), initializer=keras.initializers.Constant(3.5))

    def call(self, x: Any) -> Any:
        return x * tf.sequence_mask(self.span, 8, dtype=tf.float32)


def model_of(*layers: Any, jit: bool = False, eagerly: bool = False, rate: float = 0.01) -> Any:
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((8,)), *layers])
    model.compile(keras.optimizers.SGD(rate), "mse", jit_compile=jit, run_eagerly=eagerly)
    return model


def influences_in(directory: Path) -> dict[str, Influence]:
    """Those in the log of a run, by variable."""
    return {of.variables[each.variable].name: each for of, known in tried_in(directory) for each in known.influences}


def evidence_in(directory: Path) -> list[Evidence]:
    return [each for finding in tb_gradflow.open_log(directory).report().findings for each in finding.evidence]


def fitted(model: Any, directory: Path, **options: Any) -> dict[str, Influence]:
    model.fit(
        X, Y, batch_size=32, epochs=3, shuffle=False, verbose=0, callbacks=[GradFlowCallback(directory)], **options
    )
    return influences_in(directory)


@pytest.mark.parametrize("how", [{}, {"jit": True}, {"eagerly": True}], ids=["", "xla", "eager"])
def test_the_losses_are_those_of_the_model_with_that_value(tmp_path: Path, how: dict[str, bool]) -> None:
    model = model_of(Span(), keras.layers.Dense(1), rate=0.0, **how)

    found = fitted(model, tmp_path)["sequential/span/span"]

    def loss(span: float) -> float:
        model.layers[0].span.assign(span)
        return float(np.mean(np.square(model(X).numpy() - Y)))

    assert [found.size, found.amount, found.still] == pytest.approx([3.5, 3.5, 0.35])
    assert found.before == found.again == pytest.approx(loss(3.5), rel=1e-5)
    assert found.after in (pytest.approx(loss(7.0), rel=1e-5), pytest.approx(loss(0.0), rel=1e-5))
    assert found.reacts


def test_the_report_says_what_came_out(tmp_path: Path) -> None:
    fitted(model_of(Span(), keras.layers.Dense(1)), tmp_path)

    evidence, of_op = evidence_in(tmp_path)

    assert (evidence.kind, evidence.of, evidence.on, evidence.gradient) == (
        "influence",
        "sequential/span/span",
        "loss",
        None,
    )
    assert evidence.change != 0
    assert evidence.text.startswith("Moving `sequential/span/span` by 3.5 changes the loss from ")
    assert evidence.text.endswith(", while 0.35 changes nothing; its gradient is None.")
    assert (of_op.kind, of_op.on, of_op.change) == ("reaction", "output", 1.0)
    assert of_op.of.endswith("/SequenceMask/Less")
    assert of_op.text == (
        "Moving the input of `tf.sequence_mask` by 3.5 changes 50 % of its output, while 0.35 changes nothing."
    )
    report = tb_gradflow.open_log(tmp_path).report()
    assert f"  try  {evidence.text[:40]}" in str(report)
    assert report.to_dict()["findings"][0]["evidence"][0]["text"] == evidence.text


def test_what_a_second_cut_hides_does_not_react(tmp_path: Path) -> None:
    dead = keras.layers.Dense(4, "relu", bias_initializer=keras.initializers.Constant(-50.0))

    found = fitted(model_of(Span(), dead, keras.layers.Dense(1)), tmp_path)

    assert not found["sequential/span/span"].reacts
    assert found["sequential/span/span"].amount == 35.0
    assert found["sequential/dense/bias"].reacts
    said = [each.text for each in evidence_in(tmp_path) if each.of == "sequential/span/span"]
    assert said == [
        f"Moving `sequential/span/span` by up to 35, in both directions, does not change the loss, "
        f"{found['sequential/span/span'].before:.3g}: on the way to it, `dead_relu` stops it too."
    ]


@pytest.mark.parametrize(
    "layer", [keras.layers.Dropout(0.5), keras.layers.GaussianNoise(0.3)], ids=["dropout", "noise"]
)
def test_random_numbers_are_held_still(tmp_path: Path, layer: Any) -> None:
    found = fitted(model_of(Span(), layer, keras.layers.Dense(1)), tmp_path)

    assert found["sequential/span/span"].before == found["sequential/span/span"].again


def test_stateful_random_numbers_are_held_still(tmp_path: Path) -> None:
    noise = keras.layers.Lambda(lambda x: x + tf.random.normal(tf.shape(x), seed=4))
    model = model_of(Span(), noise, keras.layers.Dense(1))

    found = fitted(model, tmp_path)

    assert found["sequential/span/span"].before == found["sequential/span/span"].again


class Python(keras.layers.Layer):
    """Adds what Python computes."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def call(self, x: Any) -> Any:
        def noted(value: Any) -> Any:
            self.calls += 1
            return value

        return x + tf.ensure_shape(tf.numpy_function(noted, [x], tf.float32), x.shape)


def test_python_is_not_called_once_more(tmp_path: Path) -> None:
    layer = Python()

    found = fitted(model_of(Span(), layer, keras.layers.Dense(1)), tmp_path)

    assert layer.calls == 3
    assert found == {}
    [evidence] = evidence_in(tmp_path)
    assert evidence.change is None
    assert evidence.text == (
        "Whether the loss depends on `sequential/span/span` was not tried, because the step cannot run again: its loss "
        "needs Python, or an op that runs once."
    )


def stepped(optimizer: Any, variables: list[tf.Variable], loss: Callable[[Any], Any]) -> Any:
    @tf.function
    def step(batches: Any) -> Any:
        x = next(batches)
        with tf.GradientTape() as tape:
            value = loss(x)
        gradients = tape.gradient(value, variables)
        optimizer.apply_gradients([(g, v) for g, v in zip(gradients, variables, strict=True) if g is not None])
        return value

    return step


def test_a_step_that_draws_its_own_batch_draws_it_once(tmp_path: Path) -> None:
    span, weight = tf.Variable(2.0, name="span"), tf.Variable(1.0, name="weight")

    def loss(x: Any) -> Any:
        return tf.reduce_mean(tf.square(weight * x * tf.cast(x > span, tf.float32) - 1.0))

    step = tb_gradflow.watch(tmp_path)(stepped(keras.optimizers.SGD(0.0), [span, weight], loss))
    batches = iter(tf.data.Dataset.range(8).map(lambda each: tf.cast([each, each + 1], tf.float32)))
    losses = [float(step(batches)) for _ in range(3)]

    assert float(next(batches)[0]) == 3.0
    found = influences_in(tmp_path)["span"]
    assert found.before == losses[0]
    assert found.reacts


class Switched(keras.Model):
    """Two losses: one of them does not depend on a weight that the other depends on."""

    def build(self, shape: Any) -> None:
        self.a = self.add_weight(name="a", shape=(8,), initializer="ones")
        self.b = self.add_weight(name="b", shape=(8,), initializer="ones")

    def train_step(self, data: Any) -> Any:
        x, _ = data
        with tf.GradientTape(persistent=True) as tape:
            first = tf.reduce_mean(x * self.a)
            second = tf.reduce_mean(x * self.a * tf.round(self.b))
        self.optimizer.apply_gradients(zip(tape.gradient(first, [self.a]), [self.a], strict=True))
        tape.gradient(second, [self.b])
        return {"loss": first}


def test_each_loss_speaks_for_itself(tmp_path: Path) -> None:
    keras.utils.set_random_seed(1)
    model = Switched()
    model.build((None, 8))
    model.compile("sgd")

    found = fitted(model, tmp_path)

    assert found["switched/b"].target == 1
    assert found["switched/b"].reacts
    assert found["switched/b"].amount == 1.0
    assert "changes the loss `second` from" in evidence_in(tmp_path)[0].text


class InPython(keras.layers.Layer):
    """Scales by a number that Python has read: the tape does not see it."""

    def build(self, shape: Any) -> None:
        self.scale = self.add_weight(name="scale", shape=(), initializer="ones")
        self.offset = self.add_weight(name="offset", shape=(), initializer="zeros")

    def call(self, x: Any) -> Any:
        return x * float(self.scale) + 0.0 * tf.round(self.scale) + tf.round(self.offset)

    def compute_output_spec(self, x: Any) -> Any:
        return keras.KerasTensor(x.shape, x.dtype)


def test_what_python_has_computed_is_not_said_to_change_nothing(tmp_path: Path) -> None:
    found = fitted(model_of(InPython(), keras.layers.Dense(1), eagerly=True), tmp_path)

    assert found.keys() == {"sequential/in_python/offset"}
    assert all(each.reacts for each in found.values())


def test_a_variable_that_nobody_asks_for_is_moved(tmp_path: Path) -> None:
    idle, weight = tf.Variable(2.0, name="idle"), tf.Variable(1.0, name="weight")
    step = tb_gradflow.watch(tmp_path)(
        stepped(keras.optimizers.SGD(0.01), [weight], lambda x: tf.reduce_mean(tf.square(weight * x * idle - 1.0)))
    )
    step(iter(tf.data.Dataset.from_tensors(tf.ones(4)).repeat()))

    assert influences_in(tmp_path)["idle"].reacts
    assert [each.text for each in evidence_in(tmp_path) if each.of == "idle"] == [
        "Moving `idle` by 0.002 changes the loss from 1 to 1.004; no gradient is requested for it."
    ]


def moved_in(directory: Path) -> set[int]:
    """The steps after which variables were moved."""
    history = tb_gradflow.open_log(directory).recorded
    index = history.refresh()
    found = set()
    for step in index.with_values:
        chunk = index.find(step)
        assert chunk is not None
        known = history.values(index.session.id, step, history.trace(index.session.id, chunk[0].trace))
        found |= {step} if known is not None and known.influences else set()
    return found


def test_a_variable_is_moved_once(tmp_path: Path) -> None:
    fitted(model_of(Span(), keras.layers.Dense(1)), tmp_path)

    assert moved_in(tmp_path) == {0}


def test_nothing_is_moved_where_all_gradients_arrive(tmp_path: Path) -> None:
    fitted(model_of(keras.layers.Dense(4), keras.layers.Dense(1)), tmp_path)

    assert moved_in(tmp_path) == set()


@pytest.mark.parametrize(
    "layers", [(keras.layers.BatchNormalization(), keras.layers.Dropout(0.3)), ()], ids=["state", ""]
)
def test_the_training_is_the_same(tmp_path: Path, layers: Any) -> None:
    def trained(*callbacks: Any) -> list[Any]:
        model = model_of(Span(), *(type(each).from_config(each.get_config()) for each in layers), keras.layers.Dense(1))
        history = model.fit(X, Y, batch_size=8, epochs=3, verbose=0, callbacks=list(callbacks)).history
        return [*(each.numpy() for each in model.variables), history["loss"]]

    plain, recorded = trained(), trained(GradFlowCallback(tmp_path))

    assert "sequential/span/span" in {name.replace("_1", "") for name in influences_in(tmp_path)}
    for one, other in zip(plain, recorded, strict=True):
        np.testing.assert_array_equal(one, other)


def test_explain_moves_it_too_and_changes_nothing() -> None:
    model = model_of(Span(), keras.layers.Dropout(0.5), keras.layers.Dense(1))
    before = [each.numpy() for each in model.variables]

    report = tb_gradflow.explain(model, X, Y)

    [finding] = report.findings
    assert finding.evidence[0].text.startswith("Moving `sequential/span/span` by 3.5 changes the loss from ")
    for one, other in zip(before, model.variables, strict=True):
        np.testing.assert_array_equal(one, other.numpy())


@pytest.mark.parametrize("size", [2, 3, 24])
def test_a_choice_among_scores_reacts(tmp_path: Path, size: int) -> None:
    # The same amount for all of them would leave the choice as it is.
    scores, rows = (
        tf.Variable(tf.linspace(0.5, 1.0, size), name="scores"),
        tf.Variable(tf.range(size, dtype=tf.float32)),
    )
    step = tb_gradflow.watch(tmp_path)(
        stepped(
            keras.optimizers.SGD(0.01), [scores, rows], lambda x: tf.square(tf.gather(rows, tf.argmax(scores)) - x[0])
        )
    )
    step(iter(tf.data.Dataset.from_tensors(tf.ones(4)).repeat()))

    assert influences_in(tmp_path)["scores"].reacts


def test_the_branch_that_the_step_has_taken_is_taken_again(tmp_path: Path) -> None:
    optimizer = keras.optimizers.SGD(0.1)
    first, second = tf.Variable([2.0, 3.0], name="first"), tf.Variable([1.0, 4.0], name="second")
    optimizer.build([first, second])

    @tb_gradflow.watch(tmp_path)
    @tf.function
    def step() -> Any:
        with tf.GradientTape() as tape:
            is_even = optimizer.iterations % 2 == 0
            loss = tf.cond(is_even, lambda: tf.reduce_sum(first), lambda: tf.reduce_sum(second**2))
        gradients = tape.gradient(loss, [first, second], unconnected_gradients="zero")
        if tf.reduce_all([tf.reduce_all(tf.math.is_finite(each)) for each in gradients]):
            optimizer.apply_gradients(zip(gradients, [first, second], strict=True))
        return loss

    assert float(step()) == 5.0
    found = influences_in(tmp_path)["second"]
    assert (found.before, found.reacts) == (5.0, False)


def test_eager_steps_tell_reactions_alone(tmp_path: Path) -> None:
    given, kept = tf.Variable([1.0, 2.0], name="given"), tf.Variable([1.0, 2.0], name="kept")
    threshold = tf.Variable(1.5, name="threshold")

    class Model(keras.Model):
        def train_step(self, data: Any) -> Any:
            with tf.GradientTape() as tape:
                kept.assign(given * 2.0)
                loss = tf.reduce_sum((kept - tf.cast(given > threshold, tf.float32)) ** 2)
            tape.gradient(loss, [given, threshold])
            return {"loss": loss}

    model = Model()
    model.compile(run_eagerly=True)
    model.fit(X, Y, verbose=0, callbacks=[GradFlowCallback(tmp_path)])

    found = influences_in(tmp_path)
    assert found["threshold"].before == 13.0
    # In the graph of the ops that ran, nothing joins what was written and what was read: that says nothing of `given`.
    assert all(each.reacts for each in found.values())


def test_a_draw_that_is_held_does_not_say_that_its_probabilities_change_nothing(tmp_path: Path) -> None:
    logits, rows = tf.Variable([[0.5, 1.0]], name="logits"), tf.Variable([1.0, 2.0], name="rows")

    def loss(x: Any) -> Any:
        return tf.reduce_sum(tf.gather(rows, tf.random.categorical(logits, 8)[0])) + x[0]

    step = tb_gradflow.watch(tmp_path)(stepped(keras.optimizers.SGD(0.01), [logits, rows], loss))
    step(iter(tf.data.Dataset.from_tensors(tf.ones(4)).repeat()))

    assert influences_in(tmp_path) == {}


def test_nothing_is_moved_where_there_may_be_nothing_left_to_learn(tmp_path: Path) -> None:
    model = model_of(keras.layers.Dense(1))
    model.compile("sgd", lambda y, predicted: 1e-9 * tf.reduce_mean(tf.square(y - predicted)))

    assert fitted(model, tmp_path) == {}


@pytest.mark.parametrize("takes_it", [False, True])
def test_a_branch_that_draws_a_batch_is_not_taken_by_an_experiment(tmp_path: Path, takes_it: bool) -> None:
    # A move of the switch changes which branch is taken.
    switch, weight = tf.Variable(1.0, name="switch"), tf.Variable(1.0, name="weight")
    batches = iter(tf.data.Dataset.range(100).map(lambda each: tf.cast(each, tf.float32)))
    limit = 0.5 if takes_it else 1.05

    @tb_gradflow.watch(tmp_path)
    @tf.function
    def step() -> Any:
        with tf.GradientTape() as tape:
            loss = weight * (next(batches) if switch > limit else 7.0)
        return loss, tape.gradient(loss, [switch, weight])

    for _ in range(3):
        step()

    assert float(next(batches)) == (3.0 if takes_it else 0.0)


def test_a_loop_that_would_have_no_end_with_another_value_is_left(tmp_path: Path) -> None:
    pace, weight = tf.Variable(1.5, name="pace"), tf.Variable(1.0, name="weight")

    def loss(x: Any) -> Any:
        _, found = tf.while_loop(
            lambda time, _: time < 1.0, lambda time, found: (time + pace, found * 1.1), (x[0] * 0.0, weight + 0.0)
        )
        return found

    step = tb_gradflow.watch(tmp_path)(stepped(keras.optimizers.SGD(0.1), [weight, pace], loss))
    losses = [float(step(iter(tf.data.Dataset.from_tensors(tf.ones(4)).repeat()))) for _ in range(2)]

    assert losses == pytest.approx([1.1, 1.1 * 0.89])
    assert influences_in(tmp_path) == {}


def test_what_a_training_moves_is_moved_once_by_all_its_functions(tmp_path: Path) -> None:
    span, weight = tf.Variable(2.0, name="span"), tf.Variable(1.0, name="weight")

    @tb_gradflow.watch(tmp_path)
    @tf.function
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(weight * x * tf.cast(x > span, tf.float32))
        return tape.gradient(loss, [span, weight])

    for size in (1, 2, 3):
        step(tf.ones(size))

    assert moved_in(tmp_path) == {0}
