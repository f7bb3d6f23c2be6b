"""The terms of a loss in a training, on request: recorded, and nothing of the training changed."""

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
from tb_gradflow.serve.runs.term_series import term_series
from tests.trace.numbers.test_terms import check_norm_of_sum, names
from tests.trace.recording import data, train
from tests.trace.training.test_harmless import assert_identical

layers = keras.layers


def heads() -> Any:
    x = keras.Input((6,))
    h = layers.Dense(16, "gelu", name="trunk", kernel_regularizer="l2")(x)
    h = layers.Dense(16, "swish")(layers.LayerNormalization()(h))
    model = keras.Model(x, [layers.Dense(1, name="price")(h), layers.Dense(1, "tanh", name="trend")(h)])
    model.compile("sgd", ["mse", "mae"], loss_weights=[1.0, 0.3], jit_compile=False)
    return model


class Variational(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = keras.Sequential([keras.Input((6,)), layers.Dense(16, "tanh"), layers.Dense(4)])
        self.decoder = keras.Sequential([keras.Input((2,)), layers.Dense(16, "gelu"), layers.Dense(6)])
        self.noise = keras.random.SeedGenerator(3)

    def train_step(self, given: Any) -> dict[str, Any]:
        x = given[0]
        with tf.GradientTape() as tape:
            mean, log_var = tf.split(self.encoder(x), 2, axis=-1)
            code = mean + tf.exp(0.5 * log_var) * keras.random.normal(tf.shape(mean), seed=self.noise)
            reconstruction = tf.reduce_mean(tf.square(self.decoder(code) - x))
            kl = -0.5 * tf.reduce_mean(1 + log_var - tf.square(mean) - tf.exp(log_var))
            loss = reconstruction + 0.1 * kl
            loss += 0.01 * tf.reduce_mean(tf.abs(code)) * 2.0 / 3.0
        self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
        return {"loss": loss, "kl": kl}


def variational() -> Any:
    model = Variational()
    model.built = True
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9), jit_compile=False)
    return model


@pytest.mark.parametrize(
    ("build", "wanted"),
    [(heads, ["price", "trend", "regularizers"]), (variational, ["reconstruction", "kl", "code"])],
    ids=["heads", "variational"],
)
def test_a_training_has_its_bits_and_its_log_the_terms(
    build: Callable[[], Any], wanted: list[str], tmp_path: Path
) -> None:
    x, y = data(outputs=1, rows=61)
    y = [y, y] if build is heads else y
    plain = train(build, x, y, batch_size=8)

    recorded = train(build, x, y, GradFlowCallback(tmp_path, update_freq=1, terms=True), batch_size=8)

    assert_identical(plain, recorded)
    log = tb_gradflow.open_log(tmp_path)
    for step in (log.steps[0], log.steps[-1]):
        report = log.report(step)
        assert names(report) == wanted
        check_norm_of_sum(report)
        assert sum(term["value"] for term in report.to_dict()["terms"]) > 0
        assert "Terms of the loss: " in str(report)


def test_without_terms_a_log_has_none(tmp_path: Path) -> None:
    x, y = data(outputs=1, rows=16)

    train(heads, x, [y, y], GradFlowCallback(tmp_path, update_freq=1), batch_size=8)

    assert tb_gradflow.open_log(tmp_path).report().to_dict()["terms"] is None


def test_a_watched_step_records_its_terms(tmp_path: Path) -> None:
    w = tf.Variable(tf.ones([3, 2]), name="w")

    @tb_gradflow.watch(tmp_path, update_freq=1, terms=True)
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            error = tf.reduce_mean(tf.square(x @ w - 1.0))
            size = tf.nn.l2_loss(w)
            loss = error + 0.1 * size
        w.assign_sub(0.1 * tape.gradient(loss, w))
        return loss

    for _ in range(3):
        step(tf.constant(np.random.RandomState(0).randn(5, 3).astype("f")))
    step.flush()

    report = tb_gradflow.open_log(tmp_path).report()
    assert names(report) == ["error", "size"]
    check_norm_of_sum(report)


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "eager"])
def test_what_of_each_term_arrives_at_the_outputs_of_layers_is_what_a_plain_tape_computes(
    tmp_path: Path, compiled: bool
) -> None:
    x = keras.Input((6,))
    trunk, upper = layers.Dense(8, "tanh", name="trunk", kernel_regularizer="l2"), layers.Dense(5, "gelu", name="upper")
    price, trend = layers.Dense(1, name="price"), layers.Dense(1, name="trend")
    shared = upper(trunk(x))
    model = keras.Model(x, [price(shared), trend(shared)])
    model.compile("sgd", ["mse", "mae"], loss_weights=[1.0, 0.3], jit_compile=False, run_eagerly=not compiled)
    given, target = (each[:8] for each in data(outputs=1, rows=8))
    with tf.GradientTape(persistent=True) as tape:
        first = trunk(tf.constant(given))
        second = upper(first)
        left, right = price(second), trend(second)
        losses = [tf.reduce_mean((left - target) ** 2), 0.3 * tf.reduce_mean(tf.abs(right - target))]
    outputs = {"trunk": first, "upper": second, "price": left, "trend": right}
    expected = {
        (term, layer): None if (arrived := tape.gradient(loss, output)) is None else float(tf.norm(arrived))
        for term, loss in zip(("price", "trend"), losses, strict=True)
        for layer, output in outputs.items()
    } | {("regularizers", layer): None for layer in outputs}

    model.fit(given, [target, target], verbose=0, callbacks=[GradFlowCallback(tmp_path, update_freq=1, terms=True)])

    history = tb_gradflow.open_log(tmp_path)._history
    session = history.index().session.id
    trace, [numbers] = history.trace(session, 0), history.gradients(session, 0)
    measured = {
        (trace.terms[each.term].name, layer.name): each.row
        for each in trace.term_tensors
        for layer in trace.layers
        if layer.name in outputs and trace.ops[each.op].name.startswith(f"{layer.scope}/")
    }
    assert measured.keys() == expected.keys()
    for key, row in measured.items():
        norm = None if row is None else float(numbers[row, 0])
        assert norm == (None if expected[key] is None else pytest.approx(expected[key], rel=1e-5)), key


def test_the_terms_over_the_steps_are_those_of_the_reports(tmp_path: Path) -> None:
    x, y = data(outputs=1, rows=40)
    train(heads, x, [y, y], GradFlowCallback(tmp_path, update_freq=1, terms=True), batch_size=8)
    log = tb_gradflow.open_log(tmp_path)
    trace = log._history.trace(log._history.index().session.id, 0)

    numbers = term_series(log._history, 0, 512)

    assert numbers.shape == (len(log.steps), len(trace.terms) + len(trace.term_gradients))
    for step, row in zip(log.steps, numbers, strict=True):
        terms = log.report(step).terms
        assert [each.value for each in terms] == pytest.approx(row[: len(terms)].tolist())
        norms = {(each.name, one.variable): one.norm for each in terms for one in each.variables}
        told = row[len(terms) :].tolist()
        listed = [(trace.terms[each.term].name, trace.variables[each.variable].name) for each in trace.term_gradients]
        assert norms == pytest.approx(dict(zip(listed, told, strict=True)))
    assert term_series(log._history, 0, 2).tolist() == numbers[[len(numbers) // 2 - 1, -1]].tolist()


@pytest.mark.parametrize("broken", [True, False], ids=["broken", "repaired"])
def test_a_generator_that_its_critic_does_not_teach_beside_its_repaired_twin(tmp_path: Path, broken: bool) -> None:
    """The adversarial term goes through a `tf.stop_gradient`. A penalty on the samples hides it: all variables of the
    generator get a gradient."""
    keras.utils.set_random_seed(4)
    generator = keras.Sequential([keras.Input((4,)), layers.Dense(8, "tanh"), layers.Dense(2)], name="generator")
    critic = keras.Sequential([keras.Input((2,)), layers.Dense(8, "tanh"), layers.Dense(1)], name="critic")
    score = keras.losses.BinaryCrossentropy(from_logits=True)
    noise, real = tf.constant(data(rows=16)[0][:, :4]), tf.constant(2.0 + data(rows=16)[0][:, :2])

    def terms_of_generator() -> tuple[Any, Any]:
        fake = generator(noise)
        judged = critic(tf.stop_gradient(fake) if broken else fake)
        return score(tf.ones_like(judged), judged), tf.reduce_mean(tf.square(fake))

    @tb_gradflow.watch(tmp_path, update_freq=1, terms=True)
    def step() -> None:
        with tf.GradientTape() as tape:
            on_real, on_fake = critic(real), critic(generator(noise))
            real_loss, fake_loss = score(tf.ones_like(on_real), on_real), score(tf.zeros_like(on_fake), on_fake)
            critic_loss = real_loss + fake_loss
        for variable, gradient in zip(
            critic.trainable_variables, tape.gradient(critic_loss, critic.trainable_variables), strict=True
        ):
            variable.assign_sub(0.0 * gradient)
        with tf.GradientTape() as tape:
            fooling, size = terms_of_generator()
            generator_loss = fooling + 0.1 * size
        for variable, gradient in zip(
            generator.trainable_variables, tape.gradient(generator_loss, generator.trainable_variables), strict=True
        ):
            variable.assign_sub(0.0 * gradient)

    step()
    step.flush()
    report = tb_gradflow.open_log(tmp_path).report()

    assert report.healthy
    assert names(report) == ["real_loss", "fake_loss", "fooling", "size"]
    with tf.GradientTape(persistent=True) as tape:
        fooling, size = terms_of_generator()
    for term, value, weight in ((report.terms[2], fooling, 1.0), (report.terms[3], size, 0.1)):
        gradients = tape.gradient(value, generator.trainable_variables)
        plain = [weight * float(tf.norm(each)) for each in gradients if each is not None]
        assert [each.norm for each in term.variables] == pytest.approx(plain, rel=1e-4)
        assert term.value == pytest.approx(weight * float(value), rel=1e-5)
    silent = [each for each in report.findings if each.cause == "term_teaches_nothing"]
    assert len(silent) == broken
    assert ("but the term `fooling` contributes nothing to it." in " ".join(str(report).split())) == broken
    assert all("`fooling`" in each.message and "`tf.stop_gradient` (test_terms_in" in each.fix for each in silent)


@pytest.mark.parametrize("branch", [tf.cond, lambda p, a, b: tf.switch_case(tf.cast(p, tf.int32), [b, a])])
def test_branches_and_functions_are_called_as_without_terms(branch: Any) -> None:
    """TensorFlow wraps them in a function where a tape may be asked twice."""
    w = tf.Variable([[1.0, 2.0]], name="w")
    inner = tf.function(lambda x: tf.tanh(x @ w))

    def step(x: Any) -> Any:
        h = inner(x)
        error = tf.reduce_mean(tf.square(h))
        chosen = branch(tf.reduce_sum(x) > 0, lambda: tf.reduce_sum(w), lambda: tf.reduce_sum(w * w))
        return error + chosen

    def ops(*, terms: bool) -> list[str]:
        report = tb_gradflow.explain(step, args=(tf.ones([3, 1]),), variables=[w], terms=terms)
        assert len(report.terms) == 2 * terms
        assert report._history is not None
        history = report._history()
        return [op.name for op in history.trace(history.index().session.id, 0).ops]

    assert ops(terms=True) == ops(terms=False)
