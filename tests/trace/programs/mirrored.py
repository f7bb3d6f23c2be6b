"""Trains under a MirroredStrategy of two CPU devices: `python -m tests.trace.programs.mirrored DIRECTORY`.

Prints, as JSON, what came of each training: losses and weights without the recorder and with it, and the norms of the
gradients that one device takes from the whole batch.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
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

ROWS = 16
layers = keras.layers


def data() -> Any:
    random = np.random.default_rng(3)
    return random.normal(size=(ROWS, 6)).astype("float32"), random.normal(size=(ROWS, 2)).astype("float32")


def bad_data() -> Any:
    x, y = data()
    x = np.abs(x) + 1.0
    x[ROWS // 2 :, 0] = -9.0
    return x, y


def network(norm: bool = True) -> Any:
    normed = [layers.BatchNormalization(name="bn")] if norm else []
    return keras.Sequential(
        [keras.Input((6,)), layers.Dense(8, "tanh", name="a"), *normed, layers.Dense(2, name="b")], name="net"
    )


def fit(*callbacks: Any) -> Any:
    keras.utils.set_random_seed(7)
    with strategy.scope():
        model = network()
        model.compile(keras.optimizers.Adam(1e-2), "mse")
    history = model.fit(*data(), batch_size=ROWS, epochs=4, verbose=0, callbacks=list(callbacks))
    return history.history["loss"], weights_of(model)


def legacy_fit(*callbacks: Any) -> Any:
    import tf_keras

    tf_keras.utils.set_random_seed(7)
    with strategy.scope():
        model = tf_keras.Sequential([tf_keras.Input((6,)), tf_keras.layers.Dense(2, name="b")])
        model.compile("adam", "mse")
    history = model.fit(*data(), batch_size=ROWS, epochs=4, verbose=0, callbacks=list(callbacks))
    return history.history["loss"], weights_of(model)


class OnFirstCall(keras.Model):
    """Makes its variables when it is first called, and its optimizer the ones of its own with them."""

    def __init__(self) -> None:
        super().__init__(name="net")
        self.a, self.b = layers.Dense(8, "tanh", name="a"), layers.Dense(2, name="b")

    def call(self, x: Any) -> Any:
        return self.b(self.a(x))


def unbuilt_fit(*callbacks: Any) -> Any:
    keras.utils.set_random_seed(7)
    with strategy.scope():
        model = OnFirstCall()
        model.compile(keras.optimizers.Adam(1e-2), "mse")
    history = model.fit(*data(), batch_size=ROWS, epochs=4, verbose=0, callbacks=list(callbacks))
    return history.history["loss"], weights_of(model)


def loop(compiled: Any, nested: bool = False, bad: bool = False, late: bool = False) -> Any:
    """A step of the user's own; with `bad`, the rows of the second replica make a NaN; with `late` the optimizer makes
    its variables in the first step."""
    keras.utils.set_random_seed(7)
    with strategy.scope():
        model = network(norm=False)
        optimizer = keras.optimizers.Adam(0.05) if late else keras.optimizers.SGD(0.05)
        if not late:
            optimizer.build(model.trainable_variables)

    def gradients(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(model(x, training=True) - y)) / ROWS
            if bad:
                loss += 1e-6 * tf.reduce_sum(tf.sqrt(tf.square(model.layers[0](x))[:, :1] + x[:, 0:1]))
        return loss, tape.gradient(loss, model.trainable_variables)

    taken = tf.function(gradients) if nested else gradients

    def replica(x: Any, y: Any) -> Any:
        loss, found = taken(x, y)
        if not bad:
            optimizer.apply(found, model.trainable_variables)
        return loss

    @compiled
    def step(x: Any, y: Any) -> Any:
        return strategy.reduce("SUM", strategy.run(replica, args=(x, y)), axis=None)

    x, y = bad_data() if bad else data()
    batches = tf.data.Dataset.from_tensor_slices((x, y)).batch(ROWS).repeat()
    iterator = iter(strategy.experimental_distribute_dataset(batches))
    losses = []
    for _ in range(4):
        losses.append(float(step(*next(iterator))))
    if hasattr(step, "flush"):
        step.flush()
    return losses, weights_of(model)


def tried(train: Callable[[], Any]) -> Any:
    """What a training comes to, or the name of its error."""
    try:
        return train()
    except Exception as error:
        return type(error).__name__


def weights_of(model: Any) -> Any:
    return [weight.numpy().tolist() for weight in model.weights]


def on_one_device() -> tuple[dict[str, float], float]:
    """Norms of the gradients of `loop`'s first step, and of that of what the hidden layer makes of the batch."""
    keras.utils.set_random_seed(7)
    model = network(norm=False)
    x, y = data()
    with tf.GradientTape() as tape:
        hidden = model.layers[0](x)
        loss = tf.reduce_sum(tf.square(model.layers[1](hidden) - y)) / ROWS
    wanted = [*(variable.value for variable in model.trainable_variables), hidden]
    *norms, of_hidden = [float(tf.norm(gradient)) for gradient in tape.gradient(loss, wanted)]
    return dict(zip([v.path for v in model.trainable_variables], norms, strict=True)), of_hidden


def range_under_the_root() -> list[float]:
    """The range of what the root in `loop(bad=True)` is given."""
    keras.utils.set_random_seed(7)
    x, _ = bad_data()
    given = tf.square(network(norm=False).layers[0](x))[:, :1] + x[:, 0:1]
    return [float(tf.reduce_min(given)), float(tf.reduce_max(given))]


def main(directory: Path) -> None:
    def callback(name: str) -> Any:
        keras.utils.clear_session()
        return tb_gradflow.GradFlowCallback(directory / name, update_freq=2)

    def watch(name: str) -> Any:
        keras.utils.clear_session()
        return tb_gradflow.watch(directory / name, update_freq=2)

    found = {
        "fit": [fit(), fit(callback("fit"))],
        "unbuilt": [unbuilt_fit(), unbuilt_fit(callback("unbuilt"))],
        "legacy": [legacy_fit(), legacy_fit(callback("legacy"))],
        "loop": [loop(tf.function), loop(watch("loop"))],
        "nested": [loop(tf.function, nested=True), loop(watch("nested"), nested=True)],
        "bad": [loop(watch("bad"), bad=True)],
    }
    # TensorFlow itself fails at this from 2.18 on.
    found["late"] = [tried(lambda: loop(tf.function, late=True)), tried(lambda: loop(watch("late"), late=True))]
    keras.utils.clear_session()
    norms, of_hidden = on_one_device()
    keras.utils.clear_session()
    told = {"trainings": found, "norms": norms, "hidden": of_hidden, "range": range_under_the_root()}
    sys.stdout.write(f"FOUND {json.dumps(told)}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
