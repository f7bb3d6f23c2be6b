"""Small forms of programs that others have written, on which a report was once wrong."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.serve.reports.report import Report
from tests.trace.recording import read

RANDOM = np.random.default_rng(5)
X = tf.constant(RANDOM.normal(size=(8, 4)), tf.float32)


def loud(report: Report) -> set[str]:
    return {finding.cause for finding in report.findings if finding.severity != "info"}


def run_eagerly(step: Callable[[], None]) -> None:
    tf.config.run_functions_eagerly(True)
    try:
        step()
    finally:
        tf.config.run_functions_eagerly(False)


def test_an_absolute_error_does_not_sum_a_softmax() -> None:
    """The same size of gradient arrives at each probability, with different signs."""
    dead, alive = tf.Variable(tf.fill((4, 3), -1.0), name="dead"), tf.Variable(tf.ones((4, 3)), name="alive")
    labels = tf.one_hot(tf.range(8) % 3, 3)

    def loss() -> tf.Tensor:
        logits = X @ alive * tf.range(1.0, 4.0) + tf.nn.relu(tf.abs(X) @ dead)
        return tf.reduce_mean(tf.abs(labels - tf.nn.softmax(logits)))

    report = tb_gradflow.explain(loss, variables=[dead, alive])

    assert loud(report) == {"dead_relu"}


def test_a_term_is_found_behind_the_loss_that_replaces_it() -> None:
    weight = tf.Variable(RANDOM.normal(size=(4, 1)), dtype=tf.float32, name="weight")

    def loss() -> tf.Tensor:
        y = X @ weight
        share = tf.reduce_mean(tf.cast(y > 0.0, tf.float32))
        total = tf.reduce_mean(tf.square(y - 1.0)) + 5.0 * tf.square(share - 0.5)
        return tf.where(tf.math.is_nan(total), tf.reduce_mean(tf.square(y)), total)

    [finding] = tb_gradflow.explain(loss, variables=[weight]).findings

    assert (finding.cause, finding.severity) == ("nondiff_counting", "info")
    assert "from one term of the loss" in finding.message
    assert finding.source is not None
    assert "y > 0.0" in finding.source.code


def test_the_offset_of_a_kernel_that_is_not_trained_either_is_not_forgotten(tmp_path: Path) -> None:
    """A vector is searched for which a finished network has a certain output."""
    network = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, "tanh"), keras.layers.Dense(1)])
    searched = tf.Variable(X, name="searched")

    @tb_gradflow.watch(tmp_path)
    def step() -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(network(searched))
        searched.assign_sub(0.1 * tape.gradient(loss, searched))

    step()
    step.flush()

    assert loud(tb_gradflow.open_log(tmp_path).report()) == set()


def distance(samples: list[float]) -> float:
    counts, _ = np.histogram(samples, bins=3)
    return float(np.sum(np.abs(counts - np.mean(counts))))


def test_numbers_in_a_list_for_a_function_of_numpy() -> None:
    weight = tf.Variable(RANDOM.normal(size=(4, 1)), dtype=tf.float32, name="weight")

    def loss() -> tf.Tensor:
        losses = []
        for row in range(3):
            losses.append(float(tf.reduce_sum(X[row : row + 1] @ weight)))
        return tf.convert_to_tensor(distance(losses), dtype=tf.float32)

    [finding] = tb_gradflow.explain(loss, variables=[weight]).findings

    assert finding.cause == "python_escape"
    assert "leaves TensorFlow at `float()`" in finding.message
    assert finding.edit is None  # the list goes on to NumPy


def test_a_relu_whose_input_was_normalised_over_one_value_further_back() -> None:
    """The deepest level of a U-Net: the ReLU after the next convolution gets zeros only."""
    image = keras.Input((2, 2, 3))
    deep = keras.layers.Conv2D(4, 2, use_bias=False)(image)
    deep = keras.layers.GroupNormalization(groups=4, name="of_one")(deep)
    deep = keras.layers.Conv2DTranspose(4, 2, use_bias=False)(keras.layers.LeakyReLU()(deep))
    joined = keras.layers.Concatenate()([image, keras.layers.ReLU()(keras.layers.GroupNormalization(groups=4)(deep))])
    network = keras.Model(image, keras.layers.Conv2D(1, 1)(joined))
    pictures = tf.constant(RANDOM.normal(size=(8, 2, 2, 3)), tf.float32)

    network.compile("sgd", "mse")

    report = tb_gradflow.explain(network, pictures, tf.ones((8, 2, 2, 1)))

    assert loud(report) == {"degenerate_normalisation"}
    [finding] = [each for each in report.findings if each.severity != "info"]
    assert "in layer `of_one`" in finding.message


def test_a_remainder_is_kept_out_of_the_gradient() -> None:
    weight = tf.Variable([0.3, 1.6, 2.4], name="weight")

    def loss() -> tf.Tensor:
        whole = weight - tf.math.floormod(weight, 1.0)
        return tf.reduce_sum(tf.square(whole - 3.0))

    [finding] = tb_gradflow.explain(loss, variables=[weight], try_fixes=True).findings

    assert finding.cause == "nondiff_rounding"
    assert finding.edit is not None
    assert finding.edit.after.strip() == "whole = weight - tf.stop_gradient(tf.math.floormod(weight, 1.0))"
    assert finding.tried is not None
    assert finding.tried.works


def test_a_condition_has_no_gradient_and_that_is_right(tmp_path: Path) -> None:
    one, other = tf.Variable([1.0, 2.0], name="one"), tf.Variable([3.0, 4.0], name="other")

    @tb_gradflow.watch(tmp_path)
    def step(condition: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.where(condition, one, other) ** 2)
        for_one, for_other, _ = tape.gradient(loss, [one, other, condition])
        one.assign_sub(0.1 * for_one)
        other.assign_sub(0.1 * for_other)

    step(tf.constant([True, False]))
    step.flush()

    [finding] = tb_gradflow.open_log(tmp_path).report().findings

    assert (finding.cause, finding.severity, finding.edit) == ("integer_dtype", "info", None)


def test_a_term_of_each_row_has_no_gradient() -> None:
    """As in a loss function of Keras, which returns a number for each row."""
    weight = tf.Variable(RANDOM.normal(size=(4, 3)), dtype=tf.float32, name="weight")
    labels = tf.range(8) % 3

    def loss() -> tf.Tensor:
        logits = X @ weight
        rank = tf.cast(tf.argmax(logits, axis=-1), tf.float32)
        penalty = tf.abs(rank - tf.cast(labels, tf.float32)) / 2.0
        crossentropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        return tf.reduce_mean(crossentropy + 0.25 * penalty)

    [finding] = tb_gradflow.explain(loss, variables=[weight]).findings

    assert (finding.cause, finding.severity) == ("nondiff_index", "info")
    assert "from one term of the loss" in finding.message


def test_an_array_that_a_write_returns_is_kept(tmp_path: Path) -> None:
    weight = tf.Variable(RANDOM.normal(size=(4, 4)), dtype=tf.float32, name="weight")

    def loss() -> tf.Tensor:
        states, state = tf.TensorArray(tf.float32, size=3), X
        for turn in range(3):
            state = tf.tanh(state @ weight)
            states.write(turn, state)
        return tf.reduce_mean(tf.square(states.stack() - 1.0))

    [finding] = tb_gradflow.explain(tf.function(loss), variables=[weight], try_fixes=True).findings

    assert finding.cause == "output_not_used"
    assert finding.edit is not None
    assert finding.edit.after.strip() == "states = states.write(turn, state)"


class Sharpness(keras.Model):
    """Its second tape sees a loss of what the first forward pass has computed."""

    def __init__(self) -> None:
        super().__init__(name="sharpness")
        self.last = keras.layers.Dense(1, name="last")

    def call(self, x: tf.Tensor) -> tf.Tensor:
        return self.last(x)

    def train_step(self, data: tuple[tf.Tensor, tf.Tensor]) -> dict[str, tf.Tensor]:
        x, y = data
        with tf.GradientTape() as tape:
            made = self(x)
            loss = tf.reduce_mean(tf.square(made - y))
        first = tape.gradient(loss, self.trainable_variables)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(made - y))
        second = tape.gradient(loss, self.trainable_variables)
        gradients = [a if b is None else b for a, b in zip(first, second, strict=True)]
        self.optimizer.apply(gradients, self.trainable_variables)
        return {"loss": loss}


def test_a_request_that_gets_nothing_is_told_beside_one_that_gets_everything() -> None:
    model = Sharpness()
    model.compile("sgd")

    [finding] = tb_gradflow.explain(model, X, tf.ones((8, 1))).findings

    assert (finding.cause, finding.severity) == ("tape_scope", "error")
    assert finding.source is not None
    assert finding.source.code.startswith("second =")


class Cut(keras.layers.Layer):
    """The first positions count. Where they end is a plain variable, which Keras does not track."""

    def __init__(self) -> None:
        super().__init__(name="cut")
        self.end = tf.Variable(2.0, name="end")

    def call(self, x: tf.Tensor) -> tf.Tensor:
        return x * tf.sequence_mask(self.end, 4, dtype=tf.float32)


def test_a_plain_variable_of_a_layer_is_told_where_something_cuts_it_off_besides() -> None:
    model = keras.Sequential([keras.Input((4,)), Cut(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")

    report = tb_gradflow.explain(model, X, tf.ones((8, 1)))

    told = {(finding.cause, finding.severity, finding.variables) for finding in report.findings}
    assert told == {("untracked_variable", "warning", ("end",)), ("nondiff_comparison", "warning", ("end",))}


class Gauge(tf.Module):
    """It lists its own variable, and not those of the layer that it holds."""

    def __init__(self) -> None:
        super().__init__()
        self.gain = tf.Variable(1.0, name="gain")
        self.hidden = keras.layers.Dense(1, name="hidden")

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        return self.gain * self.hidden(x)


def test_a_module_does_not_list_the_weights_of_layers(tmp_path: Path) -> None:
    gauge = Gauge()
    gauge(X)

    @tb_gradflow.watch(tmp_path / "all")
    @tf.function
    def of_all() -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(gauge(X) - 1.0))
        variables = gauge.trainable_variables
        for gradient, variable in zip(tape.gradient(loss, variables), variables, strict=True):
            variable.assign_sub(0.1 * gradient)
        return loss

    @tb_gradflow.watch(tmp_path / "chosen")
    @tf.function
    def of_one() -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(gauge(X) - 1.0))
        gauge.gain.assign_sub(0.1 * tape.gradient(loss, gauge.gain))
        return loss

    of_all()
    of_one()

    [finding] = tb_gradflow.open_log(tmp_path / "all").report().findings
    assert (finding.cause, finding.severity) == ("untracked_variable", "warning")
    assert "`Gauge` is a `tf.Module`" in finding.message
    [chosen] = tb_gradflow.open_log(tmp_path / "chosen").report().findings
    assert (chosen.cause, chosen.severity) == ("untracked_variable", "info")


def test_what_a_write_loses_is_told_once(tmp_path: Path) -> None:
    kernel, out = tf.Variable(tf.ones((4, 4)), name="kernel"), tf.Variable(tf.ones((4, 1)), name="out")

    @tb_gradflow.watch(tmp_path)
    @tf.function
    def step() -> tf.Tensor:
        with tf.GradientTape() as tape:
            history = tf.TensorArray(tf.float32, size=3, element_shape=(8, 4))
            state = X
            for place in tf.range(3):
                state = tf.tanh(state @ kernel)
                history.write(place, state)
            loss = tf.reduce_mean(tf.square(tf.tensordot(history.stack(), out, 1) - 1.0))
        _, gradient = tape.gradient(loss, [kernel, out])
        out.assign_sub(0.1 * gradient)
        return loss

    step()

    [finding] = tb_gradflow.open_log(tmp_path).report().findings
    assert (finding.cause, finding.severity, finding.variables) == ("output_not_used", "error", ("kernel",))
    assert finding.edit is not None
    assert finding.edit.after.strip() == "history = history.write(place, state)"


def test_a_bound_is_not_blamed_for_what_one_large_gradient_left_behind(tmp_path: Path) -> None:
    scale = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False, kernel_constraint="non_neg")])
    scale.layers[-1].set_weights([np.ones((1, 1))])
    scale.compile(keras.optimizers.Adam(0.001), "mse")
    y = np.full((200, 1), 0.5, "float32")
    y[0] = 1e10
    scale.fit(
        np.ones((200, 1), "float32"), y, batch_size=1, shuffle=False, verbose=0,
        callbacks=[tb_gradflow.GradFlowCallback(tmp_path)],
    )  # fmt: skip

    [finding] = tb_gradflow.open_log(tmp_path).report().findings
    assert (finding.cause, finding.severity) == ("gradient_not_applied", "warning")
    assert "NonNeg" not in finding.message
    assert "in step 0 an element of the gradient was 2e+10" in finding.message


class Accumulating(keras.Model):
    """Counts in Python, which runs once."""

    def __init__(self) -> None:
        super().__init__(name="accumulating")
        self.last = keras.layers.Dense(1, name="last")
        self.seen = 0

    def call(self, x: tf.Tensor) -> tf.Tensor:
        return self.last(x)

    def train_step(self, data: tuple[tf.Tensor, tf.Tensor]) -> dict[str, tf.Tensor]:
        x, y = data
        self.seen += 1
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self(x) - y))
        if self.seen == 4:
            self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
            self.seen = 0
        return {"loss": loss}


def test_a_condition_that_python_decided_once_is_named(tmp_path: Path) -> None:
    model = Accumulating()
    model.compile("sgd")
    lines, first = inspect.getsourcelines(Accumulating.train_step)
    line = first + next(number for number, code in enumerate(lines) if "if self" in code)

    with pytest.warns(RuntimeWarning, match=rf"`if self.seen == 4:` \(test_programs_of_others.py:{line}\) once"):
        model.fit(X, tf.ones((8, 1)), batch_size=2, verbose=0, callbacks=[tb_gradflow.GradFlowCallback(tmp_path)])


class Compiled(keras.layers.Layer):
    """Keras compiles this function while it builds the model, to learn the shapes of its layers."""

    def __init__(self) -> None:
        super().__init__(name="compiled")
        self.inner = keras.layers.Dense(4, name="inner")

    @tf.function
    def call(self, x: tf.Tensor) -> tf.Tensor:
        return self.inner(x)


class AroundCompiled(keras.Model):
    def __init__(self, penalty: str | None = None) -> None:
        super().__init__(name="around")
        self.first = Compiled()
        self.first.inner.kernel_regularizer = keras.regularizers.get(penalty)
        self.last = keras.layers.Dense(1, name="last")

    def call(self, x: tf.Tensor) -> tf.Tensor:
        return self.last(self.first(x))


@pytest.mark.parametrize("penalty", [None, "l2"])
def test_a_function_that_was_compiled_before_its_variables_had_values(tmp_path: Path, penalty: str | None) -> None:
    """A penalty reads the variable, but the function does not."""
    model = AroundCompiled(penalty)
    model.compile("sgd", "mse")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Keras's own, about missing gradients
        model.fit(X, tf.ones((8, 1)), verbose=0, callbacks=[tb_gradflow.GradFlowCallback(tmp_path)])

    [finding] = tb_gradflow.open_log(tmp_path).report().findings
    assert (finding.cause, finding.severity) == ("python_snapshot", "error")
    assert [name.rpartition("/")[2] for name in finding.variables] == ["kernel", "bias"]
    assert "was compiled while Keras built the model" in finding.message
    assert finding.edit is not None
    assert finding.edit.before.split("\n")[0].strip() == "@tf.function"
    assert finding.edit.after.strip() == "def call(self, x: tf.Tensor) -> tf.Tensor:"


class Rounder(keras.layers.Layer):
    def call(self, x: tf.Tensor) -> tf.Tensor:
        return tf.round(x)


@pytest.mark.parametrize(("loss", "fix"), [("binary_crossentropy", "return x"), ("mse", "return x + tf.stop_gradient")])
def test_a_cross_entropy_of_rounded_probabilities_clips_them(loss: str, fix: str) -> None:
    layers = [keras.Input((4,)), keras.layers.Dense(1, "sigmoid"), Rounder()]
    model = keras.Sequential(layers)
    model.compile("sgd", loss)

    [finding] = tb_gradflow.explain(model, X, tf.ones((8, 1))).findings

    assert finding.cause == "nondiff_rounding"
    assert ("does not help here" in finding.fix) == (loss == "binary_crossentropy")
    assert finding.edit is not None
    assert finding.edit.after.strip().startswith(fix)


def test_a_categorical_cross_entropy_of_a_single_probability() -> None:
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, "sigmoid")])
    model.compile("sgd", "categorical_crossentropy")

    [finding] = tb_gradflow.explain(model, X, tf.ones((8, 1))).findings

    assert (finding.cause, finding.severity) == ("softmax_single_class", "error")
    assert "binary_crossentropy" in finding.fix


def test_a_root_of_zero_that_is_used_is_not_hidden() -> None:
    """One element is zero, and one is left out, but not the same."""
    root = tf.Variable([0.0, 1.0, 4.0], name="root")

    def loss() -> tf.Tensor:
        return tf.reduce_sum(tf.where([True, True, False], tf.sqrt(root), 0.0))

    [finding] = tb_gradflow.explain(loss, variables=[root]).findings

    assert finding.cause == "sqrt_at_zero"


def test_an_eager_step_with_a_tensor_from_before_it_is_measured(tmp_path: Path) -> None:
    """The read that stands for the variable in the trace is no tensor of the step."""
    location, logscale = tf.Variable([0.6], name="location"), tf.Variable([1.3], name="logscale")
    scale = tf.exp(logscale)

    @tb_gradflow.watch(tmp_path)
    def step() -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square((X - location) / scale))
        gradient, missing = tape.gradient(loss, [location, logscale])
        assert missing is None
        location.assign_sub(0.1 * gradient)

    run_eagerly(step)

    report = tb_gradflow.open_log(tmp_path).report()
    assert {name: variable.status for name, variable in report.variables.items()} == {
        "location": "connected",
        "logscale": "disconnected",
    }
    assert loud(report) == {"python_snapshot"}


def test_a_model_that_is_frozen_as_a_whole_is_told(tmp_path: Path) -> None:
    """A discriminator, frozen for the model around it before it has trained itself."""
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.trainable = False

    with pytest.warns(RuntimeWarning, match="none of its weights is trainable, so its step requests no gradient"):
        model.fit(X, tf.ones((8, 1)), verbose=0, callbacks=[tb_gradflow.GradFlowCallback(tmp_path)])


class WeighedLoss(keras.layers.Layer):
    """Kendall's, ported to Keras 3."""

    def build(self, shape: tuple[int | None, ...]) -> None:
        self.log_variance = tf.Variable(tf.zeros((1,)), name="log_variance")

    def call(self, inputs: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        y, target = inputs
        self.add_loss(tf.reduce_mean(tf.exp(-self.log_variance) * (y - target) ** 2 + self.log_variance))
        return y


def test_a_plain_variable_that_a_layer_makes_in_build_is_left_out(tmp_path: Path) -> None:
    """TensorFlow names it after the layer, as Keras names its own."""
    x, target = keras.Input((4,)), keras.Input((1,))
    model = keras.Model([x, target], WeighedLoss(name="weighed")((keras.layers.Dense(1)(x), target)))
    model.compile("sgd")

    model.fit([X, tf.ones((8, 1))], verbose=0, callbacks=[tb_gradflow.GradFlowCallback(tmp_path)])

    [finding] = tb_gradflow.open_log(tmp_path).report().findings
    assert (finding.cause, finding.severity) == ("untracked_variable", "warning")
    assert finding.variables == ("weighed/log_variance",)


class Taught(keras.Model):
    """By a layer that the model does not list."""

    def __init__(self, kernel: Any) -> None:
        super().__init__()
        self.student = keras.layers.Dense(1)
        self.kernel_of_teacher = (lambda: kernel,)

    def train_step(self, data: tuple[tf.Tensor, tf.Tensor]) -> dict[str, tf.Tensor]:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self.student(data[0]) - tf.tanh(data[0] @ self.kernel_of_teacher[0]())) ** 2)
        weights = self.student.trainable_weights
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return {"loss": loss}


def test_a_teacher_of_keras_is_no_plain_variable(tmp_path: Path) -> None:
    teacher = keras.layers.Dense(1, name="teacher")
    teacher.build((None, 4))
    model = Taught(teacher.kernel)
    model.compile("sgd")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, tf.ones((8, 1)), verbose=0, callbacks=[tb_gradflow.GradFlowCallback(tmp_path)])

    [untracked] = [each for each in read(tmp_path).trace.variables if not each.tracked]
    assert not untracked.plain
    assert loud(tb_gradflow.open_log(tmp_path).report()) == set()


def test_layers_made_trainable_inside_of_a_frozen_model_of_keras_2(tmp_path: Path) -> None:
    tf_keras = pytest.importorskip("tf_keras")
    base = tf_keras.Sequential([tf_keras.layers.Dense(3, name="low"), tf_keras.layers.Dense(3, name="high")], "base")
    model = tf_keras.Sequential([base, tf_keras.layers.Dense(1, name="head")])
    model.build((None, 4))
    base.trainable = False
    callback = tb_gradflow.GradFlowCallback(tmp_path)
    model.compile("sgd", "mse")
    model.fit(X, tf.ones((8, 1)), verbose=0, callbacks=[callback])
    assert loud(tb_gradflow.open_log(tmp_path).report()) == set(), "frozen as a whole, on purpose"

    base.get_layer("high").trainable = True
    model.compile("sgd", "mse")
    model.fit(X, tf.ones((8, 1)), verbose=0, callbacks=[callback])

    report = tb_gradflow.open_log(tmp_path).report()
    [finding] = report.findings
    assert (finding.cause, finding.severity) == ("frozen_by_flag", "warning")
    assert finding.variables == ("high/kernel", "high/bias")
    assert "`base`" in finding.message
    assert report.summary == "2 variables are frozen, although their layers are trainable."


class Attention(keras.layers.Layer):
    def build(self, shape: list[tuple[int | None, int]]) -> None:
        self.scores = self.add_weight(
            name="scores", shape=(shape[0][1], 1), regularizer=keras.regularizers.L2(0.1), initializer="ones"
        )

    def call(self, parts: list[tf.Tensor]) -> tf.Tensor:
        scores = keras.ops.stack([tf.tanh(part @ self.scores) for part in parts])
        weights = keras.ops.softmax(scores, axis=-1)
        return tf.add_n([weights[number] * part for number, part in enumerate(parts)])


def test_a_softmax_over_an_axis_of_one_is_found_beside_a_penalty(tmp_path: Path) -> None:
    parts = [keras.Input((4,)) for _ in range(3)]
    model = keras.Model(parts, keras.layers.Dense(1)(Attention(name="attention")(parts)))
    model.compile("sgd", "mse")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit([X, X + 1, X * 2], tf.ones((8, 1)), verbose=0, callbacks=[tb_gradflow.GradFlowCallback(tmp_path)])

    [finding] = tb_gradflow.open_log(tmp_path).report().findings
    assert (finding.cause, finding.severity) == ("softmax_single_class", "error")
    assert finding.variables == ("attention/scores",)
    assert "no gradient except from a penalty" in finding.message
    assert "axis=0" in finding.fix, "the first axis lists the parts, not the examples"
    assert finding.edit is not None
    assert "axis=0" in finding.edit.after


class Follower(keras.Model):
    """A moving average of its weights, in the one direction or in the other."""

    def __init__(self, student_follows: bool) -> None:
        super().__init__()
        self.student_follows = student_follows
        self.student, self.teacher = keras.layers.Dense(1, name="student"), keras.layers.Dense(1, name="teacher")
        self.teacher.trainable = False
        self.student.build((None, 4))
        self.teacher.build((None, 4))

    def train_step(self, data: tuple[tf.Tensor, tf.Tensor]) -> dict[str, tf.Tensor]:
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self.student(x) - y) ** 2)
        weights = self.student.trainable_weights
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        for weight, average in zip(self.student.weights, self.teacher.weights, strict=True):
            if self.student_follows:
                weight.assign(0.99 * average + (1 - 0.99) * weight)
            else:
                average.assign(0.99 * average + (1 - 0.99) * weight)
        return {"loss": loss}


@pytest.mark.parametrize("student_follows", [True, False])
def test_a_moving_average_that_is_put_into_the_weights_themselves(tmp_path: Path, student_follows: bool) -> None:
    model = Follower(student_follows)
    model.compile("adam")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, tf.ones((8, 1)), verbose=0, callbacks=[tb_gradflow.GradFlowCallback(tmp_path)])

    report = tb_gradflow.open_log(tmp_path).report()
    assert loud(report) == ({"gradient_not_applied"} if student_follows else set())
    if student_follows:
        [finding] = report.findings
        assert finding.variables == ("student/kernel", "student/bias")
        assert "0.99 times the value of another one, such as `teacher/kernel`" in finding.message
        assert "the step assigns them other values afterwards" in report.summary


def test_a_momentum_by_hand_replaces_nothing(tmp_path: Path) -> None:
    """It assigns values computed from another variable, too, but no optimizer has updated the weights before."""
    weight, memory = tf.Variable(tf.ones((4, 1)), name="weight"), tf.Variable(tf.zeros((4, 1)), name="memory")

    @tb_gradflow.watch(tmp_path)
    @tf.function
    def step() -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((X @ weight - 1.0) ** 2)
        memory.assign(0.9 * memory + tape.gradient(loss, weight))
        weight.assign(0.1 * weight - 0.9 * memory)

    step()
    step.flush()

    assert loud(tb_gradflow.open_log(tmp_path).report()) == set()


def normalised(adjacency: Any) -> Any:
    return adjacency / np.sum(adjacency, axis=-1, keepdims=True)


def inverted(adjacency: Any) -> Any:
    return np.linalg.pinv(adjacency) @ np.median(adjacency, axis=-1, keepdims=True)


@pytest.mark.parametrize("name", ["normalised", "inverted"])
def test_a_tensor_handed_to_a_function_of_numpy_gets_an_edit_if_that_can_be_translated(
    name: str, tmp_path: Path
) -> None:
    edges = tf.Variable(tf.ones((4, 4)), name="edges")

    def of_normalised() -> None:
        with tf.GradientTape() as tape:
            adjacency = normalised(np.asarray(tf.nn.softplus(edges)))
            loss = tf.reduce_sum(tf.matmul(X, adjacency) ** 2)
        tape.gradient(loss, edges)

    def of_inverted() -> None:
        with tf.GradientTape() as tape:
            adjacency = inverted(np.asarray(tf.nn.softplus(edges)))
            loss = tf.reduce_sum(tf.matmul(X, adjacency) ** 2)
        tape.gradient(loss, edges)

    run_eagerly(tb_gradflow.watch(tmp_path)(of_normalised if name == "normalised" else of_inverted))

    [finding] = tb_gradflow.open_log(tmp_path).report().findings
    assert finding.cause == "python_escape"
    assert f"Write `{name}` with TensorFlow functions" in finding.fix
    if name == "inverted":
        assert finding.edit is None
        return
    assert finding.edit is not None
    assert "return adjacency / tf.reduce_sum(adjacency, axis=-1, keepdims=True)" in finding.edit.after
    assert "adjacency = normalised_in_tensorflow(tf.nn.softplus(edges))" in finding.edit.after


def test_weights_assigned_to_a_model_are_not_brought_back_by_a_custom_gradient(tmp_path: Path) -> None:
    """The outputs that would bring it back are not used."""
    source = tf.Variable(tf.ones((4, 1)), name="source")
    model = keras.layers.Dense(1, use_bias=False, name="model")
    model.build((None, 4))

    @tf.custom_gradient
    def stitched(weight: Any, value: Any, y: Any) -> Any:
        return (tf.identity(weight), tf.identity(y)), lambda of_weight, of_y: (of_weight, of_weight, of_y)

    def step() -> None:
        with tf.GradientTape() as tape:
            value = tf.tanh(source)
            model.kernel.assign(value)
            _, y = stitched(tf.convert_to_tensor(model.kernel), value, model(X))
            loss = tf.reduce_mean((y - 1.0) ** 2)
        tape.gradient(loss, [source])

    run_eagerly(tb_gradflow.watch(tmp_path)(step))

    report = tb_gradflow.open_log(tmp_path).report()
    assert loud(report) == {"variable_assign"}
    assert "stateless_call" in next(each.fix for each in report.findings if each.cause == "variable_assign")


def test_a_scale_that_begins_outside_of_its_limits() -> None:
    scale = tf.Variable(14.3, name="scale")

    [finding] = tb_gradflow.explain(
        lambda: tf.reduce_mean(tf.exp(tf.clip_by_value(scale, -4.6, 4.6)) * X), variables=[scale]
    ).findings

    assert finding.cause == "saturation_clip"
    assert finding.fix.startswith("Initialise `scale` within the limits")


def test_sums_of_gradients_that_are_set_back_before_they_are_applied(tmp_path: Path) -> None:
    weight, total = tf.Variable(tf.ones((4, 1)), name="weight"), tf.Variable(tf.zeros((4, 1)), name="total")
    count, optimizer = tf.Variable(0, name="count"), keras.optimizers.Adam()
    optimizer.build([weight])

    def apply() -> Any:
        sums = [total]
        total.assign(tf.zeros_like(total))
        optimizer.apply_gradients(zip(sums, [weight], strict=True))
        return tf.no_op()

    @tb_gradflow.watch(tmp_path)
    @tf.function
    def step() -> None:
        count.assign_add(1)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((X @ weight - 1.0) ** 2)
        total.assign_add(tape.gradient(loss, weight))
        tf.cond(count % 4 == 0, apply, tf.no_op)

    for _ in range(140):
        step()
    step.flush()

    [finding] = tb_gradflow.open_log(tmp_path).report().findings
    assert (finding.cause, finding.severity) == ("gradient_not_applied", "warning")
    assert "no variable has ever changed" in finding.message
    assert "`total.assign_add`" in finding.message
    assert "the update runs only under a condition" in finding.message
    assert "the sums are not set back to zero before they are applied" in finding.fix


class SummingUp:
    """A trainer that counts its steps in Python, which the compiled step does only once."""

    def __init__(self, every: int) -> None:
        self.weight, self.total = tf.Variable(tf.ones([4, 1]), name="weight"), tf.Variable(tf.zeros([4, 1]))
        self.optimizer = keras.optimizers.SGD(0.1)
        self.count, self.every, self.verbose = 0, every, False

    @tf.function
    def step(self) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(X @ self.weight))
        self.total.assign_add(tape.gradient(loss, self.weight))
        self.count += 1
        if self.verbose:
            tf.print("weight", self.weight)
        if self.count % self.every == 0:
            self.optimizer.apply_gradients([(tf.identity(self.total), self.weight)])
            self.total.assign(tf.zeros_like(self.total))


def test_an_update_that_python_left_out_once_is_told_with_its_condition(tmp_path: Path) -> None:
    trainer = SummingUp(every=4)
    step = tb_gradflow.watch(tmp_path, update_freq=1)(trainer.step)
    for _ in range(70):
        step()
    step.flush()

    [finding] = tb_gradflow.open_log(tmp_path).report().findings

    assert (finding.cause, finding.severity) == ("gradient_not_applied", "warning")
    assert "Python decided `if self.count % self.every == 0:` (test_programs_of_others.py:" in finding.message
    assert "gradient_accumulation_steps" in finding.fix
    np.testing.assert_array_equal(trainer.weight.numpy(), np.ones([4, 1]))


def test_an_update_that_python_did_not_leave_out_is_none_of_these(tmp_path: Path) -> None:
    trainer = SummingUp(every=1)
    step = tb_gradflow.watch(tmp_path, update_freq=1)(trainer.step)
    for _ in range(3):
        step()
    step.flush()

    assert not tb_gradflow.open_log(tmp_path).report().findings


def test_in_an_eager_step_python_decides_again(tmp_path: Path) -> None:
    trainer = SummingUp(every=4)
    tf.config.run_functions_eagerly(True)
    try:
        step = tb_gradflow.watch(tmp_path, update_freq=1)(trainer.step)
        for _ in range(3):
            step()
    finally:
        tf.config.run_functions_eagerly(False)
    step.flush()

    assert "Python decided" not in str(tb_gradflow.open_log(tmp_path).report())


def test_a_state_that_is_never_handed_on_is_named() -> None:
    """A recurrent layer that starts from zeros in every step of a sequence."""
    kernel, reset = tf.Variable(tf.ones([4, 3]), name="kernel"), tf.Variable(tf.ones([4, 3]), name="reset")

    def cell(x: tf.Tensor, state: tf.Tensor) -> tf.Tensor:
        gate = tf.sigmoid(x @ reset)
        return tf.tanh(x @ kernel + gate * state)

    @tf.function
    def loss() -> tf.Tensor:
        for _ in range(3):
            state = cell(X, tf.zeros([8, 3]))
        return tf.reduce_mean(state)

    [finding] = tb_gradflow.explain(loss, variables=[kernel, reset]).findings

    assert finding.variables == ("reset",)
    assert "by `state`, which is constant and 0 everywhere" in finding.message


def test_densities_that_underflow_in_a_mixture_are_named() -> None:
    """The weights of the mixture are multiplied by zeros, which the exponential returns."""
    layer = keras.layers.Dense(6)
    layer.build((None, 4))

    def loss() -> tf.Tensor:
        logits, mean, spread = tf.split(layer(X), 3, axis=-1)
        density = tf.exp(-0.5 * tf.square((1000.0 - mean) / tf.exp(spread)))
        return -tf.reduce_mean(tf.math.log(tf.reduce_sum(tf.nn.softmax(logits) * density, axis=-1) + 1e-10))

    [finding] = tb_gradflow.explain(loss, variables=[layer.kernel.value, layer.bias.value]).findings

    assert finding.cause == "zero_gradient"
    assert "`tf.exp`" in finding.message
    assert "underflows to zero" in finding.message
    assert "`tf.reduce_logsumexp(log_terms, axis=-1)`" in finding.fix


@pytest.mark.parametrize(("rate", "told"), [(2e-3, True), (1.0, False)])
def test_a_learning_rate_that_does_not_fit_the_size_of_a_variable_is_told(
    rate: float, told: bool, tmp_path: Path
) -> None:
    """A frequency in Hz, beside a gain of one."""
    frequency, gain = tf.Variable([300.0, 800.0], name="frequency"), tf.Variable([0.1, 0.1], name="gain")
    optimizer = keras.optimizers.Adam(rate)
    optimizer.build([frequency, gain])
    times = tf.linspace(0.0, 1e-2, 32)[:, None]

    @tb_gradflow.watch(tmp_path, update_freq=1)
    @tf.function
    def step() -> None:
        with tf.GradientTape() as tape:
            wave = tf.reduce_sum(gain * tf.sin(frequency * times), axis=-1)
            loss = tf.reduce_mean(tf.square(wave - tf.sin(400.0 * times[:, 0])))
        optimizer.apply_gradients(zip(tape.gradient(loss, [frequency, gain]), [frequency, gain], strict=True))

    for _ in range(110):
        step()
    step.flush()

    found = [each for each in tb_gradflow.open_log(tmp_path).report().findings if "learning rate" in each.message]

    assert [(each.variables, each.severity) for each in found] == ([(("frequency",), "info")] if told else [])
