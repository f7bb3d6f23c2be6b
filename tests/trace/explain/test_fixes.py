"""The remedies are code: pasted in the place of what they speak of, they give the variable a gradient."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow

RANDOM = np.random.default_rng(0)
X = tf.constant(RANDOM.normal(size=(3, 6)), tf.float32)


def fixed(code: str, names: dict[str, Any]) -> Any:
    """What the code of a remedy evaluates to: its statements are run, and its last expression counts."""
    scope = {"tf": tf, **names}
    value = None
    for piece in re.findall(r"`([^`]+)`", code.partition(" If this is intended")[0]):
        if re.match(r"\w+ = ", piece):
            exec(piece, scope)
            value = scope[piece.partition(" = ")[0]]
        else:
            value = eval(piece, scope)
    return value


def remedy(loss: Callable[[], Any], variable: tf.Variable) -> str:
    [finding] = [each for each in tb_gradflow.explain(loss, variables=[variable]).findings if each.severity != "info"]
    return finding.fix


def gradient(code: str, variable: tf.Variable, names: dict[str, Any]) -> Any:
    with tf.GradientTape() as tape:
        value = tf.reduce_sum(tf.square(fixed(code, {**names, "threshold": variable, "w": variable})))
    return tape.gradient(value, variable)


@pytest.mark.parametrize("start", [2.5, [1.5, 2.5, 4.0]])
def test_a_soft_mask_has_the_shape_of_the_hard_one(start: Any) -> None:
    threshold = tf.Variable(start, name="threshold")

    def loss() -> Any:
        return tf.reduce_mean(X * tf.sequence_mask(threshold, 6, dtype=tf.float32))

    soft = fixed(remedy(loss, threshold), {"threshold": threshold})

    hard = tf.sequence_mask(threshold, 6, dtype=tf.float32)
    assert soft.shape == hard.shape
    assert np.abs(soft - hard).max() < 0.6
    assert np.any(gradient(remedy(loss, threshold), threshold, {}))


@pytest.mark.parametrize(
    "call",
    [
        "tf.sequence_mask(tf.cast(threshold, tf.int32), 6, tf.float32)",
        "tf.sequence_mask(lengths=threshold, maxlen=6, dtype=tf.float32)",
        "tf.sequence_mask(tf.cast(tf.round(threshold), tf.int32), maxlen=6, dtype=tf.float32)",
        "tf.sequence_mask(threshold, dtype=tf.float32)",
        "tf.where(x > threshold[:, None], x, 0.0)",
        "tf.cast(tf.less(x, threshold[:, None]), tf.float32)",
        "tf.cast(x <= threshold[:, None], tf.float32)",
        "tf.cast(tf.equal(threshold, 3.0), tf.float32)",
    ],
)
def test_a_soft_step_replaces_any_comparison(call: str, tmp_path: Any) -> None:
    threshold = tf.Variable([1.5, 2.5, 4.0], name="threshold")

    code = remedy(written(f"return {call}", tmp_path, threshold=threshold, x=X), threshold)

    assert np.any(gradient(code, threshold, {"x": X}))


@pytest.mark.parametrize(
    "call",
    [
        "tf.round(w)",
        "tf.floor(w * 3.0)",
        "w // 0.3",
        "tf.sign(w)",
        "tf.cast(tf.argmax(w), tf.float32)",
        "tf.cast(tf.argmin(x * w, axis=-1), tf.float32)",
        "tf.cast(tf.math.top_k(w, 2).indices, tf.float32)",
        "tf.cast(tf.argsort(w), tf.float32)",
        "tf.stop_gradient(w * 2.0)",
        "tf.math.log(w - w)",
        "tf.sqrt(w * 0.0)",
        "tf.norm(w * 0.0)",
        "tf.math.reduce_std(w * 0.0)",
        "tf.pow(w * 0.0, 0.5)",
        "tf.acos(w / w)",
        "tf.exp(w * 1000.0) / (1.0 + tf.exp(w * 1000.0))",
        "tf.math.log(1.0 + tf.exp(w * 1000.0))",
        "tf.where(w > 5.0, tf.math.log(w - w), w)",
        "(w - w) / (w - w)",
    ],
)
def test_other_remedies_run_and_give_a_gradient(call: str, tmp_path: Any) -> None:
    w = tf.Variable([0.3, 1.7, -0.9, 0.6, 0.2, 1.1], name="w")

    code = remedy(written(f"return {call}", tmp_path, w=w, x=X), w)

    found = gradient(code, w, {"x": X, "p": 0.5, "ok": w > 5.0, "other": 0.0})
    assert found is not None
    assert np.isfinite(found).all()


def written(body: str, directory: Any, **names: Any) -> Callable[[], Any]:
    """A loss with this line in a file of its own, as a user has it."""
    path = directory / "model.py"
    path.write_text(f"def compute():\n    {body}\n")
    scope = {"tf": tf, **names}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    return lambda: tf.reduce_sum(tf.square(scope["compute"]() - 0.3))
