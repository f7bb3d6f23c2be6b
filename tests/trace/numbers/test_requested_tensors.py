"""Tensors that the user requests a gradient for are sources like variables, whether a gradient arrives or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.serve.reports.report import Report

X = np.linspace(-1, 1, 8, dtype=np.float32)[:, np.newaxis]


class Line(keras.Model):
    """A line whose training step asks for the gradient beside its slope."""

    def __init__(self) -> None:
        super().__init__(name="line")
        self.slope = self.add_weight(name="slope", shape=(), initializer="ones")
        self.offset = self.add_weight(name="offset", shape=(), initializer="ones")

    def call(self, x: Any) -> Any:
        return self.slope * x + self.offset

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            nudged = self.slope + 0.1
            loss = tf.reduce_mean(tf.square(self(x) - y))
        gradients = tape.gradient(
            loss,
            [nudged, self.offset],
        )
        self.optimizer.apply(gradients[1:], [self.offset])
        return {"loss": loss}


class OutsideLine(Line):
    """Its nudged slope takes part in the loss, and is made before the tape looks."""

    def train_step(self, data: Any) -> Any:
        x, y = data
        nudged = self.slope + 0.1
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(nudged * x + self.offset - y))
        gradients = tape.gradient(loss, [nudged, self.offset])
        self.optimizer.apply(gradients[1:], [self.offset])
        return {"loss": loss}


class Attacked(Line):
    """Asks in which direction noise harms, of a loss without the noise or with it, and wants zeros for no answer."""

    def __init__(self, *, noisy: bool, size: int | None) -> None:
        super().__init__()
        self.noisy, self.size = noisy, size

    def train_step(self, data: Any) -> Any:
        x, y = data
        x = tf.ensure_shape(x, [self.size, 1])
        noise = x + 0.1
        with tf.GradientTape() as tape:
            tape.watch(noise)
            harm = tf.reduce_mean(tf.square(self(noise if self.noisy else x) - y))
        worst = tf.sign(tape.gradient(harm, noise, unconnected_gradients="zero"))
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self(x + 0.1 * worst) - y))
        weights = self.trainable_variables
        self.optimizer.apply(tape.gradient(loss, weights), weights)
        return {"loss": loss}


class Meta(Line):
    """Adapts its weights, and asks for the gradient of a loss that still uses the old ones."""

    def train_step(self, data: Any) -> Any:
        x, y = data
        fast = [0.9 * self.slope, 0.9 * self.offset]
        with tf.GradientTape() as tape:
            tape.watch(fast)
            loss = tf.reduce_mean(tf.square(self(x) - y))
        gradients = tape.gradient(loss, fast)
        assert gradients == [None, None]
        return {"loss": loss}


class Critic(keras.Model):
    """Its loss holds a gradient with respect to a mixture, which arrives; and so does that of its features."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = keras.layers.Dense(4, activation="tanh")
        self.score = keras.layers.Dense(1)

    def call(self, x: Any) -> Any:
        return self.score(self.hidden(x))

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape(persistent=True) as tape:
            mixed = 0.5 * x + 0.5 * y
            with tf.GradientTape() as inner:
                inner.watch(mixed)
                told = self(mixed)
            slope = inner.gradient(told, mixed)
            features = self.hidden(x)
            loss = tf.reduce_mean(tf.square(tf.norm(slope, axis=-1) - 1.0)) + tf.reduce_mean(self.score(features))
        seen = tape.gradient(loss, features)
        weights = self.trainable_variables
        self.optimizer.apply(tape.gradient(loss, weights), weights)
        return {"loss": loss, "seen": tf.norm(seen)}


class Sloped(Line):
    """Asks for its slope at the data, as a physics-informed network does, and may forget to watch them."""

    def __init__(self, *, watches: bool, stops: bool) -> None:
        super().__init__()
        self.watches, self.stops = watches, stops

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            with tf.GradientTape() as inner:
                if self.watches:
                    inner.watch(x)
                told = self(x)
            slope = inner.gradient(told, x)
            if self.stops and slope is None:
                raise ValueError("None values are not supported.")
            loss = tf.reduce_mean(tf.square(told - y)) + (0.0 if slope is None else tf.reduce_mean(tf.square(slope)))
        weights = self.trainable_variables
        self.optimizer.apply(tape.gradient(loss, weights), weights)
        return {"loss": loss}


def explained(model: keras.Model, *, eagerly: bool = False) -> Report:
    model.compile("sgd", run_eagerly=eagerly)
    model(X)
    return tb_gradflow.explain(model, X, 2 * X)


@pytest.mark.parametrize("eagerly", [False, True])
def test_a_gradient_beside_a_weight_that_the_loss_never_used_is_told_with_the_weight(eagerly: bool) -> None:
    report = explained(Line(), eagerly=eagerly)

    [finding] = report.findings
    assert (finding.cause, finding.severity) == ("output_not_used", "error")
    assert set(finding.variables) == {"nudged", "line/slope"}
    assert finding.source is not None
    assert finding.source.code == "nudged = self.slope + 0.1"
    assert "creates `nudged` from `line/slope`" in finding.message
    assert report.variables["nudged"].status == "unused"


def test_a_tensor_from_before_the_tape_is_not_followed() -> None:
    report = explained(OutsideLine())

    finding = report.findings[0]
    assert (finding.cause, finding.variables) == ("tape_not_watching", ("nudged",))
    assert "tape.watch(nudged)" in finding.fix


@pytest.mark.parametrize("eagerly", [False, True])
def test_data_that_nobody_watched_are_told_of(eagerly: bool) -> None:
    report = explained(Sloped(watches=False, stops=False), eagerly=eagerly)

    finding = report.findings[0]
    assert (finding.cause, finding.severity, finding.variables) == ("tape_not_watching", "error", ("x",))
    assert "A tape automatically watches only trainable variables" in finding.message
    assert "`inner.watch(x)`" in finding.fix
    assert finding.source is not None
    assert finding.source.code == "slope = inner.gradient(told, x)"
    explained(Sloped(watches=True, stops=False), eagerly=eagerly).assert_healthy()


def test_data_that_the_loss_does_not_depend_on_are_information_beside_data_that_get_their_gradient() -> None:
    w = tf.Variable(2.0, name="w")

    def loss(x: Any, other: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([x, other])
            told = w * x
        slopes = [each for each in tape.gradient(told, [x, other]) if each is not None]
        return tf.reduce_sum(tf.add_n(slopes)) + tf.reduce_sum(told) + tf.reduce_mean(other)

    report = tb_gradflow.explain(loss, args=(tf.constant(X), tf.constant(X)), variables=[w])

    report.assert_healthy()
    assert {name: each.status for name, each in report.variables.items()} == {
        "w": "connected",
        "x": "connected",
        "other": "unused",
    }
    # The mean of what is no variable is a term that teaches nothing, too.
    [finding] = [each for each in report.findings if each.cause != "term_teaches_nothing"]
    assert (finding.cause, finding.severity, finding.variables) == ("output_not_used", "info", ("other",))


def test_data_that_nobody_watched_are_told_of_where_the_step_fails_at_that(tmp_path: Path) -> None:
    model = Sloped(watches=False, stops=True)
    model.compile("sgd")
    with pytest.raises(ValueError, match="None values"):
        model.fit(X, 2 * X, verbose=0, callbacks=[tb_gradflow.GradFlowCallback(str(tmp_path))])

    finding = tb_gradflow.open_log(tmp_path).report().findings[0]
    assert (finding.cause, finding.severity, finding.variables) == ("tape_not_watching", "error", ("x",))


def test_tensors_that_get_their_gradient_are_listed_like_variables() -> None:
    report = explained(Critic())

    report.assert_healthy()
    assert len(report.variables) == 6
    assert {each.status for each in report.variables.values()} == {"connected"}


def test_of_a_list_of_tensors_each_is_told_by_its_place() -> None:
    finding = explained(Meta()).findings[0]

    assert finding.cause == "output_not_used"
    assert {"fast[0]", "fast[1]"} <= set(finding.variables)


@pytest.mark.parametrize("size", [8, None])
def test_zeros_that_were_wanted_for_no_answer_are_none(size: int | None) -> None:
    report = explained(Attacked(noisy=False, size=size))

    [finding] = report.findings
    assert (finding.cause, finding.severity, finding.variables) == ("output_not_used", "warning", ("noise",))
    explained(Attacked(noisy=True, size=size)).assert_healthy()


def test_what_a_library_asks_for_is_none_of_the_users_business() -> None:
    w = tf.Variable(np.ones((1, 3), np.float32), name="w")
    # Recomputing a block asks for the gradient of all that goes in, and the mask has none.
    block = tf.recompute_grad(lambda x, mask: tf.tanh(x) * tf.cast(mask > 0, tf.float32))

    report = tb_gradflow.explain(lambda: tf.reduce_sum(block(w * 2.0, w + 3.0)), variables=[w])

    report.assert_healthy()
    assert list(report.variables) == ["w"]


def test_a_list_that_was_taken_before_the_model_was_built_asks_for_nothing(tmp_path: Path) -> None:
    model = keras.Sequential([keras.layers.Dense(1)])
    variables = tuple(model.trainable_variables)
    model.build((None, 1))

    @tb_gradflow.watch(tmp_path)
    def step() -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(X) - X))
        tape.gradient(loss, variables)
        return loss

    step()
    step.flush()

    (finding,) = tb_gradflow.open_log(tmp_path).report().findings
    assert (finding.cause, finding.severity) == ("not_in_gradient_sources", "error")
    assert "the list of sources given to `tape.gradient`" in finding.message


class OneOfTwo(keras.Model):
    """Trains its factor alone, and forgets the summand."""

    def __init__(self) -> None:
        super().__init__(name="line")
        self.factor = self.add_weight(name="factor", shape=(), initializer="ones")
        self.summand = self.add_weight(name="summand", shape=(), initializer="ones")

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self.factor * x + self.summand - y))
        self.optimizer.apply([tape.gradient(loss, self.factor)], [self.factor])
        return {"loss": loss}


class ListOfOne(keras.Model):
    """The same with a list."""

    def __init__(self) -> None:
        super().__init__(name="line")
        self.gain = self.add_weight(name="gain", shape=(), initializer="ones")
        self.shift = self.add_weight(name="shift", shape=(), initializer="ones")

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self.gain * x + self.shift - y))
        learned = [self.gain]
        self.optimizer.apply(tape.gradient(loss, learned), learned)
        return {"loss": loss}


@pytest.mark.parametrize(("kind", "is_edited"), [(OneOfTwo, False), (ListOfOne, True)])
def test_only_a_list_of_sources_is_made_longer(kind: type[keras.Model], is_edited: bool) -> None:
    """`self.factor + [self.summand]` would be a sum."""
    model = kind()
    model.compile("sgd")
    report = tb_gradflow.explain(model, X, 3 * X)

    [finding] = report.findings
    assert finding.cause == "not_in_gradient_sources"
    assert "self.factor +" not in finding.fix
    after = finding.edit.after if finding.edit is not None else ""
    assert after.strip() == ("learned = [self.gain, self.shift]" if is_edited else "")
