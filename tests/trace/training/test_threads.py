"""Several trainings in one process: in threads at the same time, and one inside of the other."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow import GradFlowCallback
from tb_gradflow.trace.explain.run_mode import functions_compiled
from tests.trace.recording import data


def network(width: int) -> Any:
    keras.utils.set_random_seed(width)
    model = keras.Sequential(
        [keras.Input((6,)), keras.layers.Dense(width, "tanh", name="hidden"), keras.layers.Dense(2, name="out")],
        name=f"net{width}",
    )
    model.compile("adam", "mse")
    return model


def fit(model: Any, *callbacks: Any) -> list[float]:
    x, y = data(rows=64)
    history = model.fit(x, y, batch_size=16, epochs=2, shuffle=False, verbose=0, callbacks=list(callbacks))
    losses: list[float] = history.history["loss"]
    return losses


def test_two_models_that_train_in_two_threads_are_recorded_each(tmp_path: Path) -> None:
    plain = {width: fit(network(width)) for width in (3, 5)}
    built = {width: network(width) for width in (3, 5)}
    losses: dict[int, list[float]] = {}

    def train(width: int) -> None:
        losses[width] = fit(built[width], GradFlowCallback(tmp_path / str(width), update_freq=1))

    threads = [threading.Thread(target=train, args=[width]) for width in built]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert losses == plain
    for width in built:
        log = tb_gradflow.open_log(tmp_path / str(width))
        assert log.steps == tuple(range(8))
        assert log.report().variables[f"net{width}/hidden/kernel"].status == "connected"


@pytest.mark.parametrize("is_recorded", [False, True], ids=["", "recorded too"])
def test_a_fit_inside_of_another_ones_callback(is_recorded: bool, tmp_path: Path) -> None:
    def nested(*recorders: Any) -> tuple[list[float], list[Any], list[float]]:
        outer, inner = network(3), network(5)
        found: list[float] = []

        class Nested(keras.callbacks.Callback):
            def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
                if batch == 1 and not found:
                    found.extend(fit(inner, *recorders[1:]))

        losses = fit(outer, Nested(), *recorders[:1])
        return losses, [weight.numpy() for weight in (*outer.weights, *inner.weights)], found

    plain = nested()
    recorders = [GradFlowCallback(tmp_path / name, update_freq=1) for name in ("outer", "inner")]
    recorded = nested(*recorders[: 1 + is_recorded])

    assert (recorded[0], recorded[2]) == (plain[0], plain[2])
    for one, other in zip(plain[1], recorded[1], strict=True):
        np.testing.assert_array_equal(one, other)
    assert tb_gradflow.open_log(tmp_path / "outer").steps == tuple(range(8))
    if is_recorded:
        assert tb_gradflow.open_log(tmp_path / "inner").steps == tuple(range(8))


def test_functions_are_eager_again_after_two_threads_have_compiled_theirs() -> None:
    """The first to begin ends first, so neither of them finds the switch as it was."""
    first, second = functions_compiled(), functions_compiled()
    tf.config.run_functions_eagerly(True)
    try:
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert not tf.config.functions_run_eagerly()
        second.__exit__(None, None, None)
        assert tf.config.functions_run_eagerly()
    finally:
        tf.config.run_functions_eagerly(False)
