"""Variables that the loss depends on, and that the list for the gradient lacks: a mistake, or not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.record.report import Finding
from tb_gradflow.serve.reports.report import Report

X = np.random.default_rng(0).normal(size=(16, 4)).astype("float32")
Loss = Callable[[Any], Any]


def network(name: str, width: int, outputs: int) -> Any:
    return keras.Sequential(
        [keras.Input((width,)), keras.layers.Dense(6, "tanh"), keras.layers.Dense(outputs)], name=name
    )


def trained(
    log_dir: Path, loss: Loss, variables: list[Any], between: Callable[[int], None] = lambda number: None
) -> Report:
    """A few steps that train some variables, and what else happens after each."""

    @tb_gradflow.watch(str(log_dir), update_freq=1)
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            value = loss(x)
        for variable, gradient in zip(variables, tape.gradient(value, variables), strict=True):
            variable.assign_sub(0.02 * gradient)
        return value

    for number in range(6):
        step(tf.constant(X))
        between(number)
    step.flush()
    return tb_gradflow.open_log(log_dir).report()


def loud(report: Report) -> list[Finding]:
    return [each for each in report.findings if each.severity != "info"]


def test_a_classifier_behind_trained_layers_is_missing(tmp_path: Path) -> None:
    keras.utils.set_random_seed(0)
    features, classifier = network("features", 4, 5), network("classifier", 5, 3)
    labels = np.arange(16) % 3

    def loss(x: Any) -> Any:
        logits = classifier(features(x))
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))

    report = trained(tmp_path, loss, features.trainable_variables)

    [finding] = loud(report)
    assert (finding.cause, finding.severity) == ("untracked_variable", "warning")
    assert {name.partition("/")[0] for name in finding.variables} == {"classifier"}
    assert len(finding.variables) == 4
    assert "no gradient is requested for them" in report.summary
    assert "It started" not in str(report)


@pytest.mark.parametrize("apply", [lambda y, v: y / tf.exp(v), lambda y, v: y + v, lambda y, v: tf.pow(tf.abs(y), v)])
def test_a_parameter_of_what_is_trained_is_missing(apply: Callable[[Any, Any], Any], tmp_path: Path) -> None:
    keras.utils.set_random_seed(0)
    model, parameter = network("model", 4, 1), tf.Variable(1.5, name="parameter")

    report = trained(
        tmp_path, lambda x: tf.reduce_mean(tf.square(apply(model(x), parameter) - 1.0)), model.trainable_variables
    )

    [finding] = loud(report)
    assert (finding.cause, finding.variables) == ("untracked_variable", ("parameter",))


@pytest.mark.parametrize(("left_out", "trained_one"), [("student", "teacher"), ("online_net", "target_net")])
def test_a_student_whose_teacher_is_trained_in_its_place_is_a_warning(
    left_out: str, trained_one: str, tmp_path: Path
) -> None:
    keras.utils.set_random_seed(0)
    one, other = network(left_out, 4, 2), network(trained_one, 4, 2)

    report = trained(tmp_path, lambda x: tf.reduce_mean(tf.square(one(x) - other(x))), other.trainable_variables)

    [finding] = loud(report)
    assert {name.partition("/")[0] for name in finding.variables} == {left_out}
    assert f"of `{trained_one}` instead" in finding.message


def test_an_offset_of_what_is_multiplied_by_labels_is_missing(tmp_path: Path) -> None:
    """Behind a limit, too: that of a support vector machine is trained."""
    keras.utils.set_random_seed(0)
    model, offset, sign = network("model", 4, 1), tf.Variable(0.0, name="offset"), np.sign(X[:, :1])

    report = trained(
        tmp_path, lambda x: tf.reduce_mean(tf.maximum(0.0, 1.0 - sign * (model(x) + offset))), model.trainable_variables
    )

    [finding] = loud(report)
    assert (finding.cause, finding.variables) == ("untracked_variable", ("offset",))


def distilled() -> tuple[Loss, list[Any]]:
    of_teacher, student = network("teacher", 4, 2), network("student", 4, 2)
    return lambda x: tf.reduce_mean(tf.square(student(x) - of_teacher(x))), student.trainable_variables


def both_trained() -> tuple[Loss, list[Any]]:
    """Deep mutual learning, and a part of the student that is held fixed."""
    of_teacher, student, part = network("teacher", 4, 2), network("student", 4, 2), network("student_input", 4, 4)
    variables = of_teacher.trainable_variables + student.trainable_variables
    return lambda x: tf.reduce_mean(tf.square(student(part(x)) - of_teacher(x))), variables


def teacher() -> tuple[Loss, list[Any]]:
    old, student = network("old", 4, 2), network("student", 4, 2)
    return lambda x: tf.reduce_mean(tf.square(student(x) - old(x))), student.trainable_variables


def judge_of_two() -> tuple[Loss, list[Any]]:
    """A perceptual loss: the same network for what is restored and for what it should be."""
    restore, features = network("restore", 4, 4), network("features", 4, 3)
    return lambda x: tf.reduce_mean(tf.square(features(restore(x)) - features(x))), restore.trainable_variables


def trained_before() -> tuple[Loss, list[Any]]:
    actor, critic = network("actor", 4, 2), network("critic", 2, 1)
    for each in critic.trainable_variables:
        each.assign_add(tf.ones(each.shape) * 0.01)
    return lambda x: -tf.reduce_mean(critic(actor(x))), actor.trainable_variables


def image() -> tuple[Loss, list[Any]]:
    """What a network sees in a picture that is optimised."""
    picture, classifier = tf.Variable(X, name="picture"), network("classifier", 4, 3)
    return lambda _: tf.reduce_mean(tf.square(classifier(picture) - 1.0)), [picture]


def data() -> tuple[Loss, list[Any]]:
    model, targets = network("model", 4, 1), tf.Variable(X[:, :1], name="targets")
    return lambda x: tf.reduce_mean(tf.square(model(x) - targets)), model.trainable_variables


def weight_of_a_term() -> tuple[Loss, list[Any]]:
    model, weight = network("model", 4, 1), tf.Variable(0.1, name="weight")
    return lambda x: tf.reduce_mean(tf.square(model(x))) + weight * tf.reduce_mean(model(x)), model.trainable_variables


def of_the_input() -> tuple[Loss, list[Any]]:
    """Known statistics of the data."""
    model, scale = network("model", 4, 1), tf.Variable(2.0, name="scale")
    return lambda x: tf.reduce_mean(tf.square(model(x / scale) - 1.0)), model.trainable_variables


def margin_of_a_hinge() -> tuple[Loss, list[Any]]:
    model, margin = network("model", 4, 2), tf.Variable(1.0, name="margin")

    def loss(x: Any) -> Any:
        distance = tf.reduce_sum(tf.square(model(x) - model(x[::-1])), -1)
        return tf.reduce_mean(tf.square(tf.maximum(margin - distance, 0.0)))

    return loss, model.trainable_variables


def bounds_of_a_ratio() -> tuple[Loss, list[Any]]:
    policy, bound = network("policy", 4, 1), tf.Variable(0.2, name="bound")

    def loss(x: Any) -> Any:
        ratio, advantage = tf.exp(policy(x)), x[:, :1]
        clipped = tf.clip_by_value(ratio, 1.0 - bound, 1.0 + bound)
        return -tf.reduce_mean(tf.minimum(ratio * advantage, clipped * advantage))

    return loss, policy.trainable_variables


@pytest.mark.parametrize(
    "make",
    [
        margin_of_a_hinge,
        bounds_of_a_ratio,
        distilled,
        both_trained,
        teacher,
        judge_of_two,
        trained_before,
        image,
        data,
        weight_of_a_term,
        of_the_input,
    ],
)
def test_what_is_left_out_on_purpose_is_no_warning(make: Callable[[], tuple[Loss, list[Any]]], tmp_path: Path) -> None:
    keras.utils.set_random_seed(0)

    assert trained(tmp_path, *make()).healthy


def test_a_temperature_that_follows_a_schedule_is_no_warning(tmp_path: Path) -> None:
    keras.utils.set_random_seed(0)
    model, temperature = network("model", 4, 3), tf.Variable(2.0, name="temperature")

    report = trained(
        tmp_path,
        lambda x: tf.reduce_mean(tf.square(tf.nn.softmax(model(x) / temperature) - 0.1)),
        model.trainable_variables,
        lambda number: temperature.assign(2.0 * 0.9**number) and None,
    )

    assert report.healthy


@pytest.mark.parametrize("is_copied", [True, False])
def test_whether_another_network_was_ever_changed_is_told(tmp_path: Path, is_copied: bool) -> None:
    """A target network whose weights the program copies, and one that it forgot."""
    keras.utils.set_random_seed(0)
    values, following = network("values", 4, 1), network("following", 4, 1)

    def loss(x: Any) -> Any:
        return tf.reduce_mean(tf.square(values(x) - 1.0 - 0.9 * following(-x)))

    def between(number: int) -> None:
        if is_copied and number % 2:
            following.set_weights(values.get_weights())

    [finding] = trained(tmp_path, loss, values.trainable_variables, between).findings

    assert (finding.cause, finding.severity) == ("untracked_variable", "info")
    assert ("and no recorded step has changed" in finding.message) == (not is_copied)
    assert "holds as attributes" not in finding.fix
