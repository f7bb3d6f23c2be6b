"""A weight is read before it is written, however TensorFlow optimizes the graph of a step that records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2
from tensorflow.python.eager import context

import tb_gradflow
from tb_gradflow.trace.engine.siblings import Sibling


class Critic(keras.Model):
    """Of a GAN whose critic is penalised for its slope: called three times, with a gradient inside of the gradient."""

    def __init__(self, in_a_function: bool = False) -> None:
        super().__init__(name="critic")
        self.first = keras.layers.Dense(8, activation="relu")
        self.second = keras.layers.Dense(8, activation="relu")
        self.score = keras.layers.Dense(1, use_bias=False)
        if in_a_function:
            self.learned = tf.function(self.learned)  # type: ignore[method-assign]

    def call(self, x: Any) -> Any:
        return self.score(self.second(self.first(x)))

    def train_step(self, data: Any) -> Any:
        return self.learned(*data)

    def learned(self, real: Any, fake: Any) -> Any:
        with tf.GradientTape() as tape:
            between = 0.3 * real + 0.7 * fake
            with tf.GradientTape() as inner:
                inner.watch(between)
                scores = self(between, training=True)
            length = tf.sqrt(tf.reduce_sum(tf.square(inner.gradient(scores, between)), axis=1))
            loss = tf.reduce_mean(self(fake)) - tf.reduce_mean(self(real)) + 10.0 * tf.reduce_mean((length - 1.0) ** 2)
        self.optimizer.apply(tape.gradient(loss, self.trainable_weights), self.trainable_weights)
        return {"loss": loss}


def trained(*callbacks: Any, in_a_function: bool = False) -> list[Any]:
    keras.utils.clear_session(free_memory=False)
    keras.utils.set_random_seed(49)
    model, draw = Critic(in_a_function), np.random.default_rng(49)
    real, fake = (draw.uniform(size=(16, 5)).astype("float32") for _ in range(2))
    model(real[:1])
    model.compile(keras.optimizers.SGD(0.1))
    model.fit(real, fake, batch_size=8, verbose=0, shuffle=False, callbacks=list(callbacks))
    return [weight.numpy() for weight in model.weights]


@pytest.mark.parametrize("in_a_function", [False, True], ids=["as it is", "in a function of its own"])
@pytest.mark.parametrize(
    "options",
    [{"update_freq": 1, "catch_nonfinite": False}, {"update_freq": 1000}],
    ids=["every step recorded", "the second step guarded"],
)
def test_a_gradient_inside_of_a_gradient_is_of_the_weights_before_the_step(
    options: dict[str, Any], in_a_function: bool, tmp_path: Path
) -> None:
    with reads_before_writes():
        plain = trained(in_a_function=in_a_function)
    here = context.context()
    here.enable_graph_collection()
    try:
        weights = trained(tb_gradflow.GradFlowCallback(tmp_path, **options), in_a_function=in_a_function)
        ran = here.export_run_metadata()
    finally:
        here.disable_graph_collection()

    for mine, theirs in zip(weights, plain, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    steps = [each for each in optimized(ran) if "critic" in str(each.node)]
    assert steps
    assert [unordered(each) for each in steps] == [[]] * len(steps)


@contextmanager
def reads_before_writes() -> Iterator[None]:
    """Of a training without a recorder too: TensorFlow's dependency optimizer lets this critic's last weight be
    written before two of its reads, and about one plain run in sixty is then of other weights."""
    tf.config.optimizer.set_experimental_options({"dependency_optimization": False})
    try:
        yield
    finally:
        tf.config.optimizer.set_experimental_options({"dependency_optimization": True})


def optimized(ran: config_pb2.RunMetadata) -> list[Any]:
    return [function.post_optimization_graph for function in ran.function_graphs]


def unordered(graph: Any) -> list[tuple[str, str]]:
    """The reads and writes of the same variable of which either may run first."""
    waits = {node.name: [each.lstrip("^").split(":")[0] for each in node.input] for node in graph.node}
    before = {name: closure(name, waits) for name in waits}
    uses = [(node, node.input[0]) for node in graph.node if node.op.startswith(("ReadVariable", "Assign"))]
    return [
        (one.name, other.name)
        for one, of in uses
        for other, written in uses
        if of == written and one.op == "ReadVariableOp" and other.op != "ReadVariableOp"
        if one.name not in before[other.name] and other.name not in before[one.name]
    ]


def closure(name: str, waits: dict[str, list[str]]) -> set[str]:
    seen: set[str] = set()
    todo = [name]
    while todo:
        new = set(waits[todo.pop()]) - seen
        seen |= new
        todo += new
    return seen


@pytest.mark.parametrize("size", [10, 14_000_000])
def test_a_sum_is_added_in_one_order_however_large_it_is(size: int) -> None:
    """TensorFlow assumes that a CPU has 256 MB, and lets what needs most of it add tensors as they are ready."""

    @tf.function
    def total(tensor: Any, *rest: Any) -> Any:
        return tf.add_n([tensor * 0.0 + 0.25, *rest])

    given = [tf.fill([size], value) for value in (1.0, 1e8, -1e8, 1.0)]
    found = Sibling(total.get_concrete_function(*given)._inference_function, [])(given)
    assert found[0] == 1.25
