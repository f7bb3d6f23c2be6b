"""An error that ends a loop is how the loop ends, if the program catches it; an error if the program ends with it."""

from __future__ import annotations

from pathlib import Path

import pytest

import tb_gradflow
from tests.cli.test_run import program, python, run, runs_of

HEAD = """\
import sys

import keras
import numpy as np
import tensorflow as tf

rows = tf.random.stateless_normal((64, 4), (1, 2))
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, name="hidden"), keras.layers.Dense(1, name="out")])
optimizer = keras.optimizers.SGD(0.01)
optimizer.build(model.trainable_variables)


def step(batch):
    with tf.GradientTape() as tape:
        taken = tf.gather(rows, tf.range(batch * 16, batch * 16 + 16))
        loss = tf.reduce_mean(tf.square(model(taken, training=True) - 1.0))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss

"""

COMPILED = HEAD + "step = tf.function(step)\n"

LOOP = """
batch = 0
while True:
    try:
        step(tf.constant(batch))
    except tf.errors.InvalidArgumentError:
        {caught}
    batch += 1
"""

EPOCHS = """
for epoch in range(3):
    try:
        for batch in range(100):
            step(tf.constant(batch))
    except tf.errors.InvalidArgumentError:
        {caught}
"""

BATCHES = """\
import keras
import numpy as np
import tensorflow as tf

words = np.arange(48).reshape(12, 4) % 20
words[10] = 40
model = keras.Sequential([keras.layers.Embedding(20, 3), keras.layers.Flatten(), keras.layers.Dense(1)])
model.compile("sgd", "mse")
for first in range(0, 12, 4):
    try:
        model.train_on_batch(words[first : first + 4], np.ones((4, 1)))
    except tf.errors.InvalidArgumentError:
        {caught}
"""


@pytest.mark.parametrize(
    ("code", "caught"),
    [
        (COMPILED + LOOP, "break"),
        (HEAD + LOOP, "break"),
        (COMPILED + EPOCHS, "continue"),
        (HEAD + EPOCHS, "continue"),
        (BATCHES, "print('left out')"),
    ],
    ids=["compiled", "eager", "compiled, again", "eager, again", "train_on_batch"],
)
def test_an_error_that_the_program_catches_is_not_reported(tmp_path: Path, code: str, caught: str) -> None:
    ended = run("--logdir", "logs", program(tmp_path, code.format(caught=caught)), directory=tmp_path)

    assert ended.returncode == 0, ended.stderr
    assert "index_out_of_range" not in ended.stderr
    assert "raises an error" not in ended.stderr
    [name] = runs_of(tmp_path / "logs")
    assert tb_gradflow.open_log(tmp_path / "logs" / name).report().healthy


@pytest.mark.parametrize(
    ("code", "caught"),
    [
        (COMPILED + LOOP, "raise"),
        (HEAD + LOOP, "raise ValueError('no such batch')"),
        (HEAD + EPOCHS, "if epoch == 2: raise"),
        (BATCHES, "raise"),
    ],
    ids=["compiled", "another error", "the last of several", "train_on_batch"],
)
def test_an_error_with_which_the_program_ends_is_reported(tmp_path: Path, code: str, caught: str) -> None:
    ended = run("--logdir", "logs", program(tmp_path, code.format(caught=caught)), directory=tmp_path)

    assert ended.returncode == 1
    assert ended.stderr.count("tb_gradflow: The step raises an error") == 1
    [name] = runs_of(tmp_path / "logs")
    report = tb_gradflow.open_log(tmp_path / "logs" / name).report()
    assert [each.cause for each in report.findings] == ["index_out_of_range"]
    assert {each.status for each in report.variables.values()} == {"connected"}


def test_a_program_that_exits_after_an_error_that_it_caught(tmp_path: Path) -> None:
    """Its status alone says that this was no regular end."""
    name = program(tmp_path, COMPILED + LOOP.format(caught="sys.exit(3)"))

    ended = run("--logdir", "logs", name, directory=tmp_path)

    assert ended.returncode == 3
    assert "The program ended with exit status 3: this report is about the steps that it got to." in ended.stderr


def test_a_watched_step_tells_it_at_the_end_of_the_program(tmp_path: Path) -> None:
    """Without `tb-gradflow run`, it is known as well whether the program ended with the error."""
    watched = "import tb_gradflow\nstep = tb_gradflow.watch(sys.argv[1])(tf.function(step))\n"
    name = program(tmp_path, HEAD + watched + LOOP.format(caught="if sys.argv[2] == 'break': break\n        raise"))
    for caught, causes in (("break", []), ("raise", ["index_out_of_range"])):
        python(name, caught, caught, directory=tmp_path)
        assert [each.cause for each in tb_gradflow.open_log(tmp_path / caught).report().findings] == causes
