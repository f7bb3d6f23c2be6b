"""Where the rows that a finding names are in the data set of `fit`: by content in arrays, or by position."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow import GradFlowCallback
from tb_gradflow.record.schema import DataRow, StepValues
from tb_gradflow.store.directory import DirectoryReader
from tb_gradflow.store.run import StoredRun
from tests.trace.spikes.contact import recorded
from tests.trace.spikes.injections import AT, Injection, one_row, regression_adam
from tests.trace.spikes.injections import ROWS as RECORDED_ROWS

ROWS, BROKEN, TWIN, BATCH = 200, 117, 150, 16

Data = tuple[np.ndarray, np.ndarray]
Given = tuple[Any, dict[str, Any]]


def data() -> Data:
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(ROWS, 3)).astype("float32"), generator.integers(0, 2, (ROWS, 1))
    x[BROKEN, 1] = np.nan
    return x, y


def with_twin() -> Data:
    """An equal row further down."""
    x, y = data()
    x[TWIN], y[TWIN] = x[BROKEN], y[BROKEN]
    return x, y


def with_other_label() -> Data:
    """A row further up that only `y` tells from it."""
    x, y = data()
    x[20], y[20] = x[BROKEN], 1 - y[BROKEN]
    return x, y


def built(**compiled: Any) -> Any:
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.layers.Dense(4, "tanh"), keras.layers.Dense(1)])
    model.compile("sgd", "mse", **compiled)
    return model


def fitted(given: Any, path: Path, *, compiled: dict[str, Any] | None = None, **options: Any) -> Any:
    model = built(**(compiled or {}))
    callback = GradFlowCallback(str(path), update_freq=1 if model.run_eagerly else 1000)
    arrays = given if isinstance(given, tuple) else (given,)
    model.fit(*arrays, epochs=options.pop("epochs", 2), verbose=0, callbacks=[callback], **options)
    return callback


def data_rows(path: Path) -> tuple[DataRow, ...]:
    """Of the first step that is not finite."""
    return next(each for each in values_in(path) if each.batch > 0).data_rows


def values_in(path: Path) -> Iterator[StepValues]:
    run = StoredRun(DirectoryReader(str(path / "gradflow")))
    index = run.index()
    for step in sorted(index.with_values):
        place = index.find(step)
        if place is not None:
            yield run.values(index.session.id, step, run.trace(index.session.id, place[0].trace))


def message(path: Path) -> str:
    log = tb_gradflow.open_log(str(path))
    findings = [finding for step in log.steps for finding in log.report(step).findings if finding.examples]
    return str(findings[0].message)


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_row_of_arrays(shuffle: bool, tmp_path: Path) -> None:
    fitted(data(), tmp_path, batch_size=BATCH, shuffle=shuffle)

    [row] = data_rows(tmp_path)
    assert (row.index, row.equal) == (BROKEN, 1)
    assert f" That row is row {BROKEN} of the data set." in message(tmp_path)


def test_of_equal_rows_the_first_and_their_number(tmp_path: Path) -> None:
    fitted(with_twin(), tmp_path, batch_size=BATCH, shuffle=True)

    rows = data_rows(tmp_path)
    assert {(each.index, each.equal) for each in rows} == {(BROKEN, 2)}
    assert f"{BROKEN} (the first of 2 equal rows)" in message(tmp_path)


def test_equal_rows_in_their_order_are_told_apart(tmp_path: Path) -> None:
    x, y = with_twin()

    fitted((x[BROKEN + 1 :], y[BROKEN + 1 :]), tmp_path / "second", batch_size=BATCH, shuffle=False)
    fitted((x[::-1].copy(), y[::-1].copy()), tmp_path / "reversed", batch_size=BATCH, shuffle=False)
    fitted((x, y), tmp_path / "one batch", batch_size=ROWS, shuffle=False)

    assert [each.index for each in data_rows(tmp_path / "second")] == [TWIN - BROKEN - 1]
    assert [(each.index, each.equal) for each in data_rows(tmp_path / "reversed")] == [(ROWS - 1 - TWIN, 1)]
    assert [(each.index, each.equal) for each in data_rows(tmp_path / "one batch")] == [(BROKEN, 1), (TWIN, 1)]


def test_rows_are_equal_only_if_their_targets_are(tmp_path: Path) -> None:
    fitted(with_other_label(), tmp_path, batch_size=ROWS, shuffle=True)

    assert {(each.index, each.equal) for each in data_rows(tmp_path)} == {(20, 1), (BROKEN, 1)}


@pytest.mark.parametrize(
    "compiled",
    [{"run_eagerly": True}, {"steps_per_execution": 3}, {"jit_compile": True}],
    ids=lambda each: next(iter(each)),
)
def test_however_the_step_runs(compiled: dict[str, Any], tmp_path: Path) -> None:
    fitted(data(), tmp_path, compiled=compiled, batch_size=BATCH, shuffle=True)

    assert [each.index for each in data_rows(tmp_path)] == [BROKEN]


def slices() -> Any:
    return tf.data.Dataset.from_tensor_slices(data())


def halved(x: Any, y: Any) -> Any:
    return x / 2.0, y


def mixed(x: Any, y: Any) -> Any:
    return tf.reverse(x, [0]), tf.reverse(y, [0])


def generated() -> Any:
    return tf.data.Dataset.from_generator(lambda: zip(*data(), strict=True), output_signature=slices().element_spec)


KNOWN: dict[str, Callable[[], Any]] = {
    "batch": lambda: slices().batch(BATCH),
    "map, skip and prefetch": lambda: slices().map(halved).skip(5).batch(BATCH).prefetch(2),
    "map of a batch": lambda: slices().batch(BATCH).map(halved),
    "shard": lambda: slices().map(halved).shard(2, 1).batch(BATCH),
    "cache and take": lambda: slices().map(halved).cache().take(190).batch(BATCH, drop_remainder=True),
    "zip": lambda: (
        tf.data.Dataset.zip(tuple(tf.data.Dataset.from_tensor_slices(each) for each in data())).map(halved).batch(BATCH)
    ),
    "padded": lambda: slices().map(halved).padded_batch(BATCH),
    "shuffled slices": lambda: slices().shuffle(50).batch(BATCH),
    "filtered slices": lambda: slices().filter(lambda x, y: y[0] < 2).batch(BATCH),
}

UNKNOWN: dict[str, Callable[[], Any]] = {
    "shuffled and changed": lambda: slices().shuffle(50).map(halved).batch(BATCH),
    "generator": lambda: generated().batch(BATCH),
    "filtered and changed": lambda: slices().map(halved).filter(lambda x, y: y[0] < 2).batch(BATCH),
    "any order": lambda: slices().map(halved, num_parallel_calls=2, deterministic=False).batch(BATCH),
    "rows that a map of batches moves": lambda: slices().map(halved).batch(BATCH).map(mixed),
    "batches of batches": lambda: slices().map(halved).batch(4).unbatch().batch(BATCH),
    "two sources": lambda: slices().map(halved).concatenate(slices()).batch(BATCH),
}


@pytest.mark.parametrize("name", KNOWN)
def test_a_row_of_a_dataset(name: str, tmp_path: Path) -> None:
    fitted(KNOWN[name](), tmp_path)

    assert data_rows(tmp_path) == (DataRow(data_rows(tmp_path)[0].row, BROKEN, 1),)


@pytest.mark.parametrize("name", UNKNOWN)
def test_nothing_is_said_of_a_row_that_may_be_any(name: str, tmp_path: Path) -> None:
    fitted(UNKNOWN[name](), tmp_path)

    assert data_rows(tmp_path) == ()
    assert "of the batch" in message(tmp_path)
    assert "data set" not in message(tmp_path)


def test_rows_of_text_are_compared_too(tmp_path: Path) -> None:
    class Named(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.dense = keras.layers.Dense(1)

        def call(self, inputs: Any) -> Any:
            return self.dense(inputs["x"])

    x, y = with_twin()
    names = np.array([f"row {number}" for number in range(ROWS)])
    model = Named()
    model.compile("sgd", "mse", jit_compile=False)

    dataset = tf.data.Dataset.from_tensor_slices(({"x": x, "name": names}, y)).shuffle(ROWS, seed=1).batch(ROWS)
    model.fit(dataset, epochs=1, verbose=0, callbacks=[GradFlowCallback(str(tmp_path), update_freq=1000)])

    assert {(each.index, each.equal) for each in data_rows(tmp_path)} == {(BROKEN, 1), (TWIN, 1)}


def test_a_dataset_without_end_is_counted_across_epochs(tmp_path: Path) -> None:
    """The broken row comes in the second epoch, which takes up where the first has ended."""
    endless = slices().map(halved).repeat().batch(BATCH)

    fitted(endless, tmp_path, steps_per_epoch=5, epochs=3)

    assert [each.index for each in data_rows(tmp_path)] == [BROKEN]


def test_rows_that_make_a_loss_jump(tmp_path: Path) -> None:
    recorded(regression_adam, Injection(one_row, ()), tmp_path)

    [finding] = [each for each in tb_gradflow.open_log(str(tmp_path)).report(AT).findings if each.cause == "loss_spike"]
    [row] = next(each.data_rows for each in values_in(tmp_path) if each.spike is not None)
    assert row == DataRow(7, AT * RECORDED_ROWS + 7)
    assert f" That row is row {row.index} of the data set." in finding.message


def test_a_generator_is_drawn_from_as_without_the_recorder(tmp_path: Path) -> None:
    drawn: list[int] = []

    def rows() -> Iterator[Any]:
        for number, row in enumerate(zip(*data(), strict=True)):
            drawn.append(number)
            yield row

    dataset = tf.data.Dataset.from_generator(rows, output_signature=slices().element_spec).batch(BATCH)
    fitted(dataset, tmp_path)
    recorded_draws = list(drawn)
    drawn.clear()
    built().fit(dataset, epochs=2, verbose=0)

    assert recorded_draws == drawn


def test_the_data_is_not_kept(tmp_path: Path) -> None:
    dataset = slices().batch(BATCH)
    alive = weakref.ref(dataset)

    callback = fitted(dataset, tmp_path)
    del dataset
    gc.collect()

    assert callback is not None
    assert alive() is None
