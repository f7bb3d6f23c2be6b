"""Eager loops without an optimizer: only what follows shows that their last step is over, and their thread may end,
leave the loop or wait."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.recorded import Recorded
from tb_gradflow.trace.capture import observers
from tests.trace.recording import data


def loop(then: Callable[[], object] = lambda: None) -> float:
    weight = tf.Variable([1.0, 2.0], name="weight")
    for _ in range(2):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(weight**2)
        weight.assign_sub(0.1 * tape.gradient(loss, weight))
    then()
    return float(loss)


def fit(*callbacks: keras.callbacks.Callback) -> list[float]:
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(2)], name="net")
    model.compile("sgd", "mse")
    x, y = data(rows=16)
    losses: list[float] = model.fit(x, y, epochs=2, verbose=0, callbacks=list(callbacks)).history["loss"]
    return losses


def in_a_thread() -> float:
    found: list[float] = []
    thread = threading.Thread(target=lambda: found.append(loop()))
    thread.start()
    thread.join()
    return found[0]


def in_a_pool() -> float:
    """Its thread goes on to exist."""
    return POOL.submit(loop).result()


POOL = ThreadPoolExecutor(1)


@pytest.mark.parametrize("run", [in_a_thread, in_a_pool])
@pytest.mark.parametrize("is_own", [False, True], ids=["", "own callback"])
def test_a_training_after_such_a_loop_is_recorded_and_so_is_its_last_step(
    run: Callable[[], float], is_own: bool, tmp_path: Path
) -> None:
    alone = run(), fit()
    recorder = Recorded(lambda: str(tmp_path / "run"), {"update_freq": 1})

    recorder.start()
    try:
        recorded = run(), fit(*([tb_gradflow.GradFlowCallback(tmp_path / "net", update_freq=1)] if is_own else []))
    finally:
        recorder.stop()

    assert recorded == alone
    assert isinstance(np.sqrt, np.ufunc)
    [of_loop, *of_fit] = [tmp_path / "run" / name for name in recorder.names]
    assert tb_gradflow.open_log(of_loop).steps == (0, 1)
    assert len(of_fit) == (0 if is_own else 1)
    assert tb_gradflow.open_log(tmp_path / "net" if is_own else of_fit[0]).steps == (0, 1)


def test_a_recording_that_ends_before_such_a_loop_replaces_nothing_any_more(tmp_path: Path) -> None:
    has_stopped, has_trained = threading.Event(), threading.Event()
    losses: list[float] = []

    def then() -> None:
        has_trained.set()
        assert has_stopped.wait(60)

    thread = threading.Thread(target=lambda: losses.append(loop(then)))
    recorder = Recorded(lambda: str(tmp_path), {"update_freq": 1})
    recorder.start()
    thread.start()
    assert has_trained.wait(60)
    recorder.stop()

    assert isinstance(np.sqrt, np.ufunc)
    has_stopped.set()
    thread.join()
    assert losses == [loop()]
    assert tb_gradflow.open_log(tmp_path / recorder.names[0]).steps == (0,)


@pytest.mark.parametrize("is_own", [False, True], ids=["", "own callback"])
def test_a_training_does_not_wait_for_a_step_whose_thread_waits_for_it(
    is_own: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that starts a thread after its loop, in the same function, and joins it."""
    monkeypatch.setattr(observers, "PATIENCE", 0.2)
    losses: list[list[float]] = []

    def then(*callbacks: keras.callbacks.Callback) -> None:
        thread = threading.Thread(target=lambda: losses.append(fit(*callbacks)))
        thread.start()
        thread.join()

    alone = loop(then)
    recorder = Recorded(lambda: str(tmp_path / "run"), {"update_freq": 1})
    recorder.start()
    callbacks = [tb_gradflow.GradFlowCallback(tmp_path / "run" / "net", update_freq=1)] if is_own else []
    try:
        recorded = loop(lambda: then(*callbacks))
    finally:
        recorder.stop()

    assert recorded == alone
    assert losses[0] == losses[1]
    assert tb_gradflow.open_log(tmp_path / "run" / "net").steps == (0, 1)
    assert tb_gradflow.open_log(tmp_path / "run" / recorder.names[0]).steps == (0,)


@pytest.mark.parametrize("run", [loop, in_a_pool])
def test_in_a_forked_process_nothing_is_replaced(run: Callable[[], float], tmp_path: Path) -> None:
    recorder = Recorded(lambda: str(tmp_path), {"update_freq": 1})
    recorder.start()
    try:
        run()
        child = os.fork()
        if child == 0:
            os._exit(0 if isinstance(vars(np)["sqrt"], np.ufunc) else 1)
        _, status = os.waitpid(child, 0)
    finally:
        recorder.stop()

    assert os.waitstatus_to_exitcode(status) == 0
    assert tb_gradflow.open_log(tmp_path / recorder.names[0]).steps == (0, 1)
