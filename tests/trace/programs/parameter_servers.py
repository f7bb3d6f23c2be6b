"""Trains under a ParameterServerStrategy whose servers are of this process.

`python -m tests.trace.programs.parameter_servers DIRECTORY` prints, as JSON, what a loop came to without the recorder
and with it, and what `fit` and the recorder said.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import warnings
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import keras
import numpy as np
import tensorflow as tf

import tb_gradflow

ROWS = 16
random = np.random.default_rng(3)
X, Y = random.normal(size=(ROWS, 6)).astype("float32"), random.normal(size=(ROWS, 2)).astype("float32")


def cluster() -> Any:
    """The strategy of a chief with one worker and one server of parameters, which run in threads."""
    with socket.socket() as one, socket.socket() as other, socket.socket() as third:
        for each in (one, other, third):
            each.bind(("localhost", 0))
        worker, server, chief = (f"localhost:{each.getsockname()[1]}" for each in (one, other, third))
    jobs = {"worker": [worker], "ps": [server]}
    for job in jobs:
        tf.distribute.Server(tf.train.ClusterSpec(jobs), job_name=job, task_index=0, protocol="grpc")
    spec = tf.train.ClusterSpec({**jobs, "chief": [chief]})
    simple = tf.distribute.cluster_resolver.SimpleClusterResolver
    resolver = simple(spec, task_type="chief", task_id=0, rpc_layer="grpc")
    return tf.distribute.ParameterServerStrategy(resolver)


def loop(strategy: Any, compiled: Any) -> Any:
    with strategy.scope():
        weight = tf.Variable(np.ones((6, 2), "float32"), name="weight")
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    batches = coordinator.create_per_worker_dataset(lambda: tf.data.Dataset.from_tensors((X, Y)).repeat())
    iterator = iter(batches)

    @compiled
    def step(iterator: Any) -> Any:
        x, y = next(iterator)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(tf.matmul(x, weight) - y)) / ROWS
        weight.assign_sub(0.05 * tape.gradient(loss, weight))
        return loss

    losses = []
    for _ in range(3):
        losses.append(float(coordinator.schedule(step, args=(iterator,)).fetch()))
    return losses, weight.numpy().tolist()


def fit(strategy: Any, directory: Path) -> list[str]:
    """What the recorder says where `fit` begins, which itself goes no further here than Keras 3 does."""
    with strategy.scope():
        model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(2)])
        model.compile("sgd", "mse")
    callback = tb_gradflow.GradFlowCallback(directory)
    callback.set_model(model)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        callback.on_train_begin()
        callback.on_epoch_begin(0)
        callback.on_train_batch_begin(0)
        callback.on_train_batch_end(0)
        callback.on_epoch_end(0)
        callback.on_train_end()
    return [str(each.message) for each in said if "tb_gradflow" in str(each.message)]


def main(directory: Path) -> None:
    strategy = cluster()
    watch = tb_gradflow.watch(directory / "loop", update_freq=1)
    found = {
        "loop": [loop(strategy, tf.function), loop(strategy, lambda step: tf.function(watch(step)))],
        "told": fit(strategy, directory / "fit"),
    }
    sys.stdout.write(f"FOUND {json.dumps(found)}\n")
    sys.stdout.flush()
    # The servers never end by themselves.
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
