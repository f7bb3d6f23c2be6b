"""Masks that get lost, in layers and outside of them: reported where padding gets a gradient, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers, ops

import tb_gradflow
from tb_gradflow.record.report import Finding

pytestmark = pytest.mark.filterwarnings("ignore:.*does not support masking.*")

WORDS = np.tile([[3, 7, 1, 12, 5, 9, 0, 0, 0, 0]], [8, 1])
FULL = np.tile([[3, 7, 1, 12, 5, 9, 2, 8, 4, 6]], [8, 1])
LABELS = np.linspace(-1, 1, 8, dtype="float32")[:, None]


def embedding() -> Any:
    return layers.Embedding(20, 8, mask_zero=True)


def found(model: Any, words: Any = WORDS) -> list[Finding]:
    model.compile("adam", "mse")
    findings = tb_gradflow.explain(model, words, LABELS).findings
    return [finding for finding in findings if finding.severity != "info"]


def stacked(*middle: Any) -> Any:
    return keras.Sequential([keras.Input((10,)), embedding(), *middle, layers.Dense(1)])


def zeros_for_padding() -> Any:
    return layers.Lambda(
        lambda x, mask=None: x * ops.cast(mask[..., None], x.dtype),
        output_shape=lambda shape: shape,
        mask=lambda inputs, mask=None: mask,
    )


DROPPING: dict[str, Callable[[], list[Any]]] = {
    "Conv1D": lambda: [layers.Conv1D(4, 3, padding="same"), layers.GlobalAveragePooling1D()],
    "Flatten": lambda: [layers.Flatten()],
    "Lambda": lambda: [layers.Lambda(lambda x: 2.0 * x), layers.GlobalAveragePooling1D()],
}

KEEPING: dict[str, Callable[[], list[Any]]] = {
    "pooling": lambda: [layers.GlobalAveragePooling1D()],
    "recurrent": lambda: [layers.GRU(4)],
    "each step alone": lambda: [layers.Dense(4), layers.BatchNormalization(), layers.ReLU(), layers.GRU(4)],
    "the first step": lambda: [layers.Lambda(lambda x: x[:, 0])],
    "the last step of what keeps its state": lambda: [
        layers.GRU(4, return_sequences=True),
        layers.Dense(4),
        layers.Lambda(lambda x: x[:, -1]),
    ],
    "a group of zeros in the place of padding": lambda: [
        zeros_for_padding(),
        layers.GroupNormalization(4),
        layers.GlobalAveragePooling1D(),
    ],
}


@pytest.mark.parametrize("kind", DROPPING)
def test_a_layer_that_drops_a_mask_is_told_by_its_name(kind: str) -> None:
    middle = DROPPING[kind]()

    [finding] = found(stacked(*middle))

    assert (finding.cause, finding.severity) == ("mask_dropped", "warning")
    assert f"`{middle[0].name}` ({kind})" in finding.message


@pytest.mark.parametrize("kind", KEEPING)
def test_nothing_is_told_where_padding_gets_no_gradient(kind: str) -> None:
    assert not found(stacked(*KEEPING[kind]()))


def test_nothing_is_told_of_a_batch_without_padding() -> None:
    assert not found(stacked(*DROPPING["Conv1D"]()), FULL)


def test_padding_that_is_taken_out_behind_the_layer_is_right() -> None:
    words, table = keras.Input((10,)), embedding()
    x = layers.Conv1D(4, 3, padding="same")(table(words))
    x = x * keras.ops.cast(table.compute_mask(words)[..., None], "float32")
    model = keras.Model(words, layers.Dense(1)(keras.ops.sum(x, axis=1)))

    assert not found(model)


def test_a_mask_of_the_input_itself_is_seen_without_a_variable_in_front() -> None:
    model = keras.Sequential(
        [keras.Input((10, 1)), layers.Masking(), *DROPPING["Conv1D"](), layers.Dense(1)],
    )

    [finding] = found(model, WORDS[..., None].astype("float32"))

    assert finding.cause == "mask_dropped"


def test_a_recorded_training_tells_of_it(tmp_path: Any) -> None:
    model = stacked(*DROPPING["Conv1D"]())
    model.compile("adam", "mse")
    model.fit(WORDS, LABELS, epochs=2, verbose=0, callbacks=[tb_gradflow.GradFlowCallback(str(tmp_path))])

    report = tb_gradflow.open_log(str(tmp_path)).report()

    assert [finding.cause for finding in report.findings if finding.severity != "info"] == ["mask_dropped"]
    assert report.diagnosis.summary == "Padding is treated as data: a mask gets lost."


def pooled(x: Any) -> Any:
    return layers.GlobalAveragePooling1D()(x)


def attended(words: Any) -> tuple[Any, Any]:
    embedded = embedding()(words)
    return embedded, layers.MultiHeadAttention(2, 4)(embedded, embedded)


def kept(words: Any) -> Any:
    return ops.cast(words != 0, "float32")[..., None]


# From words to what the last layer is given.
Middle = Callable[[Any], Any]

# With the layer that made the mask, and what lost it.
OUTSIDE: dict[str, tuple[Middle, str, str]] = {
    "a sum": (lambda words: pooled(layers.LayerNormalization()(sum(attended(words)))), "MultiHeadAttention", "ops.add"),
    "a position": (
        lambda words: layers.GRU(4)(embedding()(words) + layers.Embedding(10, 8)(ops.arange(10))),
        "Embedding",
        "`keras.layers.Add()([x, y])`",
    ),
    "a mean": (lambda words: ops.mean(embedding()(words), axis=1), "Embedding", "GlobalAveragePooling1D"),
    "a factor": (lambda words: layers.GRU(4)(2.0 * embedding()(words)), "Embedding", "Exclude padding yourself"),
}  # fmt: skip

INSIDE: dict[str, Middle] = {
    "a sum that is a layer": lambda words: pooled(layers.LayerNormalization()(layers.Add()(attended(words)))),
    "a mean of what counts": lambda words: (
        ops.sum(embedding()(words) * kept(words), axis=1) / ops.sum(kept(words), axis=1)
    ),
    "a mask that is given by hand": lambda words: layers.GRU(4)(2.0 * embedding()(words), mask=words != 0),
    "a maximum of what counts": lambda words: ops.max(
        ops.where(words[..., None] != 0, embedding()(words), -1e9), axis=1
    ),
    "a softmax over what counts": lambda words: ops.sum(
        ops.softmax(layers.Dense(1)(embedded := embedding()(words)) - 1e9 * (1 - kept(words)), axis=1) * embedded,
        axis=1,
    ),
    "the last step": lambda words: layers.GRU(4, return_sequences=True)(embedding()(words))[:, -1],
    "another sequence that looks at it": lambda words: ops.sum(
        layers.MultiHeadAttention(2, 4)(layers.Embedding(20, 8)(words), embedding()(words)) * kept(words), axis=1
    ),
}


def functional(middle: Middle) -> Any:
    words = keras.Input((10,))
    return keras.Model(words, layers.Dense(1)(middle(words)))


@pytest.mark.parametrize("kind", OUTSIDE)
def test_what_takes_a_masked_tensor_and_is_no_layer_is_reported(kind: str) -> None:
    middle, made_by, said = OUTSIDE[kind]

    [finding] = found(functional(middle))

    assert (finding.cause, finding.severity) == ("mask_dropped", "warning")
    assert f"({made_by}) returns a tensor with a mask" in finding.message
    assert said in finding.message + finding.fix


@pytest.mark.parametrize("kind", INSIDE)
def test_who_uses_the_mask_as_it_is_meant_is_not_accused(kind: str) -> None:
    assert not found(functional(INSIDE[kind]))


def test_outside_of_layers_nothing_is_reported_of_a_batch_without_padding() -> None:
    assert not found(functional(OUTSIDE["a mean"][0]), FULL)


class Reader(keras.Model):
    """A model of the user's own, that takes the mean over words itself."""

    def __init__(self, *, uses_mask: bool) -> None:
        super().__init__()
        self.table, self.head, self.uses_mask = embedding(), layers.Dense(1), uses_mask

    def call(self, words: Any) -> Any:
        x = self.table(words)
        if self.uses_mask:
            mask = tf.cast(self.table.compute_mask(words), x.dtype)[..., tf.newaxis]
            return self.head(tf.reduce_sum(x * mask, axis=1) / tf.reduce_sum(mask, axis=1))
        return self.head(tf.reduce_mean(x, axis=1))


def test_in_a_model_of_the_users_own_the_line_is_shown() -> None:
    [finding] = found(Reader(uses_mask=False))

    assert finding.cause == "mask_dropped"
    assert "`tf.reduce_mean` (test_dropped_masks.py:" in finding.message
    assert finding.source is not None
    assert finding.source.code == "return self.head(tf.reduce_mean(x, axis=1))"
    assert not found(Reader(uses_mask=True))


def test_a_group_normalisation_over_padding_is_reported() -> None:
    normalise = layers.GroupNormalization(4)

    [finding] = found(stacked(normalise, layers.GlobalAveragePooling1D()))

    assert finding.cause == "mask_dropped"
    assert f"`{normalise.name}` (GroupNormalization) passes its mask on, but computes" in finding.message


def test_a_loss_over_padding_is_reported_and_one_with_weights_is_not() -> None:
    words = keras.Input((10,))
    model = keras.Model(words, ops.tanh(layers.Dense(1)(layers.GRU(4, return_sequences=True)(embedding()(words)))))
    model.compile("adam", "mse")
    labels = np.ones((8, 10, 1), "float32")

    bare = tb_gradflow.explain(model, WORDS, labels)
    weighted = tb_gradflow.explain(model, WORDS, labels, sample_weight=(WORDS != 0).astype("float32"))

    assert [finding.cause for finding in bare.findings] == ["mask_dropped"]
    assert not weighted.findings


def test_an_embedding_of_categories_is_no_sequence() -> None:
    column = keras.Input((1,))
    model = keras.Model(column, layers.Dense(1)(ops.squeeze(embedding()(column), 1)))

    assert not found(model, np.array([[0], [1], [2], [3], [0], [4], [5], [6]]))
