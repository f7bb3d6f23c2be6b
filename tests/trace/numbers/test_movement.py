"""Which elements an update moves without a gradient, and which it leaves with one: against the weights themselves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import tb_gradflow
from tb_gradflow.record.schema import MOVEMENT_STATISTICS
from tb_gradflow.serve.reports.report import Report

BEGIN = np.linspace(0.5, 2, 6, dtype=np.float32).reshape(3, 2)
GOAL = np.random.default_rng(0).normal(size=(3, 2)).astype(np.float32)
MASKS = [
    np.array(each, np.float32)
    for each in ([[1, 0], [1, 0], [0, 1]], [[0, 1], [1, 0], [0, 0]], [[0, 0], [0, 0], [0, 1]])
]

Make = Callable[[], Any]

_NAMES = (
    *("Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax"),
    *("Ftrl", "Lamb", "Lion", "Nadam", "RMSprop", "SGD"),
)
# Of newer versions of Keras.
_NEW = tuple(name for name in ("Muon", "ScheduleFreeAdamW") if hasattr(keras.optimizers, name))

OPTIMIZERS: dict[str, Make] = {
    **{name: getattr(keras.optimizers, name) for name in (*_NAMES, *_NEW)},
    "momentum": lambda: keras.optimizers.SGD(0.01, momentum=0.9),
    "RMSprop with momentum": lambda: keras.optimizers.RMSprop(0.01, momentum=0.9),
    "a schedule": lambda: keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.5)),
    "a loss scale": lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam()),
    "accumulation": lambda: keras.optimizers.Adam(gradient_accumulation_steps=2),
    "decay": lambda: keras.optimizers.SGD(0.1, weight_decay=0.1),
    "a rate of zero": lambda: keras.optimizers.SGD(0.0),
    "a tiny rate": lambda: keras.optimizers.SGD(1e-9),
    "EMA": lambda: keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.5, ema_overwrite_frequency=3),
    "Keras 2": tf_keras.optimizers.Adam,
    "Keras 2, legacy": tf_keras.optimizers.legacy.Adam,
    "Keras 2, legacy momentum": lambda: tf_keras.optimizers.legacy.SGD(0.1, momentum=0.9),
    "TensorFlow 1": lambda: tf.compat.v1.train.AdamOptimizer(0.1),
    "TensorFlow 1, momentum": lambda: tf.compat.v1.train.MomentumOptimizer(0.1, 0.9),
    "TensorFlow 1, descent": lambda: tf.compat.v1.train.GradientDescentOptimizer(0.1),
}  # fmt: skip


def trained(log: Path, optimizer: Any, *, eagerly: bool = False) -> list[tuple[int, int, int]]:
    """Trains parts of a weight in turns; for each step the true numbers of elements without a gradient, of those of
    them that moved, and of those with one that did not."""
    is_keras_3 = type(optimizer).__module__.startswith("keras.")
    weight = keras.Variable(BEGIN, name="weight") if is_keras_3 else tf.Variable(BEGIN)
    tf.config.run_functions_eagerly(eagerly)

    @tb_gradflow.watch(str(log), update_freq=1)
    def step(mask: Any) -> Any:
        with tf.GradientTape() as tape:
            masked = weight * mask + tf.stop_gradient((1 - mask) * weight)
            loss = tf.reduce_sum(tf.square(masked - GOAL))
        gradients = tape.gradient(loss, [weight])
        optimizer.apply_gradients(zip(gradients, [weight], strict=True))
        return gradients[0]

    truth = []
    try:
        for mask in MASKS:
            before = tf.convert_to_tensor(weight).numpy()
            zero = np.asarray(step(tf.constant(mask))) == 0
            changed = tf.convert_to_tensor(weight).numpy() != before
            truth.append((int(zero.sum()), int((zero & changed).sum()), int((~zero & ~changed).sum())))
    finally:
        tf.config.run_functions_eagerly(False)
    step.flush()
    return truth


def recorded(log: Path) -> list[dict[str, float]]:
    """For each recorded step in which it is known, how the one weight moved."""
    history = tb_gradflow.open_log(log).recorded
    index, found = history.index(), []
    for head in index.chunks:
        trace, numbers = history.trace(index.session.id, head.trace), history.gradients(index.session.id, head.id)
        for place in range(len(head.steps)):
            for movement in trace.movements:
                found.append(dict(zip(MOVEMENT_STATISTICS, numbers[place, movement.row].tolist(), strict=True)))
    return found


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_elements_that_move_are_counted(name: str, tmp_path: Path) -> None:
    truth = trained(tmp_path, OPTIMIZERS[name]())

    found = recorded(tmp_path)
    assert [(each["zeros"], each["moved"], each["unmoved"]) for each in found] == truth


def test_in_an_eager_step_they_are_counted_once_the_weight_is_known(tmp_path: Path) -> None:
    truth = trained(tmp_path, keras.optimizers.Adam(), eagerly=True)

    found = recorded(tmp_path)
    assert [(each["zeros"], each["moved"], each["unmoved"]) for each in found] == truth[1:]


def rate_by_assignment(optimizer: Any, number: Any) -> None:
    optimizer.learning_rate.assign(0.1 * number)


def rate_in_a_branch(optimizer: Any, number: Any) -> None:
    rate = optimizer.learning_rate
    tf.cond(number > 0, lambda: rate.assign(0.5), lambda: rate.assign(0.25))


def rate_in_a_function(optimizer: Any, number: Any) -> None:
    tf.function(rate_by_assignment)(optimizer, number)


def rate_afterwards(optimizer: Any, number: Any) -> None:
    """The step itself leaves it as it is."""


@pytest.mark.parametrize("change", [rate_by_assignment, rate_in_a_branch, rate_in_a_function, rate_afterwards])
@pytest.mark.parametrize("make", [keras.optimizers.SGD, keras.optimizers.Adam, tf_keras.optimizers.SGD])
def test_the_rate_is_that_of_the_update(make: Make, change: Callable[[Any, Any], None], tmp_path: Path) -> None:
    optimizer, number, used = make(), tf.Variable(0.0, trainable=False), []
    weight = (keras if make.__module__.startswith("keras.") else tf).Variable(BEGIN)

    @tb_gradflow.watch(str(tmp_path), update_freq=1)
    def step() -> Any:
        change(optimizer, number)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(weight - GOAL))
        optimizer.apply_gradients(zip(tape.gradient(loss, [weight]), [weight], strict=True))
        number.assign_add(1.0)
        return tf.convert_to_tensor(optimizer.learning_rate)

    for _ in range(3):
        used.append(float(step()))
        optimizer.learning_rate.assign(0.03)
    step.flush()

    assert [each["rate"] for each in recorded(tmp_path)] == used


def said(tmp_path: Path, optimizer: Any) -> str:
    trained(tmp_path, optimizer)
    return " ".join(str(tb_gradflow.open_log(tmp_path).report()).split())


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Adam", "because Adam remembers gradients of earlier steps."),
        ("momentum", "because SGD remembers gradients of earlier steps."),
        ("AdamW", "and AdamW applies a weight decay of 0.004 independently of the gradient."),
        ("decay", "because SGD applies a weight decay of 0.1 independently of the gradient."),
        ("EMA", "because SGD replaces the weight with a moving average."),
        ("TensorFlow 1", "because AdamOptimizer remembers gradients of earlier steps."),
    ],
)
def test_what_moves_them_is_named(name: str, why: str, tmp_path: Path) -> None:
    text = said(tmp_path, OPTIMIZERS[name]())

    assert "INFO mask_multiplies_to_zero" in text
    assert why in text
    assert "weight.assign(tf.where(mask != 0, weight, before))" in text


@pytest.mark.parametrize("name", ["SGD", "Adagrad", "RMSprop", "TensorFlow 1, descent"])
def test_where_nothing_moves_nothing_is_said(name: str, tmp_path: Path) -> None:
    assert "mask_multiplies_to_zero" not in said(tmp_path, OPTIMIZERS[name]())


def watched(tmp_path: Path, step: Callable[[Any], None]) -> Report:
    run = tb_gradflow.watch(str(tmp_path), update_freq=1)(step)
    for mask in MASKS[:2]:
        run(tf.constant(mask))
    run.flush()
    return tb_gradflow.open_log(tmp_path).report()


def test_a_mask_that_is_a_frozen_weight_counts(tmp_path: Path) -> None:
    weight, kept = tf.Variable(BEGIN, name="weight"), tf.Variable(MASKS[0], trainable=False, name="kept")
    optimizer = keras.optimizers.Adam()

    def step(mask: Any) -> None:
        kept.assign(mask)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(weight * kept - GOAL))
        optimizer.apply_gradients(zip(tape.gradient(loss, [weight]), [weight], strict=True))

    [finding] = watched(tmp_path, step).findings
    assert (finding.cause, finding.severity) == ("mask_multiplies_to_zero", "info")
    assert "tf.where(kept != 0, weight, before)" in finding.fix


def test_gradients_that_were_masked_by_hand_count(tmp_path: Path) -> None:
    weight = tf.Variable(BEGIN, name="weight")
    optimizer = keras.optimizers.Adam()

    def step(mask: Any) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(weight - GOAL))
        gradients = [each * mask for each in tape.gradient(loss, [weight])]
        optimizer.apply_gradients(zip(gradients, [weight], strict=True))

    [finding] = watched(tmp_path, step).findings
    assert (finding.cause, finding.severity) == ("mask_multiplies_to_zero", "info")
    assert "was set to zero there between the tape and the optimizer" in finding.message


def test_a_mask_that_chooses_counts_and_is_called_by_the_users_names(tmp_path: Path) -> None:
    theta, opt = tf.Variable(BEGIN, name="theta"), keras.optimizers.Adam()

    def step(mask: Any) -> None:
        live = mask > 0
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(tf.where(live, theta, tf.stop_gradient(theta)) - GOAL))
        opt.apply_gradients(zip(tape.gradient(loss, [theta]), [theta], strict=True))

    [finding] = watched(tmp_path, step).findings
    assert (finding.cause, finding.severity) == ("mask_multiplies_to_zero", "info")
    assert "opt.apply_gradients(zip(tape.gradient(loss, [theta]), [theta], strict=True))" in finding.fix
    assert "theta.assign(tf.where(live, theta, before))" in finding.fix


def test_a_step_that_a_loss_scale_skips_is_not_said_to_be_clipped(tmp_path: Path) -> None:
    one, other = keras.Variable(BEGIN, name="one"), keras.Variable(BEGIN, name="other")
    opt = keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(clipnorm=1.0), initial_scale=2.0**120)

    def step(mask: Any) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(one - GOAL)) + tf.reduce_sum(tf.square(other - 1e9 * mask))
            scaled = opt.scale_loss(loss)
        opt.apply_gradients(zip(tape.gradient(scaled, [one, other]), [one, other], strict=True))

    assert all("clips" not in each.message for each in watched(tmp_path, step).findings)


def put_back(weight: Any, optimizer: Any, gradients: Any, mask: Any) -> None:
    before = tf.identity(weight)
    optimizer.apply_gradients(zip(gradients, [weight], strict=True))
    weight.assign(tf.where(mask != 0, weight, before))


def slots_masked(weight: Any, optimizer: Any, gradients: Any, mask: Any) -> None:
    for slot in optimizer.variables:
        if slot.shape == weight.shape:
            slot.assign(slot * mask)
    optimizer.apply_gradients(zip(gradients, [weight], strict=True))


@pytest.mark.parametrize("remedy", [put_back, slots_masked])
def test_the_remedies_hold_them_still_and_are_quiet(remedy: Callable[..., None], tmp_path: Path) -> None:
    weight, optimizer = tf.Variable(BEGIN, name="weight"), keras.optimizers.Adam(0.1)
    optimizer.build([weight])

    def step(mask: Any) -> None:
        with tf.GradientTape() as tape:
            masked = weight * mask + tf.stop_gradient((1 - mask) * weight)
            loss = tf.reduce_sum(tf.square(masked - GOAL))
        remedy(weight, optimizer, tape.gradient(loss, [weight]), mask)

    report = watched(tmp_path, step)

    assert report.findings == ()
    # What the second mask leaves out is where the first has put it.
    assert np.all(weight.numpy()[(MASKS[0] == 0) & (MASKS[1] == 0)] == BEGIN[(MASKS[0] == 0) & (MASKS[1] == 0)])


def of_one_step(optimizer: Any) -> Report:
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, name="dense")])
    model.compile(optimizer, "mse")
    x = np.random.default_rng(1).normal(size=(8, 2)).astype(np.float32)
    model.fit(x, x[:, :1], epochs=2, verbose=0)
    return tb_gradflow.explain(model, x, x[:, :1])


@pytest.mark.parametrize(
    ("make", "severity", "why"),
    [
        (lambda: keras.optimizers.SGD(0.0), "warning", "its learning rate is 0 in this step"),
        (
            lambda: keras.optimizers.SGD(keras.optimizers.schedules.PolynomialDecay(0.1, 1, 0.0)),
            "info",
            "its learning rate is 0 in this step",
        ),
        (lambda: keras.optimizers.SGD(0.1, clipnorm=1e-12), "warning", "it clips gradients with `clipnorm=1e-12`"),
        (
            lambda: keras.optimizers.SGD(1e-9),
            "info",
            "the update is smaller than the spacing of `float32` values there",
        ),
    ],
)
def test_what_holds_weights_still_that_have_a_gradient_is_named_in_the_first_step(
    make: Make, severity: str, why: str
) -> None:
    finding = of_one_step(make()).findings[0]

    assert (finding.cause, finding.severity) == ("gradient_not_applied", severity)
    assert why in finding.message


def test_weights_in_half_precision_that_are_too_coarse_for_their_steps_are_a_warning(tmp_path: Path) -> None:
    weight, optimizer = tf.Variable(tf.cast(BEGIN + 3, tf.bfloat16), name="weight"), keras.optimizers.SGD(1e-4)

    def step(mask: Any) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(tf.cast(weight, tf.float32) - GOAL)) + 0.0 * tf.reduce_sum(mask)
        optimizer.apply_gradients(zip(tape.gradient(loss, [weight]), [weight], strict=True))

    finding = watched(tmp_path, step).findings[0]

    assert (finding.cause, finding.severity) == ("gradient_not_applied", "warning")
    assert "smaller than the spacing of `bfloat16` values" in finding.message
