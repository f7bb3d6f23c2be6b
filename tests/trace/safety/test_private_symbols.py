"""What is replaced in TensorFlow and Keras is registered, and one that a new version has renamed is reported."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.trace.tf_internals import patching
from tb_gradflow.trace.tf_internals.private_symbols import SYMBOLS, Symbol, symbol_of

X = np.random.default_rng(0).normal(size=(24, 4)).astype("float32")
Y = X.sum(axis=1, keepdims=True)


def fit(directory: Path | None, *, eager: bool = False) -> list[Any]:
    """Losses and weights of a training, recorded if there is a directory."""
    keras.utils.set_random_seed(5)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, activation="tanh"), keras.layers.Dense(1)])
    model.compile("adam", "mse", run_eagerly=eager)
    callbacks = [] if directory is None else [tb_gradflow.GradFlowCallback(directory, update_freq=1, terms=True)]
    history = model.fit(X, Y, batch_size=8, epochs=1, verbose=0, shuffle=False, callbacks=callbacks)
    return [history.history["loss"], [weight.tolist() for weight in model.get_weights()]]


def explain(_: Path | None) -> list[Any]:
    """Whether a step could be explained, compiled and eagerly."""
    weight, shift = tf.Variable([1.0, -2.0, 0.5, 1.0]), tf.constant(0.5)

    def loss() -> Any:
        gate = tf.cond(weight[0] > 0, lambda: weight, lambda: -weight)
        return tf.reduce_mean((X * gate - shift) ** 2) + 0.1 * tf.reduce_sum(tf.abs(gate)) + float(np.float32(1.0))

    tb_gradflow.explain(loss, variables=[weight, shift])
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", run_eagerly=True)
    tb_gradflow.explain(model, X, Y)
    return [weight.numpy().tolist()]


def loop(directory: Path | None) -> list[Any]:
    """Losses and weights of a loop of one's own."""
    weight = tf.Variable([[1.0], [-2.0], [0.5], [1.0]])

    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ weight - y) ** 2)
        weight.assign_sub(0.1 * tape.gradient(loss, weight))
        return loss

    run = tf.function(step) if directory is None else tb_gradflow.watch(directory, update_freq=1)(step)
    return [[float(run(X, Y)) for _ in range(3)], weight.numpy().tolist()]


TRAININGS: dict[str, Callable[[Path | None], list[Any]]] = {
    "fit": fit,
    "eager fit": lambda directory: fit(directory, eager=True),
    "explain": explain,
    "loop": loop,
}


# Owner and name of a function that was to be replaced -> whether it was there each time.
Asked = dict[tuple[str, str], bool]


@pytest.fixture(scope="module")
def plain() -> dict[str, list[Any]]:
    """What the trainings end in without the recorder."""
    return {name: training(None) for name, training in TRAININGS.items()}


@pytest.fixture(autouse=True)
def reported_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patching, "_MISSING", {})


@contextlib.contextmanager
def renamed(symbol: Symbol, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if a new version had it under another name."""
    there = patching.is_there

    def is_there(owner: Any, name: str) -> bool:
        return there(owner, name) and symbol_of(patching.name_of_owner(owner), name) is not symbol

    with monkeypatch.context() as patch:
        patch.setattr(patching, "is_there", is_there)
        yield


@pytest.fixture(scope="module")
def asked_for(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Asked]:
    """By training, each function that was to be replaced in it."""
    found: dict[str, Asked] = {name: {} for name in TRAININGS}
    there = patching.is_there
    for training, asked in found.items():

        def noting(owner: Any, name: str, asked: Asked = asked) -> bool:
            is_there = there(owner, name)
            key = (patching.name_of_owner(owner), name)
            asked[key] = asked.get(key, True) and is_there
            return is_there

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(patching, "is_there", noting)
            TRAININGS[training](tmp_path_factory.mktemp("asked"))
    return found


@pytest.mark.parametrize("training", TRAININGS)
def test_what_is_replaced_is_registered(training: str, asked_for: dict[str, Asked]) -> None:
    assert asked_for[training]
    assert [each for each in sorted(asked_for[training]) if symbol_of(*each) is None] == []


def test_what_is_replaced_is_there(asked_for: dict[str, Asked]) -> None:
    """In the versions that are installed."""
    gone = {each for asked in asked_for.values() for each, is_there in asked.items() if not is_there}
    symbols = {each: symbol_of(*each) for each in gone}

    assert [".".join(each) for each, symbol in symbols.items() if symbol is None or not symbol.optional] == []


@pytest.mark.parametrize("symbol", SYMBOLS, ids=lambda symbol: f"{symbol.owner}.{symbol.name}")
def test_one_that_is_renamed_is_reported_and_training_goes_on(
    symbol: Symbol,
    plain: dict[str, list[Any]],
    asked_for: dict[str, Asked],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In each training that asks for it; the others do not notice."""
    asking = [name for name, asked in asked_for.items() if any(symbol_of(*each) is symbol for each in asked)]

    with warnings.catch_warnings(record=True) as caught, renamed(symbol, monkeypatch):
        warnings.simplefilter("always")
        recorded = {name: TRAININGS[name](tmp_path / name) for name in asking}

    assert recorded == {name: plain[name] for name in asking}
    told = [str(each.message) for each in caught if f"`{symbol.owner}." in str(each.message)]
    names = {text.partition("`")[2].partition("`")[0] for text in told}
    # Each is reported once; what no version has to have, and what another version of Keras has, is not missed.
    assert len(told) == len(names)
    if not symbol.optional and symbol.name not in ("_maybe_cast_inputs",):
        assert told
        assert all(symbol.lost in text for text in told)


def test_a_log_says_what_is_not_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scope = next(each for each in SYMBOLS if each.name == "_open_name_scope")

    with pytest.warns(RuntimeWarning, match="_open_name_scope"), renamed(scope, monkeypatch):
        fit(tmp_path)

    report = tb_gradflow.open_log(tmp_path).report()
    assert any("`Layer._open_name_scope` was not found" in sentence for sentence in report.diagnosis.unverified)
