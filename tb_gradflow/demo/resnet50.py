"""ResNet50 with two heads, one of which rounds its output too early. Expect: nondiff_rounding.

The pictures show coloured discs. One head classifies the colour, and learns. The other counts the discs, and rounds
because counts are whole numbers; its loss gets only the rounded number, and none of its weights ever moves.
"""

from __future__ import annotations

import sys
from typing import Any

import keras
import numpy as np

import tb_gradflow

SIDE = 64
MOST_DISCS = 5
COLOURS = ((0.9, 0.2, 0.2), (0.2, 0.8, 0.3), (0.2, 0.4, 0.9), (0.9, 0.8, 0.2))


class CountHead(keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """How many discs a picture shows, from its features."""

    def __init__(self, rounds: bool, **options: Any) -> None:
        super().__init__(**options)
        self.rounds = rounds
        self.hidden = keras.layers.Dense(64, activation="relu", name="hidden")
        self.total = keras.layers.Dense(1, name="total")

    def call(self, features: Any) -> Any:
        count = self.total(self.hidden(features))
        if self.rounds:
            count = keras.ops.round(count)
        return count


def make_model(fixed: bool) -> keras.Model:
    backbone = keras.applications.ResNet50(
        weights=None, include_top=False, input_shape=(SIDE, SIDE, 3), pooling="avg", name="resnet50"
    )
    colour = keras.layers.Dense(len(COLOURS), activation="softmax", name="colour")(backbone.output)
    count = CountHead(rounds=not fixed, name="count")(backbone.output)
    return keras.Model(backbone.input, {"colour": colour, "count": count}, name="discs")


def make_pictures(number: int) -> tuple[np.ndarray[Any, Any], dict[str, np.ndarray[Any, Any]]]:
    """Pictures of one to five discs of one colour on a noisy ground."""
    random = np.random.default_rng(0)
    colours = random.integers(len(COLOURS), size=number)
    counts = random.integers(1, MOST_DISCS + 1, size=number)
    pictures = random.uniform(0.0, 0.2, size=(number, SIDE, SIDE, 3)).astype(np.float32)
    rows, columns = np.mgrid[:SIDE, :SIDE]
    for picture, colour, count in zip(pictures, colours, counts, strict=True):
        for row, column in random.uniform(8, SIDE - 8, size=(count, 2)):
            picture[np.hypot(rows - row, columns - column) < 6] = COLOURS[colour]
    return pictures, {"colour": colours, "count": counts[:, np.newaxis].astype(np.float32)}


def train(log_dir: str, fixed: bool = False, steps: int = 16) -> keras.Model:
    keras.utils.set_random_seed(1)
    model = make_model(fixed)
    model.compile(
        optimizer=keras.optimizers.SGD(3e-4),
        loss={"colour": "sparse_categorical_crossentropy", "count": "mse"},
    )
    pictures, answers = make_pictures(16 * steps)
    recorder = tb_gradflow.GradFlowCallback(log_dir, update_freq=1, try_fixes=True)
    model.fit(pictures, answers, batch_size=16, callbacks=[recorder])
    return model


if __name__ == "__main__":
    train(sys.argv[1], fixed="fixed" in sys.argv[2:])
