"""Labels, words and other indices that are outside of what they index: TensorFlow raises, and the report says which."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

import tb_gradflow
from tb_gradflow.record.report import Finding

X = np.random.default_rng(0).normal(size=(48, 5)).astype("float32")


def classifier(outputs: int, **compiled: Any) -> Any:
    model = keras.Sequential([keras.Input((5,)), layers.Dense(8, "relu"), layers.Dense(outputs, "softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy", **compiled)
    return model


def error_of_fit(directory: Path, model: Any, x: Any, y: Any) -> tb_gradflow.Report:
    callback = tb_gradflow.GradFlowCallback(directory)
    with pytest.raises(tf.errors.InvalidArgumentError):
        model.fit(x, y, batch_size=16, verbose=0, shuffle=False, callbacks=[callback])
    return tb_gradflow.open_log(directory).report()


def only(report: tb_gradflow.Report) -> Finding:
    finding: Finding
    [finding] = report.findings
    assert (finding.cause, finding.severity) == ("index_out_of_range", "error")
    assert report.summary == "The step raises an error: an index is outside of what it indexes."
    return finding


@pytest.mark.parametrize(
    ("outputs", "labels", "said", "fix"),
    [
        (4, np.arange(48) % 4 + 1, "gets labels from 1 to 4, and there are 4 classes, 0 to 3.", "`y - 1`"),
        (4, np.arange(48) % 6, "gets labels from 0 to 5, and there are 4 classes, 0 to 3.", "6 for labels up to 5"),
        (4, np.arange(48) % 5 - 1, "gets labels from -1 to 3, and there are 4 classes, 0 to 3.", "ignore_class=-1"),
        (2, np.arange(48) % 2 * 255, "gets labels from 0 to 255, and there are 2 classes, 0 to 1.", "`y // 255`"),
    ],
)
def test_labels_outside_of_the_classes(tmp_path: Path, outputs: int, labels: Any, said: str, fix: str) -> None:
    finding = only(error_of_fit(tmp_path, classifier(outputs), X, labels))

    assert finding.message.endswith(said)
    assert fix in finding.fix


def test_explain_says_it_too_instead_of_raising() -> None:
    finding = only(tb_gradflow.explain(classifier(4), X, np.arange(48) % 4 + 1))

    assert "labels from 1 to 4, and there are 4 classes" in finding.message


@pytest.mark.parametrize("eager", [False, True])
def test_a_word_of_the_last_batch_is_told_in_the_last_recorded_step(tmp_path: Path, *, eager: bool) -> None:
    """Also if that batch would not have been recorded, and if the step runs eagerly."""
    words = np.random.default_rng(1).integers(0, 50, size=(480, 7))
    words[470, 2] = 50
    listed = [keras.Input((7,), dtype="int32"), layers.Embedding(50, 8, name="words"), layers.Flatten()]
    model = keras.Sequential([*listed, layers.Dense(3, "softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy", run_eagerly=eager)

    report = error_of_fit(tmp_path, model, words, np.arange(480) % 3)

    [finding] = [each for each in report.findings if each.severity != "info"]
    assert (
        "in layer `words`) gets the index 50, and `words/embeddings` has 50 rows, 0 to 49."
        in finding.message.replace(f"{model.name}/", "")
    )
    assert finding.message.startswith("A later step raises")
    assert "Embedding(51, ...)" in finding.fix
    assert {each.status for each in report.variables.values()} == {"connected"}


TABLE = tf.Variable(tf.ones([5, 4]), name="table")
SCALE = tf.Variable(tf.ones([4]), name="scale")

INDEXED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "gather": (lambda at: tf.gather(TABLE, at), "gets the index 7, and `table` has 5 rows, 0 to 4."),
    "gather_nd": (lambda at: tf.gather_nd(TABLE * 2.0, at[:, None]), "gets the index 7, and there are 5 elements"),
    "segment": (
        lambda at: tf.math.unsorted_segment_mean(TABLE[:3], at, 5),
        "gets the segment 7, and there are 5 segments, 0 to 4.",
    ),
    "scatter_nd": (
        lambda at: tf.scatter_nd(at[:, None], TABLE[:3], [5, 4]),
        "gets the index 7, and there are 5 elements, 0 to 4.",
    ),
}


@pytest.mark.parametrize("name", INDEXED)
@pytest.mark.parametrize("compiled", [True, False])
def test_any_index_of_a_step_with_a_tape(tmp_path: Path, name: str, *, compiled: bool) -> None:
    picked, said = INDEXED[name]

    def step(at: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(picked(at) * SCALE)
        return tape.gradient(loss, [TABLE, SCALE])

    tf.config.run_functions_eagerly(not compiled)
    try:
        watched = tb_gradflow.watch(tmp_path)(tf.function(step))
        watched(tf.constant([0, 3, 4]))
        with pytest.raises(tf.errors.InvalidArgumentError):
            watched(tf.constant([0, 7, 4]))
    finally:
        tf.config.run_functions_eagerly(False)
    watched.flush()

    report = tb_gradflow.open_log(tmp_path).report()
    [finding] = [each for each in report.findings if each.severity == "error"]
    # An eager step does not have the op that has raised, nor the table that it reads.
    assert (said if compiled else said.replace("`table` has 5 rows", "there are 5 elements")) in finding.message
    assert "(test_index_out_of_range.py:" in finding.message


def test_another_error_is_told_with_its_line(tmp_path: Path) -> None:
    @tb_gradflow.watch(tmp_path)
    @tf.function(input_signature=[tf.TensorSpec([None, 4])])
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.reshape(x * SCALE, [3, -1]))
        return tape.gradient(loss, SCALE)

    with pytest.raises(tf.errors.InvalidArgumentError):
        step(tf.ones([2, 4]))
    step.flush()

    [finding] = tb_gradflow.open_log(tmp_path).report().findings
    assert finding.cause == "not_measured"
    assert "`tf.reshape` (test_index_out_of_range.py:" in finding.message
    assert "raises InvalidArgumentError: " in finding.message


def test_a_program_that_catches_its_errors_is_told_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    @tb_gradflow.watch(tmp_path)
    @tf.function
    def step(at: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.gather(TABLE, at))
        return tape.gradient(loss, TABLE)

    for wrong in (7, 8, 9):
        with pytest.raises(tf.errors.InvalidArgumentError):
            step(tf.constant([wrong]))
    step(tf.constant([1]))
    step.flush()

    report = tb_gradflow.open_log(tmp_path).report()
    assert "the index 7" in report.findings[0].message
    assert [each.status for each in report.variables.values()] == ["connected"]


def test_an_error_of_the_data_is_not_one_of_the_embedding(tmp_path: Path) -> None:
    """Both are lookups, and TensorFlow names only their type."""
    prices = tf.constant([0.0, 1.0, 2.0, 3.0, 4.0])

    def row(number: Any) -> Any:
        return tf.reshape(number % 7, [1]), tf.gather(prices, tf.where(number > 20, 9, 0))

    model = keras.Sequential([layers.Embedding(7, 4), layers.Flatten(), layers.Dense(1)])
    model.compile("sgd", "mse")
    callback = tb_gradflow.GradFlowCallback(tmp_path)
    with pytest.raises(tf.errors.InvalidArgumentError):
        model.fit(tf.data.Dataset.range(40).map(row).batch(4), verbose=0, callbacks=[callback])

    [finding] = tb_gradflow.open_log(tmp_path).report().findings
    assert "gets the index 9, and there are 5 elements, 0 to 4" in finding.message
    assert "embedding" not in finding.message


def test_the_size_of_another_axis_is_not_the_number_of_rows() -> None:
    table = tf.Variable(tf.ones((3, 4)), name="table")

    finding = only(tb_gradflow.explain(lambda: tf.reduce_sum(tf.gather(table, [4], axis=1)), variables=[table]))

    assert "gets the index 4, and there are 4 elements, 0 to 3" in finding.message


def test_a_lookup_of_data_alone_is_not_that_of_the_embedding(tmp_path: Path) -> None:
    """TensorFlow names both by their type, and the embedding has another number of rows."""
    model = keras.Sequential([keras.Input((1,)), layers.Embedding(50, 4), layers.Flatten(), layers.Dense(1)])
    names, optimizer = tf.constant(["a", "b", "c"]), keras.optimizers.SGD(0.1)

    @tb_gradflow.watch(tmp_path)
    def step(x: Any, y: Any) -> Any:
        seen = tf.strings.length(tf.gather(names, y))
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(x) ** 2)
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        return loss, seen

    with pytest.raises(tf.errors.InvalidArgumentError):
        step(tf.constant([[40], [2]]), tf.constant([0, 3]))
    step.flush()

    finding = only(tb_gradflow.open_log(tmp_path).report())
    assert finding.source is not None
    assert "tf.gather(names, y)" in finding.source.code
    assert "embedding" not in finding.message
