"""What clips leave of gradients, and the loss scale, against gradients of a tape that knows nothing of the recorder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import tb_gradflow
from tb_gradflow.record.schema import CLIP_STATISTICS, LOSS_SCALE_STATISTICS, Clip
from tests.trace.recording import Recorded, read

_BEFORE, _AFTER = (CLIP_STATISTICS.index(name) for name in ("before", "after"))
_SCALE, _UPDATES = (LOSS_SCALE_STATISTICS.index(name) for name in ("scale", "updates"))

X = np.random.default_rng(0).normal(size=(16, 6)).astype(np.float32)
Y = 5 * X.sum(axis=1, keepdims=True)

Numbers = Sequence[Any]


def model(library: Any = keras) -> Any:
    keras.utils.set_random_seed(3)
    layers = library.layers
    return library.Sequential([layers.Input((6,)), layers.Dense(8, "relu"), layers.Dense(1)])


def loss(trained: Any) -> Any:
    return tf.reduce_mean(tf.square(trained(X, training=True) - Y))


def gradients_of(trained: Any) -> list[Any]:
    with tf.GradientTape() as tape:
        value = loss(trained)
    return [each.numpy() for each in tape.gradient(value, trained.trainable_variables)]


def norm(arrays: Numbers) -> float:
    return float(np.sqrt(sum(np.sum(np.square(each, dtype=np.float64)) for each in arrays)))


def cut(recorded: Recorded, clip: Clip, step: int = -1) -> tuple[float, float]:
    row = recorded.gradients[step][clip.row]
    return float(row[_BEFORE]), float(row[_AFTER])


def left_by(by: str, limit: float, gradients: Numbers) -> list[tuple[float, float]]:
    """The norms before and after, as the documentation of Keras defines these clips."""
    if by == "global_clipnorm":
        return [(norm(gradients), min(norm(gradients), limit))]
    if by == "clipnorm":
        return [(norm([each]), min(norm([each]), limit)) for each in gradients]
    return [(norm([each]), norm([np.clip(each, -limit, limit)])) for each in gradients]


def fitted(directory: Path, optimizer: Any, **compiled: Any) -> tuple[Recorded, list[Any]]:
    """One step, and the gradients that it took."""
    trained = model()
    gradients = gradients_of(trained)
    trained.compile(optimizer, "mse", **compiled)
    recorder = tb_gradflow.GradFlowCallback(directory, update_freq=1)
    trained.fit(X, Y, batch_size=16, verbose=0, callbacks=[recorder])
    return read(directory), gradients


@pytest.mark.parametrize("compiled", [{}, {"run_eagerly": True}, {"jit_compile": True}], ids=["graph", "eager", "XLA"])
@pytest.mark.parametrize(
    ("by", "limit"), [("clipnorm", 1.0), ("global_clipnorm", 2.0), ("clipvalue", 0.1), ("clipnorm", 1e6)]
)
def test_what_an_optimizer_clips(by: str, limit: float, compiled: dict[str, bool], tmp_path: Path) -> None:
    recorded, gradients = fitted(tmp_path, keras.optimizers.SGD(0.01, **{by: limit}), **compiled)

    clips = recorded.trace.clips
    assert {(clip.by, clip.limit, clip.optimizer, clip.at) for clip in clips} == {(by, limit, 0, None)}
    expected = left_by(by, limit, gradients)
    assert [cut(recorded, clip) for clip in clips] == [pytest.approx(each, rel=1e-4) for each in expected]


def test_a_scaled_gradient_is_clipped_without_its_scale(tmp_path: Path) -> None:
    optimizer = keras.optimizers.SGD(0.01, clipnorm=1.0, loss_scale_factor=128.0)

    recorded, gradients = fitted(tmp_path, optimizer)

    expected = left_by("clipnorm", 1.0, gradients)
    assert [cut(recorded, clip) for clip in recorded.trace.clips] == [pytest.approx(e, rel=1e-4) for e in expected]


def test_an_optimizer_that_clips_in_its_own_way_is_not_known(tmp_path: Path) -> None:
    class Own(keras.optimizers.SGD):
        def _clip_gradients(self, grads: Any) -> Any:
            return [tf.sign(each) for each in grads]

    recorded, _ = fitted(tmp_path, Own(0.01, clipnorm=1.0))

    assert recorded.trace.clips == ()


def test_accumulated_gradients_are_clipped_later(tmp_path: Path) -> None:
    recorded, _ = fitted(tmp_path, keras.optimizers.SGD(0.01, clipnorm=1.0, gradient_accumulation_steps=2))

    assert recorded.trace.clips == ()


@pytest.mark.parametrize("make", [tf_keras.optimizers.SGD, tf_keras.optimizers.legacy.SGD], ids=["new", "legacy"])
@pytest.mark.parametrize(("by", "limit"), [("clipnorm", 1.0), ("global_clipnorm", 2.0), ("clipvalue", 0.1)])
def test_what_an_optimizer_of_keras_2_clips(by: str, limit: float, make: Callable[..., Any], tmp_path: Path) -> None:
    trained, optimizer = model(tf_keras), make(0.01, **{by: limit})
    gradients = gradients_of(trained)

    @tb_gradflow.watch(tmp_path, update_freq=1)
    def step() -> None:
        with tf.GradientTape() as tape:
            value = loss(trained)
        found = tape.gradient(value, trained.trainable_variables)
        optimizer.apply_gradients(zip(found, trained.trainable_variables, strict=True))

    step()

    recorded = read(tmp_path)
    expected = left_by(by, limit, gradients)
    assert [cut(recorded, clip) for clip in recorded.trace.clips] == [pytest.approx(e, rel=1e-4) for e in expected]


Clipping = Callable[[list[Any]], list[Any]]


def by_global_norm(gradients: list[Any]) -> list[Any]:
    return list(tf.clip_by_global_norm(gradients, 1.0)[0])


def by_norm_after_a_division(gradients: list[Any]) -> list[Any]:
    return [tf.clip_by_norm(each / 4.0, 0.5) for each in gradients]


def by_value_before_a_division(gradients: list[Any]) -> list[Any]:
    return [tf.clip_by_value(each, -0.1, 0.1) / 2.0 for each in gradients]


def by_keras(gradients: list[Any]) -> list[Any]:
    return [keras.ops.clip(each, -0.1, 0.1) for each in gradients]


BY_HAND: dict[Clipping, tuple[str, float, Callable[[Numbers], list[tuple[float, float]]]]] = {
    by_global_norm: ("tf.clip_by_global_norm", 1.0, lambda found: left_by("global_clipnorm", 1.0, found)),
    by_norm_after_a_division: (
        "tf.clip_by_norm",
        0.5,
        lambda found: left_by("clipnorm", 0.5, [each / 4 for each in found]),
    ),
    by_value_before_a_division: ("tf.clip_by_value", 0.1, lambda found: left_by("clipvalue", 0.1, found)),
    by_keras: ("tf.clip_by_value", 0.1, lambda found: left_by("clipvalue", 0.1, found)),
}


def looped(directory: Path, clip: Clipping, *, eagerly: bool = False, steps: int = 1) -> tuple[Recorded, list[Any]]:
    """A loop that clips by hand, and the gradients of its last step."""
    trained, optimizer = model(), keras.optimizers.SGD(0.01)

    def step() -> None:
        with tf.GradientTape() as tape:
            value = loss(trained)
        found = clip(tape.gradient(value, trained.trainable_variables))
        optimizer.apply_gradients(zip(found, trained.trainable_variables, strict=True))

    before = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(eagerly)
    try:
        watched = tb_gradflow.watch(directory, update_freq=1)(step)
        for _ in range(steps):
            gradients = gradients_of(trained)
            watched()
    finally:
        tf.config.run_functions_eagerly(before)
    watched.flush()
    return read(directory), gradients


@pytest.mark.parametrize("clip", BY_HAND)
def test_what_a_step_clips_itself(clip: Clipping, tmp_path: Path) -> None:
    by, limit, expected = BY_HAND[clip]

    recorded, gradients = looped(tmp_path, clip)

    clips = recorded.trace.clips
    assert {(each.by, each.limit) for each in clips} == {(by, limit)}
    assert [cut(recorded, each) for each in clips] == [pytest.approx(e, rel=1e-4) for e in expected(gradients)]
    assert sorted(variable for each in clips for variable in each.variables) == [0, 1, 2, 3]
    [line] = {recorded.trace.sources[each.at].code for each in clips if each.at is not None}
    assert "clip" in line


def test_what_an_eager_step_clips_itself(tmp_path: Path) -> None:
    """Of its first step, the variables are not known before."""
    recorded, gradients = looped(tmp_path, by_global_norm, eagerly=True, steps=3)

    [clip] = recorded.trace.clips
    assert cut(recorded, clip) == pytest.approx((norm(gradients), 1.0), rel=1e-4)


def test_values_that_are_clipped_are_no_gradients(tmp_path: Path) -> None:
    """Of a second loss, after a gradient was requested."""

    def clip(gradients: list[Any]) -> list[Any]:
        value = tf.clip_by_value(tf.constant(X), -0.1, 0.1)
        return [each + 0.0 * tf.reduce_sum(value) for each in gradients]

    recorded, _ = looped(tmp_path, clip)

    assert recorded.trace.clips == ()


def test_the_loss_scale_and_the_steps_that_it_skips(tmp_path: Path) -> None:
    keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        trained = model()
        scaling = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(1e-4), initial_scale=2.0**18)
        trained.compile(scaling, "mse")
        recorder = tb_gradflow.GradFlowCallback(tmp_path, update_freq=1)
        trained.fit(X, Y, batch_size=16, epochs=12, verbose=0, callbacks=[recorder])
    finally:
        keras.mixed_precision.set_global_policy("float32")

    recorded = read(tmp_path)
    [scale] = recorded.trace.loss_scales
    rows = np.array([row[scale.row] for row in recorded.gradients])
    scales, updates = rows[:, _SCALE], rows[:, _UPDATES]
    skipped = int(np.count_nonzero(np.diff(updates, prepend=0.0) == 0))
    assert scales[0] == 2.0**18
    assert 0 < skipped < 12
    assert updates[-1] == 12 - skipped == int(trained.optimizer.iterations)
    np.testing.assert_array_equal(
        scales[1:], np.where(np.diff(updates, prepend=0.0)[:-1] == 0, scales[:-1] / 2, scales[:-1])
    )
