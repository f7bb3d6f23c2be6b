"""Whole programs that know nothing of the recorder print the same lines under `tb-gradflow run`, and end as before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.serve.processes import environment

START = """
import itertools, random
import keras, numpy as np, tensorflow as tf
keras.utils.set_random_seed(1)
X = np.random.default_rng(0).normal(size=(32, 3)).astype("float32")
"""

PROGRAMS = {
    "an error inside a layer that is a function": """
class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.line = keras.layers.Dense(1)
    @tf.function
    def call(self, x):
        return self.line(x)
net = Net()
net.compile("sgd", "mse")
net.fit(X, X[:, :1], verbose=0)
print("trained")
""",
    "a layer that Keras has compiled before it had weights": """
class Block(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.line = keras.layers.Dense(4)
    @tf.function
    def call(self, x):
        return tf.nn.relu(self.line(x))
model = keras.Sequential([keras.Input((3,)), Block(), keras.layers.Dense(1)])
model.compile("sgd", "mse")
print(model.fit(X, X[:, :1], epochs=3, batch_size=8, verbose=0).history["loss"])
print([weight.tolist() for weight in model.get_weights()])
""",
    "a draw while a step is compiled, and a count": """
random.seed(3)
weight, numbers = tf.Variable(tf.ones((3, 1))), itertools.count()
@tf.function
def step(x):
    print("traced", next(numbers))
    with tf.GradientTape() as tape:
        hidden = x @ weight if random.random() < 0.5 else x @ weight + random.random()
        loss = tf.reduce_mean(tf.square(hidden - x[:, :1]))
    weight.assign_sub(0.1 * tape.gradient(loss, weight))
    return loss
for number in range(14):
    print(float(step(tf.constant(X[: 16 if number % 5 else 8]))))
print(random.random(), next(numbers), weight.numpy().tolist())
""",
    "a step that returns nothing": """
image, optimizer = tf.Variable(np.resize(X, (1, 8, 4, 3))), keras.optimizers.Adam(0.02)
target = tf.constant(np.resize(X, (1, 8, 4, 3)) ** 2)
@tf.function
def step():
    with tf.GradientTape() as tape:
        loss = 1e4 * tf.reduce_mean((tf.nn.relu(image) * 0.1 - target) ** 2) + tf.reduce_sum(tf.abs(image))
    optimizer.apply_gradients([(tape.gradient(loss, image), image)])
for _ in range(14):
    step()
print(image.numpy().tolist())
""",
    "a step that draws its own batch, one with a NaN": """
rows = np.random.default_rng(0).normal(size=(30, 8, 3)).astype("float32")
rows[13, 0, 0] = np.nan
batches, weight = iter(tf.data.Dataset.from_tensor_slices(rows)), tf.Variable(tf.ones((3, 1)))
@tf.function
def step():
    x = next(batches)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.nn.dropout(x, 0.3) @ weight - x[:, :1]) ** 2)
    gradient = tape.gradient(loss, weight)
    weight.assign_sub(0.01 * tf.where(tf.math.is_finite(gradient), gradient, 0.0))
    return loss
try:
    while True:
        print(float(step()))
except tf.errors.OutOfRangeError:
    print("no more data", weight.numpy().tolist())
""",
    "checked numerics, and a switch between two fits": """
tf.debugging.enable_check_numerics()
class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.line, self.regularise = keras.layers.Dense(1), False
    def call(self, x):
        return self.line(x)
    def train_step(self, data):
        x, y = data
        print("traced with", self.regularise)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self(x, training=True) - y) ** 2)
            if self.regularise:
                loss += tf.reduce_sum(self.line.kernel**2)
        self.optimizer.apply_gradients(zip(tape.gradient(loss, self.trainable_variables), self.trainable_variables))
        return {"own": loss}
model = Net()
model.compile("sgd")
for _ in range(2):
    print(model.fit(X, X[:, :1], batch_size=8, epochs=2, verbose=0).history["own"])
    model.regularise = True
print([weight.tolist() for weight in model.get_weights()])
""",
    "an eager loop that counts": """
weight, seen = tf.Variable(tf.ones((3, 1))), []
for number in range(14):
    with tf.GradientTape() as tape:
        seen.append(number)
        loss = tf.reduce_mean((X @ weight - len(seen)) ** 2)
    weight.assign_sub(0.01 * tape.gradient(loss, weight))
    print(float(loss), len(seen))
""",
}


def ran(*command: str, directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        cwd=directory,
        env=environment(tensorflow=True),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_a_program_prints_what_it_prints_without_the_recorder(name: str, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(START + PROGRAMS[name])

    plain = ran(str(script), directory=tmp_path)
    recorded = ran("-m", "tb_gradflow.cli.main", "run", "--logdir", "logs", str(script), directory=tmp_path)

    assert (recorded.stdout, recorded.returncode) == (plain.stdout, plain.returncode)
    assert (plain.returncode != 0) == ("error" in name), plain.stderr
