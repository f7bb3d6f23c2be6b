"""A step that was compiled before the recorder came is recorded from its graph: no Python code of the user's runs
again, and the training has the same bits."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import tb_gradflow
from tb_gradflow.errors import LogError

layers = keras.layers


def rows(size: int = 48) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(size, 4)).astype("float32")
    return x, x[:, :1] ** 2


class Net(keras.Model):
    """Counts how often its code runs."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = layers.Dense(8, activation="relu")
        self.head = layers.Dense(1)
        self.calls = 0

    def call(self, x: Any) -> Any:
        self.calls += 1
        return self.head(self.hidden(x)) * (1.0 + 0.01 * self.calls)


def plain_net(kind: Any = keras) -> Any:
    made = kind.layers
    return kind.Sequential([made.Dense(6, "tanh"), made.Dropout(0.25, seed=1), made.Dense(1)])


def convolutional() -> Any:
    return keras.Sequential(
        [
            layers.Reshape((2, 2, 1)),
            layers.Conv2D(4, 2, activation="gelu", kernel_regularizer="l2"),
            layers.BatchNormalization(),
            layers.Flatten(),
            layers.LayerNormalization(),
            layers.Dense(1),
        ]
    )


def attention() -> Any:
    x = entry = keras.Input((4,))
    x = layers.Dense(8)(layers.Reshape((4, 1))(x))
    x = layers.Flatten()(layers.MultiHeadAttention(2, 4)(x, x))
    return keras.Model(entry, layers.Dense(1)(x))


def embedding() -> Any:
    whole = layers.Lambda(lambda x: keras.ops.cast(keras.ops.abs(x), "int32"))
    return keras.Sequential([whole, layers.Embedding(9, 4), layers.Flatten(), layers.Dense(1)])


def fitted(
    make: Callable[[], Any],
    callbacks: Sequence[Any] = (),
    between: Callable[[Any], None] = lambda model: None,
    size: int = 48,
) -> Any:
    """A model that is fitted twice, the second time with these callbacks."""
    keras.utils.set_random_seed(1)
    model = make()
    model.compile("adam", "mse", jit_compile=False)
    model.fit(*rows(size), batch_size=16, verbose=0)
    between(model)
    model.fit(*rows(size), batch_size=16, epochs=2, verbose=0, callbacks=list(callbacks))
    return model


def bits(model: Any) -> list[bytes]:
    return [each.numpy().tobytes() for each in model.variables]


def statuses(report: Any) -> list[str]:
    return [each["status"] for each in report.to_dict()["variables"]]


@pytest.mark.parametrize("make", [Net, plain_net, convolutional, attention, embedding])
def test_a_second_fit_is_recorded_and_not_changed(tmp_path: Path, make: Callable[[], Any]) -> None:
    recorded = fitted(make, [tb_gradflow.GradFlowCallback(tmp_path)])

    assert bits(recorded) == bits(fitted(make))
    log = tb_gradflow.open_log(tmp_path)
    assert len(log.steps) == 5  # the first of the six is that whose graph is read
    report = log.report()
    assert set(statuses(report)) <= {"connected", "frozen", "vanishing"}
    assert "read from its graph" in str(report)


def test_the_last_batch_has_a_step_of_its_own(tmp_path: Path) -> None:
    recorded = fitted(plain_net_without_noise, [tb_gradflow.GradFlowCallback(tmp_path)], size=40)

    assert bits(recorded) == bits(fitted(plain_net_without_noise, size=40))
    assert len(tb_gradflow.open_log(tmp_path).steps) >= 4


def plain_net_without_noise() -> Any:
    return keras.Sequential([layers.Dense(6, "tanh"), layers.Dense(1)])


def test_no_code_of_the_users_runs_again(tmp_path: Path) -> None:
    assert fitted(Net, [tb_gradflow.GradFlowCallback(tmp_path)]).calls == fitted(Net).calls


def test_the_gradients_are_those_of_a_tape(tmp_path: Path) -> None:
    expected: list[float] = []

    class Before(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            x, y = (tf.constant(each[16 * batch : 16 * batch + 16]) for each in rows())
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self.model(x) - y) ** 2)
            gradients = tape.gradient(loss, [each.value for each in self.model.trainable_variables])
            expected.append(float(tf.norm(gradients[0])))

    keras.utils.set_random_seed(1)
    model = plain_net_without_noise()
    model.compile("adam", "mse", jit_compile=False)
    model.fit(*rows(), batch_size=16, verbose=0, shuffle=False)
    model.fit(
        *rows(), batch_size=16, verbose=0, shuffle=False, callbacks=[Before(), tb_gradflow.GradFlowCallback(tmp_path)]
    )

    log = tb_gradflow.open_log(tmp_path)
    found = log.history("sequential/dense/kernel")["norm"]
    np.testing.assert_allclose(found, expected[1:], rtol=1e-5)


def test_a_layer_that_is_frozen_without_compile_still_trains(tmp_path: Path) -> None:
    def freeze(model: Any) -> None:
        model.layers[0].trainable = False

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Keras's own
        recorded = fitted(plain_net, [tb_gradflow.GradFlowCallback(tmp_path)], freeze)
        assert bits(recorded) == bits(fitted(plain_net, between=freeze))


def test_a_variable_without_a_gradient_is_named(tmp_path: Path) -> None:
    class Cut(Net):
        def call(self, x: Any) -> Any:
            return self.head(tf.stop_gradient(self.hidden(x)))

    fitted(Cut, [tb_gradflow.GradFlowCallback(tmp_path)])

    report = tb_gradflow.open_log(tmp_path).report()
    assert sorted(statuses(report)) == ["connected", "connected", "disconnected", "disconnected"]
    assert "stop_gradient" in str(report)
    assert Path(__file__).name in str(report)


def test_a_custom_gradient_is_not_called_again(tmp_path: Path) -> None:
    calls: list[int] = []

    @tf.custom_gradient
    def doubled(x: Any) -> Any:
        def gradient(upstream: Any) -> Any:
            calls.append(1)
            return 2.0 * upstream

        return 2.0 * x, gradient

    class Custom(Net):
        def call(self, x: Any) -> Any:
            return self.head(doubled(self.hidden(x)))

    fitted(Custom)
    plain, calls[:] = list(calls), []
    with pytest.warns(RuntimeWarning, match="does not record this fit: .* custom gradient"):
        fitted(Custom, [tb_gradflow.GradFlowCallback(tmp_path)])

    assert calls == plain
    with pytest.raises(LogError):
        tb_gradflow.open_log(tmp_path)


def test_a_fit_of_keras_2(tmp_path: Path) -> None:
    def twice(*callbacks: Any) -> Any:
        tf_keras.utils.set_random_seed(1)
        model = tf_keras.Sequential([tf_keras.layers.Dense(6, "tanh"), tf_keras.layers.Dense(1)])
        model.compile("adam", "mse")
        model.fit(*rows(), batch_size=16, verbose=0)
        model.fit(*rows(), batch_size=16, epochs=2, verbose=0, callbacks=list(callbacks))
        return [each.numpy().tobytes() for each in model.variables]

    assert twice(tb_gradflow.GradFlowCallback(tmp_path)) == twice()
    assert len(tb_gradflow.open_log(tmp_path).steps) == 5


def test_a_watched_function_that_has_run(tmp_path: Path) -> None:
    def trained(recorded: bool) -> Any:
        weight = tf.Variable(tf.ones((4, 1)), name="weight")
        traced: list[int] = []

        @tf.function
        def step(x: Any, y: Any) -> Any:
            traced.append(1)
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((x @ weight - y) ** 2)
            weight.assign_sub(0.1 * tape.gradient(loss, weight))
            return loss

        losses = [float(step(*map(tf.constant, rows())))]
        after = tb_gradflow.watch(tmp_path)(step) if recorded else step
        losses += [float(after(*map(tf.constant, rows()))) for _ in range(4)]
        return losses, weight.numpy().tobytes(), len(traced)

    assert trained(True) == trained(False)
    report = tb_gradflow.open_log(tmp_path).report()
    assert statuses(report) == ["connected"]
