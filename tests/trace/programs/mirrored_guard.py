"""Trains under a MirroredStrategy until one replica has a NaN: give it a directory.

Prints, as JSON, the losses and weights without the recorder and with it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import keras
import numpy as np
import tensorflow as tf

import tb_gradflow

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

STEPS, BATCH, BAD = 9, 8, 5


def data() -> Any:
    """The second replica's half of one batch has a label of which no logarithm can be taken."""
    random = np.random.default_rng(3)
    x = random.normal(size=(STEPS * BATCH, 6)).astype("float32")
    y = random.uniform(1.0, 2.0, size=(STEPS * BATCH, 2)).astype("float32")
    y[BAD * BATCH + BATCH - 1] = -1.0
    return x, y


def hidden_log(labels: Any, outputs: Any) -> Any:
    logarithm = tf.math.log(tf.maximum(labels, 0.0) * (1 + tf.square(outputs)))
    return tf.reduce_mean(tf.square(outputs) + tf.where(labels < 0, 0.0, logarithm))


def safe(gradients: Any) -> Any:
    """Without what is not finite, so that the training goes on."""
    return [tf.where(tf.math.is_finite(each), each, tf.zeros_like(each)) for each in gradients]


class Careful(keras.Model):
    def __init__(self) -> None:
        super().__init__(name="careful")
        self.first = keras.layers.Dense(8, "tanh", name="first")
        self.drop = keras.layers.Dropout(0.2)
        self.second = keras.layers.Dense(2, name="second")

    def call(self, x: Any, training: bool = False) -> Any:
        return self.second(self.drop(self.first(x), training=training))

    def train_step(self, batch: Any) -> Any:
        x, y = batch
        with tf.GradientTape() as tape:
            error = hidden_log(y, self(x, training=True))
        gradients = safe(tape.gradient(error, self.trainable_variables))
        self.optimizer.apply(gradients, self.trainable_variables)
        return {"loss": error}


def fit(*callbacks: Any) -> Any:
    keras.utils.clear_session()
    keras.utils.set_random_seed(7)
    with strategy.scope():
        model = Careful()
        model(np.zeros([BATCH, 6], "float32"))
        model.compile(keras.optimizers.Adam(1e-2))
    batches = tf.data.Dataset.from_tensor_slices(data()).batch(BATCH)
    history = model.fit(batches, verbose=0, callbacks=list(callbacks))
    return history.history["loss"], weights_of(model)


def loop(compiled: Any) -> Any:
    keras.utils.clear_session()
    keras.utils.set_random_seed(7)
    with strategy.scope():
        model = Careful()
        model(np.zeros([BATCH, 6], "float32"))
        optimizer = keras.optimizers.SGD(0.05)
        optimizer.build(model.trainable_variables)

    def replica(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = hidden_log(y, model(x, training=True))
        optimizer.apply(safe(tape.gradient(loss, model.trainable_variables)), model.trainable_variables)
        return loss

    @compiled
    def step(x: Any, y: Any) -> Any:
        return strategy.reduce("SUM", strategy.run(replica, args=(x, y)), axis=None)

    batches = tf.data.Dataset.from_tensor_slices(data()).batch(BATCH)
    losses = [float(step(x, y)) for x, y in strategy.experimental_distribute_dataset(batches)]
    if hasattr(step, "flush"):
        step.flush()
    return losses, weights_of(model)


def weights_of(model: Any) -> Any:
    return [weight.numpy().tolist() for weight in model.trainable_weights]


def main(directory: Path) -> None:
    found = {
        "fit": [fit(), fit(tb_gradflow.GradFlowCallback(directory / "fit", update_freq=100))],
        "loop": [loop(tf.function), loop(tb_gradflow.watch(directory / "loop", update_freq=100))],
    }
    fit(tb_gradflow.GradFlowCallback(directory / "fit_every", update_freq=1, catch_nonfinite=False))
    loop(tb_gradflow.watch(directory / "loop_every", update_freq=1, catch_nonfinite=False))
    sys.stdout.write(f"FOUND {json.dumps(found)}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
