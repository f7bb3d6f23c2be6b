"""The same batch for some steps, rolled back: can the model learn it? And what accuracies say of right predictions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.analyse.step.learnable import has_not_fallen, is_not_the_reason, steps_too_short, teaches_nothing
from tb_gradflow.record.report import OverallVerdict
from tb_gradflow.record.schema import BatchChange, BatchFit, Descent, Trace
from tb_gradflow.trace.experiments import batch_fit
from tb_gradflow.trace.log import findings as ends
from tb_gradflow.trace.log.fall import Fall

RANDOM = np.random.default_rng(3)
X = RANDOM.normal(size=(64, 6)).astype("float32")
OF_X = (X[:, 0] * X[:, 1] > 0).astype("float32")
ALIKE = np.tile(X[:1], (64, 1))

Layers = keras.layers


def classifier(*between: Any, optimizer: Any = "adam", metrics: Any = ()) -> Any:
    keras.utils.set_random_seed(2)
    last = Layers.Dense(1, "sigmoid")
    model = keras.Sequential([keras.Input((6,)), Layers.Dense(32, "relu"), *between, last])
    model.compile(optimizer, "binary_crossentropy", metrics=list(metrics))
    return model


def regressor(optimizer: Any = "adam", metrics: Any = ()) -> Any:
    keras.utils.set_random_seed(2)
    model = keras.Sequential([keras.Input((6,)), Layers.Dense(16, "relu"), Layers.Dense(1)])
    model.compile(optimizer, "mse", metrics=list(metrics))
    return model


def verdict_of(model: Any, x: Any, y: Any) -> OverallVerdict:
    return tb_gradflow.explain(model, x, y, try_fixes=True).diagnosis.verdict


def trace_in(directory: Path) -> Trace:
    history = tb_gradflow.open_log(directory).recorded
    index = history.index()
    return history.trace(index.session.id, index.traces[-1])


def test_rows_that_look_alike_teach_nothing() -> None:
    verdict = verdict_of(classifier(), ALIKE, OF_X)

    assert verdict.kind == "batch"
    assert verdict.text.startswith(
        "Not the gradient, and not the learning rate: the model learns nothing from its inputs."
    )
    assert "just so where each row has the inputs of the first one" in verdict.text
    assert verdict.ruled_out[0] == "The gradient reaches all 4 trainable variables, and is finite."


@pytest.mark.parametrize("between", [[], [Layers.Dropout(0.5)], [Layers.BatchNormalization()]])
def test_a_batch_that_is_learned_rules_out_gradient_and_size(between: list[Any]) -> None:
    verdict = verdict_of(classifier(*between), X, OF_X)

    assert verdict.kind == "nothing_found"
    assert verdict.text.startswith("Healthy")
    assert "the size of the model: 50 steps with the 64 rows of step 0 alone lower the loss" in verdict.ruled_out[-1]


def test_a_model_that_has_learned_is_not_said_to_learn_nothing() -> None:
    """A linear model at its optimum can do no better, but does much better than without its inputs."""
    y = (X @ RANDOM.normal(size=(6, 1)) + 0.3 * RANDOM.normal(size=(64, 1))).astype("float32")
    weights = np.linalg.lstsq(np.c_[X, np.ones(64)][:32], y[:32], rcond=None)[0].astype("float32")
    model = keras.Sequential([keras.Input((6,)), Layers.Dense(1)])
    model.set_weights([weights[:6], weights[6]])
    model.compile(keras.optimizers.SGD(1e-3), "mse")

    assert verdict_of(model, X[32:], y[32:]).kind == "nothing_found"


def test_without_being_asked_nothing_is_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    def trains(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(batch_fit, "batch_fit_of", trains)

    assert tb_gradflow.explain(classifier(), ALIKE, OF_X).diagnosis.verdict.kind == "nothing_found"


def test_everything_is_rolled_back() -> None:
    model = classifier(Layers.Dropout(0.5), Layers.BatchNormalization(), metrics=["accuracy"])
    model.fit(X, OF_X, verbose=0)
    held = [*model.variables, *model.optimizer.variables, *(each for one in model.metrics for each in one.variables)]
    before = [each.numpy() for each in held]
    tf.random.set_seed(4)
    drawn = tf.random.uniform([]).numpy()
    tf.random.set_seed(4)

    assert verdict_of(model, X, OF_X).ruled_out

    assert tf.random.uniform([]).numpy() == drawn
    for was, variable in zip(before, held, strict=True):
        np.testing.assert_array_equal(was, variable.numpy())


@pytest.mark.parametrize("is_asked", [True, False])
def test_a_run_whose_loss_does_not_fall(tmp_path: Path, is_asked: bool) -> None:
    model = classifier(optimizer=keras.optimizers.SGD(1e-3))
    recorder = tb_gradflow.GradFlowCallback(tmp_path, update_freq=1, try_fixes=is_asked)
    model.fit(ALIKE, OF_X, batch_size=32, epochs=10, verbose=0, callbacks=[recorder])

    ends.try_fixes()

    verdict = tb_gradflow.open_log(tmp_path).report().diagnosis.verdict
    if not is_asked:
        assert verdict.kind == "nothing_found"
        return
    assert verdict.kind == "batch"
    [fit] = trace_in(tmp_path).fits
    assert fit.rows == 32
    assert fit.began is not None
    assert fit.ended == pytest.approx(fit.began, rel=0.1)
    assert tb_gradflow.open_log(tmp_path).report(step=0).diagnosis.verdict.kind == "nothing_found"


@pytest.mark.parametrize(("hours", "count"), [(0, 0), (1, 1)])
def test_unasked_it_takes_a_small_part_of_the_time_of_the_run(tmp_path: Path, hours: int, count: int) -> None:
    """What takes a hundredth of the time of a run that is over in a second is too much."""
    recorder = tb_gradflow.GradFlowCallback(tmp_path, update_freq=1)
    classifier().fit(ALIKE, OF_X, batch_size=32, epochs=10, verbose=0, callbacks=[recorder])
    ends._endings[:] = [replace(each, began=each.began - 3600 * hours) for each in ends._endings]

    ends.try_fixes()

    assert len(trace_in(tmp_path).fits) == count


@pytest.mark.parametrize(("steps", "is_told"), [(40, False), (220, True)])
def test_targets_without_relation_to_the_inputs_of_other_batches(tmp_path: Path, steps: int, is_told: bool) -> None:
    """A few steps may be too few for any data."""
    rows = 32 * steps
    x, y = RANDOM.normal(size=(rows, 6)).astype("float32"), RANDOM.integers(0, 2, (rows, 1)).astype("float32")
    recorder = tb_gradflow.GradFlowCallback(tmp_path, try_fixes=True)
    classifier(optimizer=keras.optimizers.Adam(1e-2)).fit(x, y, batch_size=32, verbose=0, callbacks=[recorder])

    ends.try_fixes()

    verdict = tb_gradflow.open_log(tmp_path).report().diagnosis.verdict
    assert verdict.kind == "nothing_found"
    assert ("But the loss has hardly fallen" in verdict.text) == is_told
    assert ("can learn the batch of that step by heart" in verdict.text) == is_told


def test_a_model_that_had_learned_before_has_nothing_more_to_learn(tmp_path: Path) -> None:
    x = RANDOM.normal(size=(640, 6)).astype("float32")
    y = (x[:, :1] + x[:, 1:2] + 0.6 * RANDOM.normal(size=(640, 1))).astype("float32")
    model = regressor(keras.optimizers.Adam(1e-2))
    model.fit(x, y, epochs=30, verbose=0)
    recorder = tb_gradflow.GradFlowCallback(tmp_path, try_fixes=True)
    model.fit(x, y, epochs=10, verbose=0, callbacks=[recorder])

    ends.try_fixes()

    verdict = tb_gradflow.open_log(tmp_path).report().diagnosis.verdict
    assert "But the model has learned from its inputs:" in verdict.text
    assert "each target belongs" not in verdict.text


def test_an_eager_step_with_a_tape_of_its_own_is_trained_too() -> None:
    model = regressor()
    y = tf.constant(X[:, :1])

    def loss() -> Any:
        return tf.reduce_mean((model(tf.constant(X)) - y) ** 2)

    verdict = tb_gradflow.explain(loss, variables=model.trainable_variables, try_fixes=True).diagnosis.verdict

    assert "lower the loss" in verdict.ruled_out[-1]
    assert "of step 0 alone" in verdict.ruled_out[-1]


def test_targets_of_a_hundred_thousand_are_the_reason_and_not_a_gradient_that_explodes() -> None:
    report = tb_gradflow.explain(regressor(), X, 2e5 + 8e4 * X[:, :1], try_fixes=True)

    [finding] = report.findings
    assert (finding.cause, finding.severity) == ("exploding_recurrence", "info")
    assert "the targets of this step go from" in finding.message
    assert report.diagnosis.verdict.kind == "labels"
    assert report.summary.startswith("Not the gradient, but the size of the targets")


def test_large_targets_are_a_warning_where_the_step_grows_with_the_gradient() -> None:
    [finding] = tb_gradflow.explain(regressor("sgd"), X, 2e5 + 8e4 * X[:, :1]).findings

    assert (finding.cause, finding.severity) == ("exploding_recurrence", "warning")
    assert "(y - y.mean()) / y.std()" in finding.fix


def test_a_loss_that_outgrows_its_targets_explodes_as_before() -> None:
    model = regressor()
    model.set_weights([300.0 * each for each in model.get_weights()])

    [finding] = tb_gradflow.explain(model, X, X[:, :1]).findings

    assert (finding.cause, finding.severity) == ("exploding_recurrence", "warning")
    assert "targets of this step" not in finding.message


def test_a_fall_is_looked_for_less_and_less_often() -> None:
    fall = Fall()

    asked = [number for number in range(100) if fall.is_missing([1.0]) is not None]

    assert asked[:4] == [10, 12, 14, 16]
    assert len(asked) < 30
    assert (fall.began, fall.ended) == (1.0, 1.0)


@pytest.mark.parametrize(("last", "is_missing"), [(0.95, True), (0.8, False), (1.5, True), (float("nan"), False)])
def test_a_loss_has_fallen_by_a_tenth_or_has_not(last: float, is_missing: bool) -> None:
    fall = Fall()
    for _ in range(10):
        assert fall.is_missing([1.0]) is None

    assert fall.is_missing([last]) == is_missing


def test_of_several_losses_none_is_missing() -> None:
    fall = Fall()

    assert {fall.is_missing([1.0, 1.0]) for _ in range(20)} == {None}


def descent(*losses: float, rate: float | None = 0.01, changed: BatchChange = "nothing") -> Descent:
    return Descent("own" if rate is None else "adam", rate, changed, losses)


def test_steps_that_have_not_settled_say_nothing_of_the_inputs() -> None:
    for part in (0.01, 0.001):
        falling = tuple(1.0 - part * number for number in range(40))
        fit = BatchFit(9, 32, (descent(*falling), descent(*falling, changed="inputs_alike")), 1.0, 1.0)

        assert teaches_nothing(fit) == has_not_fallen(fit) == ""


@pytest.mark.parametrize(("step", "is_told"), [(349, False), (449, True)])
def test_a_slow_optimizer_needs_more_steps_until_its_run_is_judged(step: int, is_told: bool) -> None:
    """The loss of one batch takes 40 of 50 steps to move."""
    own = descent(*(1.0 - 0.005 * number for number in range(51)), rate=None)
    fit = BatchFit(step, 32, (own, descent(1.0, 0.1)), 1.0, 1.0)

    assert bool(has_not_fallen(fit)) == is_told


def test_an_optimizer_that_does_not_move_while_another_learns() -> None:
    descents = (descent(1.0, 0.999, rate=None), descent(1.0, 0.1))

    assert steps_too_short(BatchFit(9, 32, descents)) == ""
    assert "by 0.1 % with its own optimizer; with Adam at a rate of 0.01, to 0.1" in steps_too_short(
        BatchFit(9, 32, descents, 1.0, 1.0)
    )


@pytest.mark.parametrize("losses", [(-1.0, -5.0), (float("nan"), 0.1), (0.0, 0.0)])
def test_a_loss_that_is_not_positive_is_not_judged(losses: tuple[float, ...]) -> None:
    fit = BatchFit(9, 32, (descent(*losses),), 1.0, 1.0)

    assert is_not_the_reason(fit) == has_not_fallen(fit) == ""


@pytest.mark.parametrize(("own", "without"), [((-0.1, -0.2), (0.3, 0.2)), ((-1.0, -1.8), (-1.0, -1.9, -1.9, -1.9))])
def test_of_a_loss_that_is_not_positive_no_part_is_compared(own: tuple[float, ...], without: tuple[float, ...]) -> None:
    """As that of a policy gradient."""
    alike = descent(*without, without[-1], without[-1], changed="inputs_alike")
    fit = BatchFit(9, 32, (descent(*own, own[-1], own[-1], own[-1], own[-1]), alike), 0.0, 0.0)

    assert has_not_fallen(fit) == ""


LOGITS = keras.losses.BinaryCrossentropy(from_logits=True)
CLASSES = np.argmax(X[:, :3], -1)


def compiled(units: int, activation: str | None, loss: Any, metric: Any) -> Any:
    keras.utils.set_random_seed(2)
    model = keras.Sequential([keras.Input((6,)), Layers.Dense(16, "relu"), Layers.Dense(units, activation)])
    model.compile("adam", loss, metrics=[metric])
    return model


@pytest.mark.parametrize(
    ("units", "activation", "loss", "metric", "y", "said"),
    [
        (1, None, "mse", "accuracy", X[:, :1], "it is 0 for predictions without an error"),
        (1, "tanh", "hinge", "accuracy", 2 * OF_X - 1, "not all of the targets are numbers of classes"),
        (1, None, LOGITS, "binary_accuracy", OF_X, "`metrics=[keras.metrics.BinaryAccuracy(threshold=0.0)]` is 1"),
        (
            *(3, "softmax", "sparse_categorical_crossentropy", "categorical_accuracy"),
            *(CLASSES[:, None], '`metrics=["sparse_categorical_accuracy"]` is 1'),
        ),
        (
            1,
            "sigmoid",
            "binary_crossentropy",
            keras.metrics.Accuracy,
            OF_X[:, None],
            '`metrics=["binary_accuracy"]` is 1',
        ),
    ],
)
def test_an_accuracy_that_right_predictions_do_not_reach(
    units: int, activation: str | None, loss: Any, metric: Any, y: Any, said: str
) -> None:
    model = compiled(units, activation, loss, metric if isinstance(metric, str) else metric())

    verdict = verdict_of(model, X, y)

    assert "But do not go by the metric" in verdict.text
    assert said in verdict.text


@pytest.mark.parametrize(
    ("units", "activation", "loss", "metric", "y"),
    [
        (1, "sigmoid", "binary_crossentropy", "accuracy", OF_X),
        (3, "softmax", "sparse_categorical_crossentropy", "accuracy", CLASSES),
        (3, None, keras.losses.SparseCategoricalCrossentropy(from_logits=True), "accuracy", CLASSES[:, None]),
        (3, "softmax", "categorical_crossentropy", "accuracy", keras.utils.to_categorical(CLASSES)),
        (3, "sigmoid", "binary_crossentropy", "binary_accuracy", (X[:, :3] > 0).astype("float32")),
        (1, None, LOGITS, "mae", OF_X),
        (1, None, "mse", "mae", X[:, :1]),
    ],
)
def test_an_accuracy_that_fits_is_not_named(units: int, activation: str | None, loss: Any, metric: str, y: Any) -> None:
    assert "metric" not in verdict_of(compiled(units, activation, loss, metric), X, y).text


def without_the_log_determinant(y: tf.Tensor, scale: tf.Tensor) -> tf.Tensor:
    """The density of a flow; its gradient is that of the first term alone."""
    return tf.reduce_mean(tf.square(y * tf.exp(scale)) / 2 - 2 * tf.stop_gradient(scale))


def with_a_target_network(y: tf.Tensor, found: tf.Tensor) -> tf.Tensor:
    return tf.reduce_mean(tf.square(found - y - 0.1 * tf.stop_gradient(found)))


@pytest.mark.parametrize("is_part", [True, False])
def test_a_loss_that_rises_along_its_gradient_as_a_part_of_it_is_stopped(tmp_path: Path, is_part: bool) -> None:
    """A `stop_gradient` that does no harm is not mentioned."""
    x, y = RANDOM.normal(size=(1280, 6)).astype("float32"), RANDOM.normal(size=(1280, 1)).astype("float32")
    model = regressor(keras.optimizers.Adam(1e-2))
    model.compile(keras.optimizers.Adam(1e-2), without_the_log_determinant if is_part else with_a_target_network)
    recorder = tb_gradflow.GradFlowCallback(tmp_path, try_fixes=True)
    model.fit(x, y, epochs=5, verbose=0, callbacks=[recorder])

    ends.try_fixes()

    text = tb_gradflow.open_log(tmp_path).report().diagnosis.verdict.text
    line = without_the_log_determinant.__code__.co_firstlineno + 2
    assert ("But the loss has risen" in text) == is_part
    assert ("never lower it" in text) == is_part
    assert (f"`stop_gradient` (test_batch_fit.py:{line}) takes part of it out" in text) == is_part
