"""Losses whose terms do not fit together, each beside its repaired twin: every figure is that of a plain tape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow

layers = keras.layers

Losses = Callable[[], Mapping[str, Any]]
"""The terms of a loss with their weights, in its order, computed anew."""


def assert_figures_of_plain_tape(report: Any, losses: Losses, variables: Sequence[Any]) -> None:
    """Value, norm, share and cosine of each term for each variable; and the terms add up to the recorded gradient."""
    terms = {term["name"]: term for term in report.to_dict()["terms"]}
    with tf.GradientTape(persistent=True) as tape:
        values = losses()
        whole = tf.add_n(list(values.values()))
    assert list(terms) == list(values)
    for name, value in values.items():
        assert terms[name]["value"] == pytest.approx(float(value), rel=1e-4, abs=1e-7)
    for variable in variables:
        source = getattr(variable, "value", variable)
        gradients = {name: tape.gradient(value, source) for name, value in values.items()}
        flat = {name: np.ravel(each.numpy()) for name, each in gradients.items() if each is not None}
        norms = {name: float(np.linalg.norm(each)) for name, each in flat.items()}
        told = {name: term["variables"].get(variable.path) for name, term in terms.items()}
        assert {name for name, each in told.items() if each is not None} == flat.keys()
        scale = sum(norms.values())
        for name, norm in norms.items():
            assert told[name]["norm"] == pytest.approx(norm, rel=1e-3, abs=1e-6 * scale)
            assert told[name]["share"] == pytest.approx(norm / scale, rel=1e-3, abs=1e-6)
            for other in flat.keys() - {name}:
                cosine = float(flat[name] @ flat[other]) / norm / norms[other]
                assert told[name]["cosine"][other] == pytest.approx(cosine, abs=1e-3)
        together = float(tf.norm(tape.gradient(whole, source)))
        recorded = report.variables[variable.path].gradient
        assert recorded.norm == pytest.approx(together, rel=1e-3, abs=1e-5 * scale)


def causes(report: Any) -> list[str]:
    return [finding.cause for finding in report.findings]


@pytest.mark.parametrize("broken", [True, False], ids=["broken", "repaired"])
def test_a_variational_autoencoder_whose_code_collapsed(broken: bool) -> None:
    """The reconstruction is a mean over 32 pixels, the divergence a sum; repaired, both are sums."""
    keras.utils.set_random_seed(3)
    encoder = keras.Sequential([keras.Input((32,)), layers.Dense(8, "tanh"), layers.Dense(4)], name="encoder")
    decoder = keras.Sequential([keras.Input((2,)), layers.Dense(8, "tanh"), layers.Dense(32)], name="decoder")
    variables = [*encoder.trainable_variables, *decoder.trainable_variables]
    generator = np.random.default_rng(0)
    directions = generator.normal(size=(2, 32)) / 4.0
    images = tf.constant((generator.normal(size=(64, 2)) @ directions).astype("float32"))
    reduce = tf.reduce_mean if broken else tf.reduce_sum

    def losses() -> Mapping[str, Any]:
        mean, log_var = tf.split(encoder(images), 2, axis=-1)
        code = mean + tf.exp(0.5 * log_var) * tf.random.stateless_normal(tf.shape(mean), [1, 2])
        reconstruction = tf.reduce_mean(reduce(tf.square(decoder(code) - images), axis=-1))
        kl = -0.5 * tf.reduce_mean(tf.reduce_sum(1 + log_var - tf.square(mean) - tf.exp(log_var), axis=-1))
        return {"reconstruction": reconstruction, "kl": kl}

    def step() -> Any:
        terms = losses()
        reconstruction, kl = terms["reconstruction"], terms["kl"]
        return reconstruction + kl

    optimizer = keras.optimizers.Adam(0.02)
    optimizer.build(variables)

    @tf.function
    def trained() -> None:
        for _ in tf.range(150):
            with tf.GradientTape() as tape:
                loss = step()
            optimizer.apply(tape.gradient(loss, variables), variables)

    trained()

    report = tb_gradflow.explain(step, variables=variables)

    assert_figures_of_plain_tape(report, losses, variables)
    assert ("posterior_collapse" in causes(report)) == broken
    assert report.healthy != broken
    if broken:
        assert "Posterior collapse: `kl` (test_loss_terms.py:" in report.findings[0].message
        assert losses()["kl"] < 0.01
    else:
        assert losses()["kl"] > 0.5


@pytest.mark.parametrize("broken", [True, False], ids=["broken", "repaired"])
def test_a_physics_informed_network_with_a_stiff_residual(broken: bool) -> None:
    """`1e4 u'' = f`; repaired, the equation is divided by its coefficient."""
    keras.utils.set_random_seed(3)
    net = keras.Sequential([keras.Input((1,)), layers.Dense(8, "tanh"), layers.Dense(8, "tanh"), layers.Dense(1)])
    inner, ends = tf.constant(np.linspace(0.05, 0.95, 16, dtype="float32")[:, None]), tf.constant([[0.0], [1.0]])
    stiffness = 1e4

    def losses() -> Mapping[str, Any]:
        with tf.GradientTape() as second:
            second.watch(inner)
            with tf.GradientTape() as first:
                first.watch(inner)
                u = net(inner)
            slope = first.gradient(u, inner)
        curvature = second.gradient(slope, inner)
        error = stiffness * (curvature + tf.sin(3.0 * inner))
        residual = tf.reduce_mean(tf.square(error if broken else error / stiffness))
        boundary = tf.reduce_mean(tf.square(net(ends) - tf.constant([[0.0], [1.0]])))
        return {"residual": residual, "boundary": boundary}

    def step() -> Any:
        terms = losses()
        residual, boundary = terms["residual"], terms["boundary"]
        return residual + boundary

    report = tb_gradflow.explain(step, variables=net.trainable_variables)

    assert_figures_of_plain_tape(report, losses, net.trainable_variables)
    assert ("term_dominates" in causes(report)) == broken
    # Gradients of 1e8 are a finding too.
    assert report.healthy != broken
    if broken:
        [finding] = [each for each in report.findings if each.cause == "term_dominates"]
        assert "of the term `residual` (test_loss_terms.py:" in finding.message
        assert "that of `boundary` (test_loss_terms.py:" in finding.message


@pytest.mark.parametrize("broken", [True, False], ids=["broken", "repaired"])
def test_two_heads_in_conflict(broken: bool) -> None:
    """Equal heads for opposite targets move the trunk in opposite directions; repaired, each has its own trunk."""
    keras.utils.set_random_seed(3)
    trunks = [keras.Sequential([keras.Input((6,)), layers.Dense(8, "tanh")], name=f"trunk_{place}") for place in (0, 1)]
    heads = [layers.Dense(1, name=name, kernel_initializer="ones") for name in ("left", "right")]
    x = tf.constant(np.random.default_rng(0).normal(size=(16, 6)).astype("float32"))
    y = tf.reduce_sum(x, axis=1, keepdims=True)
    for head in heads:
        head.build((None, 8))
    used = [trunks[0], trunks[0] if broken else trunks[1]]

    def losses() -> Mapping[str, Any]:
        left, right = (head(trunk(x)) for head, trunk in zip(heads, used, strict=True))
        return {
            "left_loss": tf.reduce_mean(tf.square(left - 4.0 * y)),
            "right_loss": 1.1 * tf.reduce_mean(tf.square(right + 4.0 * y)),
        }

    def step() -> Any:
        terms = losses()
        left_loss, right_loss = terms["left_loss"], terms["right_loss"]
        return left_loss + right_loss

    trained = {id(trunk): trunk for trunk in used}.values()
    variables = [variable for each in (*trained, *heads) for variable in each.trainable_variables]

    report = tb_gradflow.explain(step, variables=variables)

    assert_figures_of_plain_tape(report, losses, variables)
    assert ("terms_in_conflict" in causes(report)) == broken
    assert report.healthy
    if broken:
        assert "`left_loss` (test_loss_terms.py:" in report.findings[0].message
        assert "opposite directions (cosine -0.9" in report.findings[0].message


@pytest.mark.parametrize("broken", [True, False], ids=["broken", "repaired"])
def test_a_generator_and_its_critic(broken: bool) -> None:
    """What the critic says does not reach the generator; repaired, it does."""
    keras.utils.set_random_seed(3)
    generator = keras.Sequential([keras.Input((4,)), layers.Dense(8, "tanh"), layers.Dense(2)], name="generator")
    critic = keras.Sequential([keras.Input((2,)), layers.Dense(8, "tanh"), layers.Dense(1)], name="critic")
    noise = tf.constant(np.random.default_rng(0).normal(size=(16, 4)).astype("float32"))
    score = keras.losses.BinaryCrossentropy(from_logits=True)

    def losses() -> Mapping[str, Any]:
        fake = generator(noise)
        verdict = critic(tf.stop_gradient(fake) if broken else fake)
        return {"fooling": score(tf.ones_like(verdict), verdict), "size": 0.1 * tf.reduce_mean(tf.square(fake))}

    def step() -> Any:
        terms = losses()
        fooling, size = terms["fooling"], terms["size"]
        return fooling + size

    report = tb_gradflow.explain(step, variables=generator.trainable_variables)

    assert_figures_of_plain_tape(report, losses, generator.trainable_variables)
    assert ("term_teaches_nothing" in causes(report)) == broken
