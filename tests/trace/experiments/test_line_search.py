"""Longer and shorter steps are tried on the step's own batch: is it the learning rate?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow import GradFlowCallback
from tb_gradflow.record.experiments import LineSearch
from tb_gradflow.record.report import OverallVerdict
from tests.trace.experiments.logs import tried_in

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(64, 8)).astype("float32")
Y = X[:, :1] * 2 - X[:, 1:2]


def model_of(optimizer: Any, **how: Any) -> Any:
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16, "tanh"), keras.layers.Dense(1)])
    model.compile(optimizer, "mse", **how)
    return model


def searches_in(directory: Path) -> list[LineSearch]:
    return [each for _, known in tried_in(directory) for each in known.line_searches]


def fitted(model: Any, directory: Path, epochs: int = 8) -> OverallVerdict:
    callbacks = [GradFlowCallback(directory, update_freq=1)]
    model.fit(X, Y, batch_size=16, epochs=epochs, shuffle=False, verbose=0, callbacks=callbacks)
    return tb_gradflow.open_log(directory).report().diagnosis.verdict


@pytest.mark.parametrize("optimizer", [keras.optimizers.SGD, keras.optimizers.Adam])
def test_the_losses_are_those_of_the_model_after_such_steps(optimizer: Any) -> None:
    def loss_after(factor: float) -> float:
        model = model_of(optimizer(1e-3))
        before = model.get_weights()
        model.train_on_batch(X, Y)
        after = model.get_weights()
        model.set_weights([one + factor * (other - one) for one, other in zip(before, after, strict=True)])
        return float(model.evaluate(X, Y, batch_size=64, verbose=0))

    report = tb_gradflow.explain(model_of(optimizer(1e-3)), X, Y)

    assert report.diagnosis.verdict.ruled_out[-1] == (
        f"The learning rate: the step lowers the loss of its own batch from {loss_after(0):.3g} "
        f"to {loss_after(1):.3g}; a tenth of it, to {loss_after(0.1):.3g}; ten times it, to {loss_after(10):.3g}."
    )


def test_a_step_that_is_too_long(tmp_path: Path) -> None:
    report = tb_gradflow.explain(model_of(keras.optimizers.SGD(3.0)), X, Y)

    assert report.healthy
    assert report.to_dict()["verdict"]["kind"] == "rate"
    assert report.summary.startswith(
        "Not the gradient, but the step is too long: the learning rate, 3, raises the loss of the step's own batch"
    )
    assert "Ruled out: The gradient reaches all 4 trainable variables, and is finite." in str(report)


@pytest.mark.parametrize("how", [{}, {"jit_compile": True}], ids=["compiled", "xla"])
def test_a_training_whose_steps_are_too_short(tmp_path: Path, how: dict[str, bool]) -> None:
    verdict = fitted(model_of(keras.optimizers.Adam(1e-7), **how), tmp_path)

    assert verdict.kind == "rate"
    assert verdict.text.startswith(
        "Not the gradient, but the step is too short: in step 23, the learning rate, 1e-07, leaves the loss"
    )
    assert " times as long would lower it to " in verdict.text
    assert len(searches_in(tmp_path)) == 2  # in the twelfth recorded step, and the twenty-fourth


def test_a_training_that_learns_is_not_asked(tmp_path: Path) -> None:
    verdict = fitted(model_of(keras.optimizers.Adam(1e-2)), tmp_path)

    assert not searches_in(tmp_path)
    assert verdict.kind == "nothing_found"
    assert verdict.ruled_out[0] == "The gradient reaches all 4 trainable variables, and is finite."


def test_a_training_that_stands_still_with_good_steps_is_told_so(tmp_path: Path) -> None:
    rows = RANDOM.normal(size=(640, 8)).astype("float32")
    noise = RANDOM.normal(size=(640, 1)).astype("float32")
    model = model_of(keras.optimizers.Adam(1e-3))
    model.fit(rows, noise, batch_size=16, epochs=1, verbose=0, callbacks=[GradFlowCallback(tmp_path, update_freq=1)])

    verdict = tb_gradflow.open_log(tmp_path).report().diagnosis.verdict
    assert verdict.kind == "nothing_found"
    assert searches_in(tmp_path)
    assert verdict.ruled_out[-1].startswith("The learning rate: the step lowers the loss of its own batch from ")


def test_a_training_that_breaks_because_its_steps_are_too_long(tmp_path: Path) -> None:
    verdict = fitted(model_of(keras.optimizers.SGD(5.0)), tmp_path)

    assert verdict.kind == "rate"
    assert " of 4 trainable variables get " in verdict.text
    assert "Before that, in step " in verdict.text
    assert ", the learning rate, 5, raised the loss of the step's own batch from " in verdict.text
    loud = [each for each in tb_gradflow.open_log(tmp_path).report().findings if each.severity != "info"]
    assert loud
    for finding in loud:
        assert finding.fix.startswith("Lower the learning rate, 5: in step ")
        assert finding.edit is None


def test_a_training_that_recovers_from_steps_that_were_too_long_is_not_told_of_them(tmp_path: Path) -> None:
    class Rates(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            taken = int(self.model.optimizer.iterations.numpy())
            self.model.optimizer.learning_rate = 1.0 if taken < 3 else 0.01

    model = model_of(keras.optimizers.SGD(1.0))
    callbacks = [Rates(), GradFlowCallback(tmp_path, update_freq=1)]
    model.fit(X, Y, batch_size=16, epochs=20, shuffle=False, verbose=0, callbacks=callbacks)

    assert searches_in(tmp_path)[0].better is not None
    log = tb_gradflow.open_log(tmp_path)
    assert log.report().diagnosis.verdict.kind == "nothing_found"
    assert log.report(step=0).diagnosis.verdict.kind == "nothing_found"


def test_a_training_that_breaks_for_another_reason(tmp_path: Path) -> None:
    class Logs(keras.layers.Layer):
        def call(self, x: Any) -> Any:
            return tf.math.log(tf.nn.relu(x))

    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4), Logs(), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.01), "mse")

    assert fitted(model, tmp_path).kind == "gradient"


def test_steps_that_add_up_until_a_rounding_jumps_are_not_too_short() -> None:
    class Rounds(keras.layers.Layer):
        def build(self, shape: Any) -> None:
            self.size = self.add_weight(name="size", shape=(), initializer=keras.initializers.Constant(0.6))

        def call(self, x: Any) -> Any:
            size = 4.0 * self.size
            return x * (size + tf.stop_gradient(tf.round(size) - size))

    model = keras.Sequential([keras.Input((1,)), Rounds()])
    model.compile(keras.optimizers.SGD(1e-5), "mse")

    report = tb_gradflow.explain(model, X[:, :1], 9.0 * X[:, :1])

    assert report.diagnosis.verdict.kind == "nothing_found"


def test_steps_after_which_the_loss_is_not_finite_are_recorded_too(tmp_path: Path) -> None:
    class Exponential(keras.layers.Layer):
        def call(self, x: Any) -> Any:
            return tf.exp(1000.0 * x)

    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1, kernel_initializer="zeros"), Exponential()])
    model.compile(keras.optimizers.Adam(1e-7), "mse")

    fitted(model, tmp_path)

    found = searches_in(tmp_path)
    assert len(found) == 2
    assert all(each.losses[-1] is None and each.losses[0] is not None for each in found)
    assert tb_gradflow.open_log(tmp_path).steps[-1] == 31


def test_a_missing_gradient_comes_first() -> None:
    class Rounds(keras.layers.Layer):
        def call(self, x: Any) -> Any:
            return tf.round(x)

    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4), Rounds(), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(10.0), "mse")

    report = tb_gradflow.explain(model, X, Y)

    assert report.to_dict()["verdict"] == {"kind": "gradient", "text": report.summary, "ruled_out": []}


def test_nothing_is_left_to_learn() -> None:
    model = model_of(keras.optimizers.SGD(0.1))

    report = tb_gradflow.explain(model, X, model.predict(X, verbose=0))

    assert report.diagnosis.verdict.kind == "learned"


def test_the_training_is_the_same(tmp_path: Path) -> None:
    plain, watched = model_of(keras.optimizers.Adam(1e-8)), model_of(keras.optimizers.Adam(1e-8))

    plain.fit(X, Y, batch_size=16, epochs=8, shuffle=False, verbose=0)
    fitted(watched, tmp_path)

    assert searches_in(tmp_path)
    assert all(
        np.array_equal(one, other) for one, other in zip(plain.get_weights(), watched.get_weights(), strict=True)
    )


def test_a_step_larger_than_the_weights_after_which_the_loss_has_risen(tmp_path: Path) -> None:
    """It lowers the loss of its own batch, so that a search along it finds nothing."""
    random = np.random.default_rng(0)
    x, y = random.uniform(size=(96, 5)), keras.utils.to_categorical(random.integers(0, 10, 96), 10)
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((5,)), keras.layers.Dense(10, "softmax")])
    model.compile(keras.optimizers.SGD(1e5), "categorical_crossentropy")
    model.fit(x, y, epochs=4, verbose=0, callbacks=[GradFlowCallback(tmp_path)])
    verdict = tb_gradflow.open_log(tmp_path).report().diagnosis.verdict

    assert verdict.kind == "rate"
    assert (
        "too long: in step 0, the step was larger than the weights that it changed, and the loss rose" in verdict.text
    )


@pytest.mark.parametrize("rate", [1.0, 1e-3])
def test_units_that_die_after_such_a_step_need_a_lower_rate(rate: float, tmp_path: Path) -> None:
    """Units that were inactive from the beginning do not."""
    keras.utils.set_random_seed(1)
    at_first = "glorot_uniform" if rate == 1.0 else keras.initializers.Constant(-1.0)
    layers = [keras.layers.Dense(16, "relu"), keras.layers.Dense(16, "relu", kernel_initializer=at_first)]
    model = keras.Sequential([keras.Input((8,)), *layers, keras.layers.Dense(3, "softmax")])
    model.compile(keras.optimizers.Adam(rate), "sparse_categorical_crossentropy")
    classes = np.random.default_rng(1).integers(0, 3, 64)
    model.fit(np.abs(X), classes, batch_size=16, epochs=5, verbose=0, callbacks=[GradFlowCallback(tmp_path)])
    report = tb_gradflow.open_log(tmp_path).report()
    dead = next(each for each in report.findings if each.cause == "dead_relu")

    late = "Lower the learning rate: in step 0, before this began, the step was too long."
    assert dead.fix.startswith(late) == (rate == 1.0)


def test_a_loss_that_grows_later_says_nothing_of_a_first_step_from_zero(tmp_path: Path) -> None:
    """Targets that grow from batch to batch."""
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1, kernel_initializer="zeros")])
    model.compile(keras.optimizers.SGD(0.01), "mse")
    model.fit(
        X, Y * 1.05 ** np.arange(64)[:, None], batch_size=4, shuffle=False, verbose=0,
        callbacks=[GradFlowCallback(tmp_path, update_freq=1)],
    )  # fmt: skip
    verdict = tb_gradflow.open_log(tmp_path).report().diagnosis.verdict

    assert "larger than the weights" not in verdict.text


def test_a_loss_that_was_negative_is_not_measured_by_how_many_times_it_has_risen(tmp_path: Path) -> None:
    """That of a policy gradient is about zero at first."""

    def weighted(y: Any, p: Any) -> Any:
        return -tf.reduce_mean(y * tf.math.log(p))

    advantages = RANDOM.normal(size=(64, 3)).astype("float32")
    advantages[:8] -= advantages[:8].mean()
    advantages[8:] = 1.0
    advantages[16:24] = -1.0
    first = keras.layers.Dense(3, "softmax", kernel_initializer="zeros")
    model = keras.Sequential([keras.Input((8,)), first])
    model.compile(keras.optimizers.SGD(1e-3), weighted)
    model.fit(
        X, advantages, batch_size=8, shuffle=False, verbose=0,
        callbacks=[GradFlowCallback(tmp_path, update_freq=1)],
    )  # fmt: skip
    verdict = tb_gradflow.open_log(tmp_path).report().diagnosis.verdict

    assert "larger than the weights" not in verdict.text
