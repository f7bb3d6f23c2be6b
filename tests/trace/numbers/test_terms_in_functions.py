"""The terms of a loss that a nested `tf.function` sums up: those of a plain tape, or why they are missing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow import GradFlowCallback
from tests.trace.numbers.test_terms import (
    Small,
    Terms,
    check_against_plain_tape,
    check_norm_of_sum,
    check_sum,
    kept_gradients,
    names,
)
from tests.trace.recording import data, train
from tests.trace.training.test_harmless import assert_identical


def summed_inside(m: Small) -> Any:
    recon, kl = m.recon(), m.kl()
    return recon + 0.5 * kl


def named_inside(m: Small) -> Any:
    recon, kl = m.recon(), m.kl()
    loss = recon + m.beta * kl
    return loss  # noqa: RET504 - as people write it


def by_row_inside(m: Small) -> Any:
    errors, sizes = m.errors(), m.sizes()
    return errors + 0.2 * sizes


def through_control_flow(m: Small) -> Any:
    h = m.h()
    for _ in tf.range(3):
        h = 0.9 * h + tf.tanh(h)
    if tf.reduce_sum(m.x) > -1e9:
        h = 2.0 * h
    size = tf.reduce_mean(tf.square(h))
    length = tf.reduce_mean(tf.abs(h))
    return size + length


def looked_up(m: Small) -> Any:
    rows = tf.gather(m.w, [0, 2, 2])
    fit = tf.reduce_mean(tf.square(rows - 1.0))
    size = tf.reduce_mean(tf.abs(rows))
    return fit + 0.5 * size


def parts(loss: Callable[[Small], Any]) -> Callable[[Small], dict[str, Any]]:
    """The terms of `through_control_flow` and `looked_up`, for a plain tape."""

    def size(m: Small, *, first: bool) -> Any:
        h = m.h()
        for _ in range(3):
            h = 0.9 * h + tf.tanh(h)
        return tf.reduce_mean(tf.square(2.0 * h)) if first else tf.reduce_mean(tf.abs(2.0 * h))

    def rows(m: Small) -> Any:
        return tf.gather(m.w * 1.0, [0, 2, 2])

    if loss is through_control_flow:
        return lambda m: {"size": lambda: size(m, first=True), "length": lambda: size(m, first=False)}
    return lambda m: {
        "fit": lambda: tf.reduce_mean(tf.square(rows(m) - 1.0)),
        "size": lambda: 0.5 * tf.reduce_mean(tf.abs(rows(m))),
    }


def counting(m: Small) -> Any:
    m.beta.assign_add(1.0)
    recon, kl = m.recon(), m.kl()
    return recon + m.beta * kl


def counting_beside(m: Small) -> Any:
    """The loss does not depend on the new value, as with metrics and moving averages."""
    recon, kl = m.recon(), m.kl()
    m.beta.assign_add(1.0)
    return recon + kl


def slope_of(m: Small) -> Any:
    x = tf.identity(m.x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        size = tf.reduce_sum(tf.square(tf.tanh(x @ m.w)))
    return tf.reduce_mean(tf.square(tape.gradient(size, x)))


def with_a_tape(m: Small) -> Any:
    recon, slope = m.recon(), slope_of(m)
    return recon + 0.1 * slope


CASES: dict[Callable[[Small], Any], Callable[[Small], Terms]] = {
    summed_inside: lambda m: {"recon": m.recon, "kl": lambda: 0.5 * m.kl()},
    named_inside: lambda m: {"recon": m.recon, "kl": lambda: 0.3 * m.kl()},
    by_row_inside: lambda m: {"errors": m.recon, "sizes": lambda: 0.2 * m.kl()},
    through_control_flow: parts(through_control_flow),
    looked_up: parts(looked_up),
    counting_beside: lambda m: {"recon": m.recon, "kl": m.kl},
    with_a_tape: lambda m: {"recon": m.recon, "slope": lambda: 0.1 * slope_of(m)},
}


@pytest.mark.parametrize(
    ("loss", "kind"),
    [
        *((loss, "traced") for loss in CASES),
        (named_inside, "compiled by XLA"),
        (summed_inside, "eager"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_terms_in_a_function_have_the_gradients_of_a_plain_tape(
    loss: Callable[[Small], Any], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    m = Small()
    arrived = kept_gradients(monkeypatch)
    inner = tf.function(loss, jit_compile=True if kind == "compiled by XLA" else None)

    def step() -> Any:
        if kind == "eager":
            float(m.x[0, 0].numpy())  # not to be compiled
        return tf.reduce_mean(inner(m)) if loss is by_row_inside else inner(m)

    terms = tb_gradflow.explain(step, variables=m.variables).to_dict()["terms"]

    wanted = CASES[loss](m)
    assert [term["name"] for term in terms] == list(wanted)
    check_against_plain_tape(terms, wanted, m.variables)
    if kind == "eager":
        check_sum(arrived, lambda: loss(m), m.variables)


def test_a_function_is_one_of_several_terms() -> None:
    """And it is called twice, with other values each time."""
    m = Small()

    @tf.function
    def supervised(factor: Any) -> Any:
        recon, kl = m.recon() * factor, m.kl()
        return recon + 0.5 * kl

    def step() -> Any:
        left = supervised(tf.constant(1.0))
        right = supervised(tf.constant(3.0))
        norm = m.norm()
        return left + right + 0.01 * norm

    report = tb_gradflow.explain(step, variables=m.variables)

    assert names(report) == ["recon", "kl", "recon (2)", "kl (2)", "norm"]
    wanted: Terms = {
        "recon": m.recon,
        "kl": lambda: 0.5 * m.kl(),
        "recon (2)": lambda: 3.0 * m.recon(),
        "kl (2)": lambda: 0.5 * m.kl(),
        "norm": lambda: 0.01 * m.norm(),
    }
    check_against_plain_tape(report.to_dict()["terms"], wanted, m.variables)


def test_a_loss_function_that_is_compiled_and_given_to_compile() -> None:
    def blurred(y: Any, p: Any) -> Any:
        pixels = tf.reduce_mean(tf.square(y - p), axis=-1)
        edges = tf.reduce_mean(tf.abs(p), axis=-1)
        return pixels + 0.1 * edges

    keras.utils.set_random_seed(2)
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(6, name="out")])
    x = data(rows=8)[0]
    model.compile("adam", blurred)
    plain = tb_gradflow.explain(model, x, x).to_dict()["terms"]

    model.compile("adam", tf.function(blurred))
    report = tb_gradflow.explain(model, x, x)

    assert [term["name"] for term in plain] == names(report) == ["pixels", "edges"]
    for one, other in zip(plain, report.to_dict()["terms"], strict=True):
        assert one["value"] == pytest.approx(other["value"], rel=1e-5)
        for variable, numbers in one["variables"].items():
            assert numbers["norm"] == pytest.approx(other["variables"][variable]["norm"], rel=1e-5)


def drawing(m: Small) -> Any:
    noise = tf.random.normal([8, 3])
    recon, kl = tf.reduce_mean(tf.square(m.h() @ m.v - noise)), m.kl()
    return recon + kl


def twice(m: Small) -> Any:
    return tf.function(summed_inside)(m)


@pytest.mark.parametrize(
    ("loss", "why"),
    [
        (drawing, "`drawing` are not measured, because it runs `RandomStandardNormal`"),
        (counting, "`counting` are not measured, because it reads a variable that the step changes"),
        (twice, "`summed_inside` are not measured, because it is called by another"),
    ],
    ids=["random", "state", "twice nested"],
)
def test_why_terms_in_a_function_are_missing_is_said(loss: Callable[[Small], Any], why: str) -> None:
    m = Small()
    inner = tf.function(loss)

    report = tb_gradflow.explain(lambda: inner(m), variables=m.variables)

    assert report.to_dict()["terms"] is None
    assert why in " ".join(str(report).split())
    assert report.healthy


def drawing_one_term(m: Small) -> Any:
    return tf.reduce_mean(tf.square(m.h() @ m.v - tf.random.normal([8, 3])))


@pytest.mark.parametrize("loss", [drawing, drawing_one_term])
def test_nothing_is_said_where_nothing_is_missing(loss: Callable[[Small], Any]) -> None:
    m = Small()
    inner = tf.function(loss)

    report = tb_gradflow.explain(lambda: inner(m), variables=m.variables, terms=loss is not drawing)

    assert "not measured" not in str(report)


class Nested(keras.Model):
    """Normalised and fused values go into the function that sums up the loss."""

    def __init__(self) -> None:
        super().__init__()
        self.net = keras.Sequential(
            [
                keras.Input((6,)),
                keras.layers.Dense(16, "gelu"),
                keras.layers.LayerNormalization(),
                keras.layers.Dense(6),
            ]
        )
        self.built = True

    @tf.function
    def compute(self, x: Any, scaled: Any) -> Any:
        y = self.net(x) * scaled
        error = tf.reduce_mean(tf.square(y - x)) * 2.0 / 3.0
        size = tf.reduce_mean(tf.abs(y))
        return error + 0.1 * size

    def train_step(self, given: Any) -> dict[str, Any]:
        x = given[0]
        with tf.GradientTape() as tape:
            loss = self.compute(x, 0.5 * tf.reduce_mean(tf.abs(x)) * 3.0)
        self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
        return {"loss": loss}


def nested() -> Any:
    model = Nested()
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9), jit_compile=False)
    return model


def test_a_training_whose_loss_is_summed_in_a_function_has_its_bits_and_the_terms(tmp_path: Path) -> None:
    x, y = data(rows=61)
    plain = train(nested, x, y, batch_size=8)

    recorded = train(nested, x, y, GradFlowCallback(tmp_path, update_freq=1, terms=True), batch_size=8)

    assert_identical(plain, recorded)
    log = tb_gradflow.open_log(tmp_path)
    for step in (log.steps[0], log.steps[-1]):
        report = log.report(step)
        assert names(report) == ["error", "size"]
        assert report.terms[0].source is not None
        assert "error = " in report.terms[0].source.code
        check_norm_of_sum(report)
