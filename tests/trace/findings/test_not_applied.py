"""A gradient that arrives and that nothing applies; and actors that are trained in other steps than the recorded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.serve.reports.report import Report

EVERY = 3

Apply = Callable[[Any, Any, Any], None]


def forgotten(optimizer: Any, gradients: Any, number: Any) -> None:
    pass


def given_to_others(optimizer: Any, gradients: Any, number: Any) -> None:
    """To those of a second network of the same name."""
    optimizer.apply_gradients(zip(gradients, optimizer.other, strict=True))


def delayed(optimizer: Any, gradients: Any, number: Any) -> None:
    """As TD3 does it, in steps of which none is recorded."""
    rate = tf.where(number % EVERY == 1, 1e-3, 0.0)
    for variable, gradient in zip(optimizer.actor, gradients, strict=True):
        variable.assign_sub(rate * gradient)


def applied(optimizer: Any, gradients: Any, number: Any) -> None:
    optimizer.apply_gradients(zip(gradients, optimizer.actor, strict=True))


def network(name: str, width: int, outputs: int) -> Any:
    layers = [keras.Input((width,)), keras.layers.Dense(8, "tanh"), keras.layers.Dense(outputs)]
    return keras.Sequential(layers, name=name)


def trained(apply: Apply, log_dir: Path, update_freq: int, steps: int) -> Report:
    """A few steps of DDPG."""
    keras.utils.set_random_seed(3)
    actor, critic = network("actor", 4, 2), network("critic", 6, 1)
    of_actor, of_critic = keras.optimizers.SGD(1e-2), keras.optimizers.SGD(1e-2)
    of_actor.actor, of_actor.other = actor.trainable_variables, network("actor", 4, 2).trainable_variables

    @tb_gradflow.watch(str(log_dir), update_freq=update_freq)
    def step(state: Any, action: Any, reward: Any, number: Any) -> Any:
        with tf.GradientTape() as tape:
            q_loss = tf.reduce_mean(tf.square(critic(tf.concat([state, action], 1)) - reward))
        gradients = tape.gradient(q_loss, critic.trainable_variables)
        of_critic.apply_gradients(zip(gradients, critic.trainable_variables, strict=True))
        with tf.GradientTape() as tape:
            policy_loss = -tf.reduce_mean(critic(tf.concat([state, actor(state)], 1)))
        gradients = tape.gradient(policy_loss, actor.trainable_variables)
        apply(of_actor, gradients, number)
        return q_loss

    rng = np.random.default_rng(0)
    for number in range(steps):
        state, action = (tf.constant(rng.normal(size=(16, width)), tf.float32) for width in (4, 2))
        step(state, action, state[:, :1] + action[:, :1], tf.constant(number))
    step.flush()
    return tb_gradflow.open_log(log_dir).report()


@pytest.mark.parametrize("apply", [forgotten, given_to_others])
def test_an_actor_whose_gradient_nothing_applies_is_told(apply: Apply, tmp_path: Path) -> None:
    report = trained(apply, tmp_path, update_freq=1, steps=5)

    [finding] = report.findings
    assert (finding.cause, finding.severity) == ("gradient_not_applied", "warning")
    assert {name.partition("/")[0] for name in finding.variables} == {"actor"}
    assert len(finding.variables) == 4
    assert finding.source is not None
    assert finding.source.code == "gradients = tape.gradient(policy_loss, actor.trainable_variables)"
    assert not report.healthy


@pytest.mark.parametrize("apply", [applied, delayed])
def test_an_actor_that_is_trained_is_healthy(apply: Apply, tmp_path: Path) -> None:
    report = trained(apply, tmp_path, update_freq=EVERY, steps=5 * EVERY)

    assert report.findings == ()


def test_the_first_steps_say_so_with_care(tmp_path: Path) -> None:
    trained(forgotten, tmp_path, update_freq=1, steps=5)
    log = tb_gradflow.open_log(tmp_path)

    severities = [[finding.severity for finding in log.report(step).findings] for step in log.steps]

    assert severities == [[], ["info"], ["info"], ["warning"], ["warning"]]


STEPS_AN_EPOCH = 8


def by_schedule(log_dir: Path, decay_steps: int, epochs: int) -> Report:
    keras.utils.set_random_seed(3)
    model = network("model", 4, 1)
    rate = keras.optimizers.schedules.PolynomialDecay(1e-2, decay_steps, end_learning_rate=0.0)
    model.compile(keras.optimizers.Adam(rate), "mse")
    x = np.random.default_rng(0).normal(size=(8 * STEPS_AN_EPOCH, 4))
    recorder = tb_gradflow.GradFlowCallback(log_dir, update_freq=5)
    model.fit(x, x[:, :1] * x[:, 1:2], batch_size=8, epochs=epochs, verbose=0, callbacks=[recorder])
    return tb_gradflow.open_log(log_dir).report()


def test_a_schedule_in_epochs_that_counts_steps_is_told(tmp_path: Path) -> None:
    report = by_schedule(tmp_path, decay_steps=14, epochs=14)

    [finding] = report.findings
    assert (finding.cause, finding.severity, len(finding.variables)) == ("gradient_not_applied", "warning", 4)
    assert "from 15 to 110" in finding.message
    assert "`decay_steps` counts steps, not epochs" in finding.fix


def test_a_schedule_that_ends_with_the_training_is_well(tmp_path: Path) -> None:
    assert by_schedule(tmp_path, decay_steps=14 * STEPS_AN_EPOCH, epochs=14).healthy


def test_a_rate_of_zero_in_a_fit_is_told_as_one(tmp_path: Path) -> None:
    model = network("model", 4, 1)
    model.compile(keras.optimizers.SGD(0.0), "mse")
    x = np.random.default_rng(0).normal(size=(8 * STEPS_AN_EPOCH, 4))
    recorder = tb_gradflow.GradFlowCallback(tmp_path, update_freq=5)
    model.fit(x, x[:, :1], batch_size=8, epochs=10, verbose=0, callbacks=[recorder])

    [finding] = tb_gradflow.open_log(tmp_path).report().findings
    assert (finding.cause, finding.severity) == ("gradient_not_applied", "warning")
    assert "`model.optimizer.learning_rate.assign(1e-3)`" in finding.fix
    assert "apply_gradients" not in finding.fix
