"""Every way people train with Keras and with loops of their own: the recorded gradients are those of a tape that knows
nothing of the recorder, and the training is the one without it.

docs/matrix.md says which row each of these shows.
"""

from __future__ import annotations

import contextlib
import warnings
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow import GradFlowCallback
from tests.trace.matrix_loops import LOOPS
from tests.trace.matrix_models import KERAS, Training
from tests.trace.recording import Recorded, read

# What a tape in half precision, or a program that XLA has fused otherwise, may differ by.
_ROUNDED = {"mixed_bfloat16": 5e-2, "mixed_float16": 1e-2, "XLA": 1e-4}


def trained(name: str, *callbacks: Any) -> tuple[list[float], list[Any]]:
    made = fresh(name)
    history = made.model.fit(
        made.x, made.y, epochs=3, shuffle=False, verbose=0, callbacks=list(callbacks), **batched(made)
    )
    return history.history["loss"], [weight.numpy() for weight in made.model.weights]


def fresh(name: str) -> Training:
    keras.utils.clear_session(free_memory=False)
    keras.utils.set_random_seed(7)
    return KERAS[name]()


def batched(made: Training) -> dict[str, Any]:
    return {**made.fit, **({} if made.y is None else {"batch_size": 16})}


def by_a_tape(name: str) -> dict[str, float]:
    """Norms of the gradients of the first step, by variable."""
    made = fresh(name)
    x, y = next(iter(made.x)) if made.y is None else (made.x, made.y)
    x = tf.nest.map_structure(tf.convert_to_tensor, x) if made.y is not None else x
    with tf.GradientTape() as tape:
        weights = made.fit.get("sample_weight")
        y = tf.nest.map_structure(tf.convert_to_tensor, y)
        loss = made.model.compute_loss(x, y, made.model(x, training=True), weights)
    variables = made.model.trainable_variables
    gradients = tape.gradient(loss, [variable.value for variable in variables])
    dense = [tf.cast(tf.convert_to_tensor(gradient), tf.float64) for gradient in gradients]
    return {variable.path: float(tf.norm(each)) for variable, each in zip(variables, dense, strict=True)}


@pytest.mark.parametrize("name", KERAS)
def test_fit(name: str, tmp_path: Path) -> None:
    expected = by_a_tape(name)
    losses, weights = trained(name)

    recorded_losses, recorded_weights = trained(name, GradFlowCallback(tmp_path, update_freq=2))

    if name != "XLA":
        assert recorded_losses == losses
    for one, other in zip(weights, recorded_weights, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4 if name == "XLA" else 0)
    recorded = read(tmp_path)
    assert recorded.steps == (0, 2)
    assert expected
    tolerance = _ROUNDED.get(name, 1e-4)
    assert {path: recorded.gradient(path) for path in expected} == pytest.approx(expected, rel=tolerance, abs=1e-6)
    statuses = {path: each.status for path, each in tb_gradflow.open_log(tmp_path).report().variables.items()}
    assert {statuses[path] for path in expected} == {"connected"}, statuses


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_of_ones_own(name: str, tmp_path: Path) -> None:
    keras.utils.clear_session(free_memory=False)
    plain = LOOPS[name](tf.function)
    outputs = [float(plain.step()) for _ in range(3)]
    keras.utils.clear_session(free_memory=False)
    loop = LOOPS[name](tb_gradflow.watch(tmp_path, update_freq=2))
    expected = loop.expected()

    recorded_outputs = [float(loop.step()) for _ in range(3)]

    assert recorded_outputs == (pytest.approx(outputs, rel=1e-5) if "XLA" in name else outputs)
    loop.step.flush()
    recorded = read(tmp_path)
    assert recorded.steps == (0, 2)
    assert list(expected) == [target.name for target in recorded.trace.targets]
    for number, target in enumerate(expected.values()):
        found = {variable: norm_of(recorded, variable, number) for variable in target}
        assert found == pytest.approx(target, rel=1e-4, abs=1e-6)
    report = tb_gradflow.open_log(tmp_path).report()
    for variable in {variable for target in expected.values() for variable in target}:
        # The last bias of a critic cancels out.
        arrives = max(target.get(variable, 0.0) for target in expected.values()) > 1e-6
        assert report.variables[variable].status == ("connected" if arrives else "zero"), report


def norm_of(recorded: Recorded, variable: str, target: int) -> float:
    return recorded.gradient(variable, target=target)


@pytest.mark.parametrize("compile_again", [True, False], ids=["compiled again", "without compile"])
def test_layers_that_are_frozen_between_fits(compile_again: bool, tmp_path: Path) -> None:
    """Keras freezes a layer at the next `compile`, or at the next `fit`, as its version does: the log says which."""
    made = fresh("clipvalue")

    def fit(directory: Path) -> Any:
        before = made.model.get_layer("a").kernel.numpy()
        made.model.fit(made.x, made.y, batch_size=16, verbose=0, callbacks=[GradFlowCallback(directory, 1)])
        moved = bool((before != made.model.get_layer("a").kernel.numpy()).any())
        return moved, tb_gradflow.open_log(directory).report().variables["a/kernel"].status

    first = fit(tmp_path / "first")
    made.model.get_layer("a").trainable = False
    if compile_again:
        made.model.compile(keras.optimizers.SGD(0.05), "mse")
    with contextlib.nullcontext() if compile_again else warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        second = fit(tmp_path / "second")
    made.model.get_layer("a").trainable = True
    made.model.compile(keras.optimizers.SGD(0.05), "mse")
    third = fit(tmp_path / "third")

    assert first == third == (True, "connected")
    assert second in ((False, "frozen"), (True, "connected"))
    if compile_again:
        assert second == (False, "frozen")


def test_rows_of_an_embedding_that_no_token_names_get_no_gradient(tmp_path: Path) -> None:
    trained("embedding", GradFlowCallback(tmp_path, update_freq=1))
    made = fresh("embedding")

    recorded = read(tmp_path)

    unused = 1 - len(np.unique(made.x)) / 9
    assert recorded.gradient("table/embeddings", "zero_fraction") == pytest.approx(unused, abs=1e-6)
