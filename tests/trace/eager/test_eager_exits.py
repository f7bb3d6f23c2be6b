"""Where a value leaves TensorFlow in an eager step, and whether it comes back."""

from __future__ import annotations

import copy
import logging
import math
import pickle
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow

X = tf.constant([0.3, -0.7, 1.9])


def by_numpy(w: Any) -> Any:
    return tf.reduce_sum(X * w.numpy())


def by_numpy_function(w: Any) -> Any:
    scale = np.exp(w)
    return tf.reduce_sum(X * scale)


def by_numpy_function_of_a_tensor(w: Any) -> Any:
    return tf.reduce_sum(X * np.mean(tf.square(w)))


def by_array(w: Any) -> Any:
    return tf.reduce_sum(X * np.array(w * 2.0))


def by_numpy_type(w: Any) -> Any:
    """A class of NumPy's reads the memory and calls nothing."""
    return tf.reduce_sum(X * np.float32(tf.exp(w)))


def by_float(w: Any) -> Any:
    return tf.reduce_sum(X) * sum(float(each) for each in w)


def by_item(w: Any) -> Any:
    return tf.reduce_sum(X) * w.numpy()[0].item()


def by_math(w: Any) -> Any:
    return tf.reduce_sum(X) * math.exp(w[0]) + 0.0 * len(str(w.numpy()))


def by_keras(w: Any) -> Any:
    return tf.reduce_sum(X * keras.ops.convert_to_numpy(w))


def by_helper(w: Any) -> Any:
    return tf.reduce_sum(X * _sorted(w))


def _sorted(values: Any) -> Any:
    return np.sort(values.numpy())[::-1].copy()


def by_attribute(w: Any) -> Any:
    """The kernel takes the number as an attribute: no constant comes back."""
    return tf.reduce_sum(tf.nn.leaky_relu(X, alpha=float(w[0])))


def by_kept_number(w: Any) -> Any:
    count = int(tf.abs(w[0]) * 3.0)
    return tf.reduce_sum(X[:count])


def by_decision(w: Any) -> Any:
    strength = float(tf.reduce_sum(w))
    if strength > 0.5:
        return tf.reduce_sum(X)
    return tf.reduce_sum(2.0 * X)


def as_the_loss(w: Any) -> Any:
    return float(tf.reduce_sum(w).numpy())


def by_predict(w: Any) -> Any:
    """A variable inside of a model that is called through `predict`."""
    layer = keras.layers.Lambda(lambda x: x * w)
    model = keras.Sequential([keras.Input((3,)), layer])
    return tf.reduce_sum(model.predict(X[None], verbose=0))


WAYS = [
    by_numpy, by_numpy_function, by_numpy_function_of_a_tensor, by_array, by_numpy_type, by_float, by_item, by_math,
    by_keras, by_helper, by_attribute, by_kept_number, by_decision, as_the_loss, by_predict,
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_value_that_leaves_and_comes_back_is_found(way: Callable[[Any], Any]) -> None:
    weight = tf.Variable([1.37, 0.49, 2.31], name="weight")

    report = tb_gradflow.explain(lambda: way(weight), variables=[weight])

    assert report.variables["weight"].status == "disconnected"
    [finding] = report.findings
    assert finding.cause == "python_escape"
    assert finding.severity == "error"
    assert finding.op is None
    assert finding.source is not None
    assert __file__.endswith(finding.source.file)


@pytest.mark.parametrize(
    ("way", "how", "fix"),
    [
        (by_numpy, "`.numpy()`", "`return tf.reduce_sum(X * w)`"),
        (by_numpy_function, "`np.exp`", "`scale = tf.exp(w)`"),
        (by_numpy_function_of_a_tensor, "`np.mean`", "`return tf.reduce_sum(X * tf.reduce_mean(tf.square(w)))`"),
        (by_array, "`np.array`", "`return tf.reduce_sum(X * (w * 2.0))`"),
        (by_keras, "`keras.ops.convert_to_numpy`", "`return tf.reduce_sum(X * w)`"),
        (by_predict, "`.predict()`", "`return tf.reduce_sum(model(X[None]))`"),
        (by_attribute, "`float()`", "`return tf.reduce_sum(tf.where(X > 0, X, w[0] * X))`"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_finding_says_how_it_left_and_what_to_write(way: Callable[[Any], Any], how: str, fix: str) -> None:
    weight = tf.Variable([1.37, 0.49, 2.31], name="weight")

    [finding] = tb_gradflow.explain(lambda: way(weight), variables=[weight]).findings

    assert f"leaves TensorFlow at {how} (test_eager_exits.py:" in finding.message
    assert fix in finding.fix


def printed(w: Any) -> None:
    logging.info("weight %s", w.numpy())


def logged(w: Any) -> None:
    history: list[float] = []
    history.append(float(tf.norm(w)))
    logging.info(f"norm {float(tf.norm(w)):.3f} {w.numpy()!r}")


def kept_and_printed(w: Any) -> None:
    seen = np.exp(w.numpy())
    logging.info(seen)


def asserted(w: Any) -> None:
    assert np.isfinite(w.numpy()).all()
    if tf.reduce_any(tf.math.is_nan(w)):
        raise ValueError("not a number")


@pytest.mark.parametrize("tell", [printed, logged, kept_and_printed, asserted], ids=lambda tell: tell.__name__)
def test_a_value_that_is_only_told_is_no_finding(tell: Callable[[Any], None]) -> None:
    weight = tf.Variable([1.37, 0.49, 2.31], name="weight")
    factor = 0.731

    def loss() -> Any:
        tell(weight)
        return tf.reduce_sum(weight * X * factor)

    assert tb_gradflow.explain(loss, variables=[weight]).findings == ()


@pytest.mark.parametrize("tell", [printed, logged, kept_and_printed], ids=lambda tell: tell.__name__)
def test_an_unused_variable_stays_unused_though_its_value_is_told(tell: Callable[[Any], None]) -> None:
    weight, idle = tf.Variable([1.37, 0.49, 2.31], name="weight"), tf.Variable([0.2, 0.6], name="idle")
    factor = 0.731

    def loss() -> Any:
        tell(idle)
        return tf.reduce_sum(weight * X * factor)

    report = tb_gradflow.explain(loss, variables=[weight, idle])

    assert report.variables["idle"].status == "unused"
    assert [finding.cause for finding in report.findings] == ["output_not_used"]


def test_what_is_handed_to_a_call_comes_back_by_its_value() -> None:
    """The line prints nothing and keeps nothing, and yet the loss depends on it."""
    source = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, name="source")])
    copy = keras.models.clone_model(source)

    def loss() -> Any:
        copy.set_weights(source.get_weights())
        return tf.reduce_sum(copy(X[None]))

    report = tb_gradflow.explain(loss, variables=source.trainable_variables)

    assert {variable.status for variable in list(report.variables.values())[:2]} == {"disconnected"}
    assert report.findings[0].cause == "python_escape"
    assert "`.get_weights()`" in report.findings[0].message


def test_a_number_kept_in_a_variable_of_the_step_is_state() -> None:
    weight = tf.Variable([1.37, 0.49, 2.31], name="weight")

    def loss() -> Any:
        kept = tf.Variable(2.0 * weight, name="kept")
        return tf.reduce_sum(tf.square(kept))

    report = tb_gradflow.explain(loss, variables=[weight])

    assert [finding.cause for finding in report.findings if finding.severity == "error"] == ["variable_assign"]


def test_a_decision_of_pythons_is_a_predicate() -> None:
    weight, limit = tf.Variable([1.37, 0.49, 2.31], name="weight"), tf.Variable(0.3, name="limit")

    def loss() -> Any:
        total = tf.reduce_sum(weight * X).numpy()
        if limit > 0.1:
            return tf.reduce_sum(weight * X)
        return tf.reduce_sum(weight) * total

    report = tb_gradflow.explain(loss, variables=[weight, limit])

    assert report.variables["limit"].status == "disconnected"
    [finding] = report.findings
    assert finding.cause == "predicate_only"
    assert finding.op is not None
    assert finding.op.type == "Greater"


def test_numpy_function_is_named_in_an_eager_step_too() -> None:
    weight = tf.Variable([1.37, 0.49, 2.31], name="weight")

    def loss() -> Any:
        logging.info(weight.numpy())
        return tf.reduce_sum(tf.numpy_function(np.sinh, [weight], tf.float32))

    [finding] = tb_gradflow.explain(loss, variables=[weight]).findings

    assert finding.cause == "python_escape"
    assert finding.op is not None
    assert finding.op.type == "PyFunc"


def test_float_is_looked_at_as_a_plain_function_runs_it() -> None:
    """Inside `tf.function` the code is rewritten, and `float` of a tensor is a cast."""
    scale = tf.Variable(1.37, name="scale")

    def loss() -> Any:
        return tf.reduce_sum(X) * float(scale)

    report = tb_gradflow.explain(loss, variables=[scale])

    assert report.variables["scale"].status == "disconnected"
    assert "Inside `tf.function`, `float(...)` of a tensor stays in TensorFlow." in str(report).replace("\n", " ")


def test_a_function_of_numpy_can_be_copied_and_compared_in_an_eager_step() -> None:
    """Settings that hold one are copied with each batch."""
    found: list[bool] = []
    normal: Any = np.random.normal
    w = tf.Variable([1.0, 2.0, 3.0], name="w")

    def loss() -> Any:
        held: dict[str, Any] = {"draw": np.random.normal, "mean": np.mean}
        copied, again = copy.deepcopy(held), copy.copy(np.random.normal)
        # As in Python itself, a deep copy of a method takes a copy of its generator with it.
        found.extend([copied["draw"].__self__ is not normal.__self__, again == normal, np.random.normal == normal])
        found.append(copied["mean"] == np.mean)
        found.extend([pickle.loads(pickle.dumps(np.mean)) is np.mean, hash(np.random.normal) == hash(normal)])
        return tf.reduce_sum(w * X) * float(tf.reduce_mean(w) > 0)

    tb_gradflow.explain(loss, variables=[w])

    assert found
    assert all(found)
