"""Where a step stops being finite is measured: the op, what it was given, and the rows of the batch."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.store.directory import DirectoryReader, find_runs
from tb_gradflow.store.run import StoredRun
from tb_gradflow.trace.explain.one_step import explain_function
from tb_gradflow.trace.numerics.values import VALUE_COLUMNS, bad_columns, bad_rows, value_statistics
from tests.trace import births

ROWS = (17, 203, 400)


def explained(program: Callable[..., births.Program], *, fixed: bool = False) -> Any:
    loss_fn, args, variables = program(fixed=fixed)
    return tb_gradflow.explain(loss_fn, args=args, variables=variables)


def first(report: Any) -> Any:
    return next(finding for finding in report.findings if finding.severity == "error")


@pytest.mark.parametrize("program", births.EXPECTED, ids=lambda program: program.__name__)
def test_the_first_op_that_is_not_finite_is_named_with_its_rows(program: Any) -> None:
    cause, kind, rows = births.EXPECTED[program]
    source, start = inspect.getsourcelines(program)
    [born] = [start + number for number, line in enumerate(source) if "# born" in line]

    finding = first(explained(program))

    assert (finding.cause, finding.op.type, finding.source.line) == (cause, kind, born)
    assert finding.examples == rows


@pytest.mark.parametrize("program", births.EXPECTED, ids=lambda program: program.__name__)
def test_the_repaired_twin_is_healthy(program: Any) -> None:
    assert explained(program, fixed=True).healthy


@pytest.mark.parametrize("program", births.EXPECTED, ids=lambda program: program.__name__)
def test_measured_values_are_those_of_the_plain_step(program: Any) -> None:
    """The loss and the gradients' NaN of the step that is run again, beside a plain tape's."""
    loss_fn, args, variables = program()
    with tf.GradientTape() as tape:
        loss = tf.function(loss_fn)(*args)
    gradients = tape.gradient(loss, variables)

    record = explain_function(loss_fn, args, variables).record

    assert record is not None
    assert record.values is not None
    assert np.isclose(record.losses[0], float(loss), equal_nan=True)
    rows = np.frombuffer(record.gradients, "<f4").reshape(-1, 6)
    broken = sum(int((~np.isfinite(each)).sum()) for each in gradients if each is not None)
    assert rows[: len([each for each in gradients if each is not None]), 4:].sum() == broken


def test_the_message_says_what_the_exponential_was_given() -> None:
    loss_fn, (x, y), variables = births.exponential_far_below_the_cross_entropy()
    first_kernel, second = (variable.numpy() for variable in variables[:2])
    hidden = x.numpy() @ first_kernel
    reached = np.abs(np.where(hidden > 0, hidden, 0.2 * hidden) @ second).max()

    message = first(tb_gradflow.explain(loss_fn, args=(x, y), variables=variables)).message

    assert f"reaches {reached:.4g}; the result overflows in float32 above 88.7" in message
    assert "rows 5 and 40 of the batch of 64" in message


def test_a_logarithm_of_exactly_zero_is_not_called_negative() -> None:
    message = first(explained(births.certain_probability)).message

    assert "`1 - p` is exactly 0 in 1 of 32 elements" in message
    assert "negative" not in message


def test_a_root_of_something_negative_says_how_negative() -> None:
    _, (x,), _ = births.deviation_by_hand()
    v = x.numpy()
    variance = np.mean(v * v, -1) - np.mean(v, -1) ** 2 - np.float32(1e-6)

    message = first(explained(births.deviation_by_hand)).message

    assert f"negative in {(variance < 0).sum()} of 4 elements, down to {variance.min():.3g}" in message


def test_the_column_is_named_where_it_is_one() -> None:
    assert (
        "rows 17, 203 and 400 of the batch of 512, in `prices[:, 4]`"
        in first(explained(births.feature_of_zero_in_three_rows)).message
    )


def test_a_batch_that_holds_nan_has_its_rows_named() -> None:
    kernel = tf.Variable(tf.ones([3, 1]))
    x = np.ones((20, 3), "float32")
    x[[5, 11], 2] = np.nan

    finding = first(
        tb_gradflow.explain(lambda x: tf.reduce_mean(tf.square(x @ kernel)), args=(tf.constant(x),), variables=[kernel])
    )

    assert (finding.cause, finding.op, finding.examples) == ("nonfinite_input", None, (5, 11))


def test_rows_are_none_where_every_row_breaks() -> None:
    assert first(explained(births.temperature_of_zero)).examples is None


def test_many_rows_are_counted_and_the_first_are_listed() -> None:
    kernel = tf.Variable([[1.0], [1.0]])
    x = np.ones((300, 2), "float32")
    x[::3, 1] = 0.0

    def loss_fn(x: Any) -> Any:
        return tf.reduce_mean(tf.square(tf.math.log(x) @ kernel))

    finding = first(tb_gradflow.explain(loss_fn, args=(tf.constant(x),), variables=[kernel]))

    assert finding.examples == tuple(range(0, 96, 3))
    assert "rows 0, 3, 6, 9 and 96 more of the batch of 300" in finding.message


def test_an_eager_step_shows_the_same() -> None:
    """Python takes a value of it, so that it cannot be compiled."""
    kernel = tf.Variable([[1.0], [1.0]], name="kernel")
    x = np.ones((30, 2), "float32")
    x[[4, 8]] = 0.0

    def loss_fn(x: Any) -> Any:
        size = float(tf.reduce_sum(tf.abs(x)).numpy())
        return tf.reduce_mean(tf.math.log(tf.abs(x @ kernel)) / size)

    finding = first(tb_gradflow.explain(loss_fn, args=(tf.constant(x),), variables=[kernel]))

    assert (finding.cause, finding.examples) == ("log_zero", (4, 8))


def test_a_keras_model_shows_the_same() -> None:
    model = keras.Sequential([keras.Input((5,)), Logarithm(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x, y = prices(512)
    x[list(ROWS), 4] = 0.0

    finding = first(tb_gradflow.explain(model, x, y))

    assert (finding.cause, finding.examples) == ("log_zero", ROWS)


def prices(count: int) -> tuple[np.ndarray, np.ndarray]:
    x = np.abs(np.random.default_rng(0).normal(size=(count, 5))).astype("float32") + 0.1
    return x, x.sum(1, keepdims=True)


class Logarithm(keras.layers.Layer):
    """Of prices, which are above zero; `floor` keeps them so."""

    def __init__(self, floor: float = 0.0) -> None:
        super().__init__()
        self.floor = floor

    def call(self, x: Any) -> Any:
        return tf.math.log(tf.maximum(x, self.floor))


@pytest.mark.parametrize("fixed", [False, True], ids=["broken", "fixed"])
@pytest.mark.parametrize("options", [{}, {"jit_compile": True}, {"steps_per_execution": 3}], ids=str)
def test_three_rows_of_a_batch_in_fit(options: Any, fixed: Any, tmp_path: Any) -> None:
    """In step 7 of 9; the saturated layer behind the logarithm hides it from the loss."""
    model = keras.Sequential(
        [keras.Input((5,)), Logarithm(1e-3 if fixed else 0.0), keras.layers.Dense(4, "tanh"), keras.layers.Dense(1)]
    )
    model.compile("sgd", "mse", **options)
    x, y = prices(9 * 512)
    x[[7 * 512 + row for row in ROWS], 4] = 0.0
    callback = tb_gradflow.GradFlowCallback(tmp_path, update_freq=1000)

    model.fit(x, y, batch_size=512, shuffle=False, verbose=0, callbacks=[callback])

    log = tb_gradflow.open_log(tmp_path)
    if fixed:
        assert log.report().healthy
        assert 7 not in log.steps
        return
    finding = first(log.report(7))
    assert (finding.cause, finding.op.type, finding.examples) == ("log_zero", "Log", ROWS)
    assert "is exactly 0 in 3 of 2560 elements" in finding.message


@pytest.mark.parametrize("fixed", [False, True], ids=["broken", "fixed"])
@pytest.mark.parametrize("jit_compile", [False, True])
def test_three_rows_of_a_batch_in_a_watched_loop(jit_compile: Any, fixed: Any, tmp_path: Any) -> None:
    kernel = tf.Variable(np.full((5, 1), 0.1, "float32"), name="kernel")
    optimizer = keras.optimizers.SGD(1e-3)
    optimizer.build([kernel])

    @tb_gradflow.watch(tmp_path, update_freq=1000)
    @tf.function(jit_compile=jit_compile)
    def train_step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            known = tf.maximum(x, 1e-3) if fixed else x
            loss = tf.reduce_mean(tf.square(tf.math.log(known) @ kernel - y))
        optimizer.apply_gradients([(tape.gradient(loss, kernel), kernel)])
        return loss

    x, y = prices(9 * 512)
    x[[7 * 512 + row for row in ROWS], 4] = 0.0
    for step in range(9):
        part = slice(512 * step, 512 * step + 512)
        train_step(tf.constant(x[part]), tf.constant(y[part]))
    train_step.flush()

    log = tb_gradflow.open_log(tmp_path)
    if fixed:
        assert log.report().healthy
        assert 7 not in log.steps
        return
    finding = first(log.report(7))
    assert (finding.cause, finding.op.type, finding.examples) == ("log_zero", "Log", ROWS)
    assert "in `known[:, 4]`" in finding.message
    assert log.report(7).to_dict()["findings"][0]["examples"] == list(ROWS)


@pytest.mark.parametrize("step", [0, 1, 5])
def test_a_recorded_step_is_measured_too_and_trains_the_same(step: int, tmp_path: Any) -> None:
    """Such a step trains the model before it is run again; dropout draws the same numbers all the same."""
    x, y = prices(8 * 64)
    x[[step * 64 + row for row in (3, 9)], 4] = 0.0

    def trained(*callbacks: Any) -> list[np.ndarray]:
        keras.utils.set_random_seed(0)
        model = keras.Sequential(
            [
                *(keras.Input((5,)), Logarithm(), keras.layers.Dense(4, "tanh"), keras.layers.Dropout(0.2)),
                *(keras.layers.BatchNormalization(), keras.layers.Dense(1)),
            ]
        )
        model.compile("adam", "mse")
        model.fit(x, y, batch_size=64, shuffle=False, verbose=0, callbacks=list(callbacks))
        return [np.asarray(variable) for variable in (*model.variables, *model.optimizer.variables)]

    plain = trained()
    recorded = trained(tb_gradflow.GradFlowCallback(tmp_path, update_freq=1))

    assert all(np.array_equal(one, other, equal_nan=True) for one, other in zip(plain, recorded, strict=True))
    finding = first(tb_gradflow.open_log(tmp_path).report(step))
    assert (finding.cause, finding.examples) == ("log_zero", (3, 9))


def test_a_recorded_step_of_a_watched_loop_is_measured_too(tmp_path: Any) -> None:
    kernel = tf.Variable(np.full((5, 1), 0.1, "float32"), name="kernel")
    x, y = prices(3 * 64)
    x[[64 + 3, 64 + 9], 4] = 0.0

    @tb_gradflow.watch(tmp_path, update_freq=1)
    def train_step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.math.log(x) @ kernel - y))
        kernel.assign_sub(1e-3 * tape.gradient(loss, kernel))
        return loss

    for step in range(3):
        train_step(tf.constant(x[step * 64 : step * 64 + 64]), tf.constant(y[step * 64 : step * 64 + 64]))
    train_step.flush()

    finding = first(tb_gradflow.open_log(tmp_path).report(1))
    assert (finding.cause, finding.examples) == ("log_zero", (3, 9))
    assert "in `x[:, 4]`" in finding.message


@pytest.mark.parametrize("examples", [False, True])
def test_a_log_holds_rows_of_the_batch_on_request_alone(examples: bool, tmp_path: Any) -> None:
    x, y = prices(3 * 64)
    x[64 + 3] = [7.125, 1.0, 2.0, 3.0, 0.0]
    model = keras.Sequential([keras.Input((5,)), Logarithm(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    callback = tb_gradflow.GradFlowCallback(tmp_path, update_freq=100, examples=examples)

    model.fit(x, y, batch_size=64, shuffle=False, verbose=0, callbacks=[callback])

    finding = first(tb_gradflow.open_log(tmp_path).report(1))
    assert finding.examples == (3,)
    assert ("Row 3 of `x` is [7.125, 1, 2, 3, 0]" in finding.message) == examples
    [directory] = find_runs(str(tmp_path)).values()
    run = StoredRun(DirectoryReader(directory))
    index = run.index()
    [traced] = [head.trace for head in index.chunks if 1 in head.steps]
    values = run.values(index.session.id, 1, run.trace(index.session.id, traced))
    assert [(each.input, each.row) for each in values.examples] == ([("x", 3), ("y", 3)] if examples else [])


def test_a_healthy_step_is_not_run_again(monkeypatch: Any) -> None:
    x, y = prices(16)
    model = keras.Sequential([keras.Input((5,)), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    runs, step = [], model.train_step

    def counted(data: Any) -> Any:
        runs.append(data)
        return step(data)

    monkeypatch.setitem(vars(model), "train_step", counted)

    assert tb_gradflow.explain(model, x, y).healthy
    assert len(runs) == 1


@pytest.mark.parametrize("options", [{}, {"jit_compile": True}, {"steps_per_execution": 3}, {"freq": 1}], ids=str)
def test_a_step_is_recorded_without_its_values_where_they_cannot_be_measured(
    options: dict[str, Any], tmp_path: Any, monkeypatch: Any
) -> None:
    def failing(*arguments: Any) -> Any:
        raise RuntimeError("cannot")

    monkeypatch.setattr("tb_gradflow.trace.step.measurements.forward_values", failing)
    x, y = prices(6 * 64)
    x[4 * 64 + 3, 4] = 0.0
    model = keras.Sequential([keras.Input((5,)), Logarithm(), keras.layers.Dense(1)])
    callback = tb_gradflow.GradFlowCallback(tmp_path, update_freq=options.pop("freq", 100))
    model.compile("sgd", "mse", **options)

    model.fit(x, y, batch_size=64, shuffle=False, verbose=0, callbacks=[callback])

    finding = first(tb_gradflow.open_log(tmp_path).report(4))
    assert (finding.cause, finding.examples) == ("log_zero", None)


HOSTILE: dict[str, Any] = {
    "plain": np.asarray([[1, -2, 0], [3, 0, -0.0]], "float32"),
    "nan": np.asarray([[np.nan, 1, 2], [1, 1, np.inf], [0, 0, 0], [-np.inf, 0, np.nan]], "float32"),
    "nothing finite": np.asarray([[np.nan], [np.inf]], "float32"),
    "empty": np.zeros((0, 3), "float32"),
    "half": np.asarray([[6e4, np.inf], [1, 2]], "float16"),
    "double": np.asarray([[1e300, -1e-300], [np.nan, 0]]),
    "scalar": np.asarray(np.nan, "float32"),
    "rank 3": np.where(np.arange(24).reshape(2, 3, 4) == 17, np.inf, 1.0).astype("float32"),
}


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("name", HOSTILE)
def test_value_statistics_are_those_of_numpy(name: Any, jit_compile: Any) -> None:
    given = HOSTILE[name]
    array = given.astype("float64")
    finite = array[np.isfinite(array)]

    found = tf.function(value_statistics, jit_compile=jit_compile)(tf.constant(given)).numpy()

    ends = [finite.min(), finite.max()] if finite.size else [0.0, 0.0]
    signs = [(array == 0).sum(), (array < 0).sum()]
    bad = [np.isnan(array).sum(), np.isposinf(array).sum(), np.isneginf(array).sum()]
    with np.errstate(over="ignore"):
        expected = np.asarray([*ends, *signs, *bad]).astype("float32")
    assert dict(zip(VALUE_COLUMNS, found, strict=True)) == dict(zip(VALUE_COLUMNS, expected, strict=True))


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("name", [name for name in HOSTILE if np.ndim(HOSTILE[name])])
def test_bad_places_are_those_of_numpy(name: Any, jit_compile: Any) -> None:
    array = HOSTILE[name].astype("float64")
    bad = ~np.isfinite(array)

    for function, other in ((bad_rows, tuple(range(1, array.ndim))), (bad_columns, tuple(range(array.ndim - 1)))):
        count, *places = tf.function(function, jit_compile=jit_compile)(tf.constant(HOSTILE[name])).numpy()
        expected = np.flatnonzero(bad.any(axis=other)).tolist()
        assert (count, [place for place in places if place >= 0]) == (len(expected), expected)
