"""What is not trained compiled on two devices: `python -m tests.trace.programs.mirrored_others DIRECTORY`.

Eager trainings under a MirroredStrategy of two CPU devices, and `explain` of a model that has two replicas. Prints what
came of each, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import keras
import numpy as np
import tensorflow as tf

import tb_gradflow
from tb_gradflow.errors import SetupError
from tb_gradflow.trace.step.workers import unsupported

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

ROWS = 16
random = np.random.default_rng(3)
X, Y = random.normal(size=(ROWS, 6)).astype("float32"), random.normal(size=(ROWS, 2)).astype("float32")


def compiled_model(eagerly: bool) -> Any:
    keras.utils.set_random_seed(7)
    hidden = keras.layers.Dense(8, "tanh", name="a")
    normed = keras.layers.BatchNormalization(name="bn")
    model = keras.Sequential([keras.Input((6,)), hidden, normed, keras.layers.Dense(2, name="b")], name="net")
    model.compile(keras.optimizers.Adam(1e-2), "mse", run_eagerly=eagerly)
    return model


def fit(*callbacks: Any, eagerly: bool = True) -> Any:
    keras.utils.clear_session()
    with strategy.scope():
        model = compiled_model(eagerly)
    history = model.fit(X, Y, batch_size=ROWS, epochs=3, verbose=0, callbacks=list(callbacks))
    return model, [history.history["loss"], state_of(model)]


def loop(compiled: Any) -> Any:
    with strategy.scope():
        weight = tf.Variable(np.ones((6, 2), "float32"), name="weight")

    def replica(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(tf.matmul(x, weight) - y)) / ROWS
        [gradient] = tf.distribute.get_replica_context().all_reduce("sum", tape.gradient(loss, [weight]))
        weight.assign_sub(0.05 * gradient)
        return loss

    @compiled
    def step(x: Any, y: Any) -> Any:
        return strategy.reduce("SUM", strategy.run(replica, args=(x, y)), axis=None)

    batches = tf.data.Dataset.from_tensor_slices((X, Y)).batch(ROWS).repeat()
    iterator = iter(strategy.experimental_distribute_dataset(batches))
    return [float(step(*next(iterator))) for _ in range(4)], weight.numpy().tolist()


def state_of(model: Any) -> Any:
    """What each replica has of every variable."""
    owners = [*model.weights, *model.optimizer.variables]
    return [
        [own.numpy().tolist() for own in getattr(variable.value, "values", [variable.value])] for variable in owners
    ]


def explained(eagerly: bool) -> Any:
    model, _ = fit(eagerly=eagerly)
    before = state_of(model)
    report = tb_gradflow.explain(model, X, Y)
    keras.utils.clear_session()
    alone = compiled_model(eagerly)
    alone.set_weights([weight.numpy() for weight in model.weights])
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(alone(X, training=True) - Y))
    variables = alone.trainable_variables
    gradients = tape.gradient(loss, [variable.value for variable in variables])
    return {
        "unchanged": state_of(model) == before,
        "found": {name: each.gradient.norm for name, each in report.variables.items() if each.gradient},
        "expected": {v.path: float(tf.norm(gradient)) for v, gradient in zip(variables, gradients, strict=True)},
    }


def explained_inside_of_the_scope() -> str:
    model, _ = fit(eagerly=False)
    try:
        with strategy.scope():
            tb_gradflow.explain(model, X, Y)
    except SetupError as error:
        return str(error)
    return ""


def of_a_second_strategy() -> list[str | None]:
    """Of two, in turns. Neither trains: TensorFlow takes their sums for the same."""
    second = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    single = tf.distribute.OneDeviceStrategy("CPU:0")
    return [unsupported(each, False) for each in (single, strategy, second, single, strategy)]


def told(action: Callable[[], Any]) -> Any:
    """What came of it, and what we said meanwhile."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        result = action()
    return [result, [str(each.message) for each in said if "tb_gradflow" in str(each.message)]]


def main(directory: Path) -> None:
    found: dict[str, Any] = {
        "explain": explained(eagerly=False),
        "explain eagerly": explained(eagerly=True),
        "explain in the scope": explained_inside_of_the_scope(),
        "fit": [fit()[1], *told(lambda: fit(tb_gradflow.GradFlowCallback(directory / "fit", 1))[1])],
    }
    found["second strategy"] = of_a_second_strategy()
    tf.config.run_functions_eagerly(True)
    found["loop"] = [loop(tf.function), *told(lambda: loop(tb_gradflow.watch(directory / "loop", 1)))]
    sys.stdout.write(f"FOUND {json.dumps(found)}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
