"""A mask that leaves a softmax nothing: with a finite number, nothing becomes NaN, and the scores train nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers, ops

import tb_gradflow

RANDOM = np.random.default_rng(0)
X, KEEP = RANDOM.normal(size=(32, 5, 4)).astype("float32"), np.ones((32, 5), "float32")
KEEP[:, 3:] = 0.0
# The first example is empty, and another one is full.
KEEP[0], KEEP[1] = 0.0, 1.0
NOTHING = np.zeros_like(KEEP)


def added(scores: Any, keep: Any) -> Any:
    return scores + (1.0 - keep) * -1e9


def subtracted(scores: Any, keep: Any) -> Any:
    return scores - 1e8 * ops.cast(ops.logical_not(ops.cast(keep, "bool")), "float32")


def chosen(scores: Any, keep: Any) -> Any:
    return ops.where(keep > 0.5, scores, -1e9)


class Pooling(layers.Layer):
    """The weighted mean of the entries of a row."""

    def __init__(self, mask: Callable[[Any, Any], Any], activation: str) -> None:
        super().__init__(name="pooling")
        self.score, self.mask, self.activation = layers.Dense(1, name="score"), mask, activation

    def call(self, x: Any, keep: Any) -> Any:
        weights = getattr(ops, self.activation)(self.mask(self.score(x)[..., 0], keep))
        return ops.sum(weights[..., None] * x, 1)


def fitted(log_dir: Path, mask: Callable[[Any, Any], Any], keep: Any, activation: str = "softmax") -> Any:
    keras.utils.set_random_seed(1)
    inputs = [keras.Input((5, 4)), keras.Input((5,))]
    model = keras.Model(inputs, layers.Dense(1, name="out")(Pooling(mask, activation)(*inputs)))
    model.compile(keras.optimizers.SGD(0.01), "mse")
    recorder = tb_gradflow.GradFlowCallback(str(log_dir), update_freq=1)
    model.fit([X, keep], X[:, 0, :1], epochs=2, verbose=0, callbacks=[recorder])
    return tb_gradflow.open_log(log_dir).report()


@pytest.mark.parametrize(
    ("mask", "activation"),
    [(added, "softmax"), (subtracted, "softmax"), (chosen, "softmax"), (added, "log_softmax"), (chosen, "log_softmax")],
)
def test_scores_of_which_all_are_masked_train_nothing(
    mask: Callable[[Any, Any], Any], activation: str, tmp_path: Path
) -> None:
    report = fitted(tmp_path, mask, NOTHING, activation)

    [finding] = [each for each in report.findings if each.severity != "info"]
    assert (finding.cause, finding.severity) == ("softmax_all_masked", "warning")
    assert "pooling/score/kernel" in finding.variables
    assert all(name.startswith("pooling/score/") for name in finding.variables)
    assert "excludes every entry" in finding.message


@pytest.mark.parametrize("mask", [added, subtracted, chosen])
def test_padding_and_an_empty_example_are_healthy(mask: Callable[[Any, Any], Any], tmp_path: Path) -> None:
    assert fitted(tmp_path, mask, KEEP).healthy


def test_an_attention_layer_whose_mask_is_the_wrong_way_round_is_named(tmp_path: Path) -> None:
    attention = layers.MultiHeadAttention(2, 3, name="attention")
    attention.build(X.shape, X.shape)
    variables = attention.trainable_variables

    def loss(mask: Any) -> Any:
        return tf.reduce_mean(tf.square(attention(X, X, attention_mask=mask) - X))

    named = [
        tb_gradflow.explain(loss, args=(tf.fill([32, 5, 5], kept),), variables=variables) for kept in (False, True)
    ]

    assert [finding.cause for finding in named[0].findings if finding.severity != "info"] == ["softmax_all_masked"]
    assert named[1].healthy


@pytest.mark.parametrize(("masked", "severity"), [(-1e9, "info"), (0.0, "warning")])
def test_a_mask_that_may_be_trained_is_told_as_what_it_is(masked: float, severity: str) -> None:
    """Tokens that are alike leave the scores next to no gradient; the others get zero, and so does a row's only one."""
    future = np.triu(np.full((8, 8), masked, "float32"), 1)
    mask, tokens = tf.Variable(future, name="mask"), tf.Variable(np.full((4, 8, 3), 0.5, "float32"), name="tokens")
    noise = np.random.default_rng(0).normal(size=(4, 8, 3), scale=1e-8).astype("float32")

    def loss() -> tf.Tensor:
        weighed = tf.matmul(tf.nn.softmax(mask[None] + tf.zeros([4, 8, 8])), (tokens - 0.5) + noise)
        return tf.reduce_sum(weighed + tokens)

    report = tb_gradflow.explain(loss, variables=[mask, tokens])

    assert report.variables["mask"].status == "vanishing"
    [finding] = [each for each in report.findings if "mask" in each.variables]
    assert (finding.cause, finding.severity) == ("vanishing_depth", severity)
    is_told = "no weight at all to what lies so far below: 45% of the elements get exactly zero" in finding.message
    assert is_told == (severity == "info")
    assert ("relu" in finding.fix) == (severity == "warning")


class Head(layers.Layer):
    """An attention without a scale, as small as its initial weights."""

    def __init__(self, *, normalised: bool) -> None:
        super().__init__()
        small = keras.initializers.RandomNormal(stddev=0.02)
        self.parts = [layers.Dense(24, use_bias=False, kernel_initializer=small) for _ in range(3)]
        self.norm = layers.LayerNormalization() if normalised else layers.Identity()

    def call(self, x: Any) -> Any:
        query, key, value = (part(self.norm(x)) for part in self.parts)
        return x + tf.matmul(tf.nn.softmax(tf.matmul(query, key, transpose_b=True)), value)


@pytest.mark.parametrize("normalised", [False, True])
def test_an_attention_whose_values_are_alike_is_advised_to_normalise_them_and_that_helps(*, normalised: bool) -> None:
    words = np.random.default_rng(5).integers(0, 40, (32, 24))
    embedding = layers.Embedding(40, 24, embeddings_initializer=keras.initializers.RandomNormal(stddev=0.02))
    model = keras.Sequential([keras.Input((24,)), embedding, Head(normalised=normalised), layers.Dense(40)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))

    report = tb_gradflow.explain(model, words, np.roll(words, -1, 1))

    assert report.healthy == normalised
    for finding in report.findings:
        assert finding.cause == "vanishing_depth"
        assert "LayerNormalization" in finding.fix
