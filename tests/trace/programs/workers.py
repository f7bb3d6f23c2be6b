"""One of two workers that train a model together.

`python -m tests.trace.programs.workers NUMBER PORTS DIRECTORY KIND [FAILING PLACE]`: KIND is `fit` (of tf_keras),
`loop` (a step of the user's own) or `keras` (`fit` of Keras 3); the recorder of the worker FAILING fails at PLACE.
Prints what came of it as JSON: losses and weights without the recorder, and with it.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import numpy as np
import tensorflow as tf

import tb_gradflow

number, ports, directory, kind = int(sys.argv[1]), sys.argv[2].split(","), sys.argv[3], sys.argv[4]
os.environ["TF_CONFIG"] = json.dumps(
    {"cluster": {"worker": [f"localhost:{port}" for port in ports]}, "task": {"type": "worker", "index": number}}
)
strategy = tf.distribute.MultiWorkerMirroredStrategy()

STEPS, ROWS = 6, 16


def batches() -> Any:
    random = np.random.default_rng(3)
    x = random.normal(size=(ROWS, 6)).astype("float32")
    y = random.normal(size=(ROWS, 2)).astype("float32")
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(ROWS).with_options(options)


def fit(*callbacks: Any) -> Any:
    import tf_keras

    tf_keras.utils.set_random_seed(7)
    with strategy.scope():
        model = tf_keras.Sequential(
            [tf_keras.Input((6,)), tf_keras.layers.Dense(8, "tanh", name="a"), tf_keras.layers.Dense(2, name="b")]
        )
        model.compile("adam", "mse")
    history = model.fit(batches(), steps_per_epoch=3, epochs=STEPS // 3, verbose=0, callbacks=list(callbacks))
    return history.history["loss"], [weight.numpy().tolist() for weight in model.weights]


def keras_fit(*callbacks: Any) -> Any:
    import keras

    keras.utils.set_random_seed(7)
    with strategy.scope():
        model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(2)])
        model.compile("adam", "mse")
    model.fit(batches(), steps_per_epoch=3, verbose=0, callbacks=list(callbacks))
    return [], []


def loop(compiled: Any) -> Any:
    with strategy.scope():
        random = np.random.default_rng(5)
        weight = tf.Variable(random.normal(size=(6, 2)).astype("float32"), name="weight")
        bias = tf.Variable([0.5, -0.5], name="bias")

    def replica(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(tf.matmul(x, weight) + bias - y)) / ROWS
        gradients = tape.gradient(loss, [weight, bias])
        together = tf.distribute.get_replica_context().all_reduce("sum", gradients)
        for variable, gradient in zip([weight, bias], together, strict=True):
            variable.assign_sub(0.05 * gradient)
        return loss

    @compiled
    def step(x: Any, y: Any) -> Any:
        return strategy.reduce("SUM", strategy.run(replica, args=(x, y)), axis=None)

    data = iter(strategy.experimental_distribute_dataset(batches()))
    losses = [float(step(*next(data))) for _ in range(STEPS)]
    if hasattr(step, "flush"):
        step.flush()
    return losses, [variable.numpy().tolist() for variable in (weight, bias)]


def fail_at(place: str) -> None:
    """The recorder's function at that place of the package fails from now on."""
    module, _, name = place.rpartition(".")

    def injected(*_: Any, **__: Any) -> Any:
        raise RuntimeError("injected")

    setattr(importlib.import_module(module), name, injected)


def trainings() -> Any:
    if kind == "fit":
        return [fit(), fit(tb_gradflow.GradFlowCallback(directory))]
    if kind == "loop":
        return [loop(tf.function), loop(tb_gradflow.watch(directory, update_freq=2))]
    try:
        return [keras_fit(tb_gradflow.GradFlowCallback(directory))]
    except ValueError:  # of Keras
        return []


def wait_for_other(seconds: float = 60.0) -> None:
    """What this worker has sent last is still on its way while it goes on: the other fails if this one is gone."""
    ends = time.monotonic() + seconds
    while not (Path(directory) / f"worker {1 - number} is done").exists() and time.monotonic() < ends:
        time.sleep(0.05)


if sys.argv[5:] and sys.argv[5] == str(number):
    fail_at(sys.argv[6])
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    found = trainings()
ours = [str(each.message) for each in told if "tb_gradflow" in str(each.message)]
sys.stdout.write(f"FOUND {json.dumps({'trainings': found, 'warnings': ours})}\n")
sys.stdout.flush()
(Path(directory) / f"worker {number} is done").touch()
wait_for_other()
# Workers that leave one by one wait for each other in vain.
os._exit(0)
