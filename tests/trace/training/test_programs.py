"""Programs as people write them: the same training with the recorder as without, the gradients that a tape takes, and
no finding above a note, for nothing is wrong with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import tb_gradflow
from tb_gradflow import GradFlowCallback
from tests.trace.matrix_single import norms
from tests.trace.programs_of_others import PROGRAMS, STEPS, Program, batch, network
from tests.trace.recording import Recorded, data, read

# Half precision rounds as it is fused; XLA fuses another program otherwise.
_ROUNDED = {"half precision by hand": 2e-2, "layers of keras.ops under XLA": 1e-4}


def fresh(name: str) -> Program:
    keras.utils.clear_session(free_memory=False)
    # Keras 2 keeps a generator of its own once a test has set its seed; it sets those of Keras 3 too.
    tf_keras.utils.set_random_seed(7)
    keras.utils.set_random_seed(7)
    return PROGRAMS[name]()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program(name: str, tmp_path: Path) -> None:
    first = fresh(name)
    expected = {target: norms(loss, variables) for target, (loss, variables) in first.losses.items()}
    plain = fresh(name)
    losses = plain.train(None if plain.by_fit else compiled_like(name))
    recorded = fresh(name)

    recorder = GradFlowCallback if recorded.by_fit else tb_gradflow.watch
    recorded_losses = recorded.train(watching(name, recorder(tmp_path, update_freq=2)))

    close = 1e-4 if "XLA" in name else 0
    np.testing.assert_allclose(recorded_losses, losses, rtol=close)
    for one, other in zip(plain.state(), recorded.state(), strict=True):
        np.testing.assert_allclose(one, other, rtol=close)
    log = read(tmp_path)
    assert log.steps == tuple(range(0, STEPS, 2))
    tolerance = _ROUNDED.get(name, 1e-4)
    for target, found in expected.items():
        number = [each.name for each in log.trace.targets].index(target)
        assert {path: gradient_of(log, path, number) for path in found} == pytest.approx(found, rel=tolerance), target
    report = tb_gradflow.open_log(tmp_path).report()
    assert report.healthy, report
    assert not [finding for finding in report.findings if finding.severity in ("error", "warning")]


def gradient_of(log: Recorded, path: str, target: int) -> float:
    """Of the variable whose name ends so: a tape's variable does not say which model it is of."""
    names = [variable.name for variable in log.traces[0].variables]
    found = path if path in names else next(name for name in names if name.endswith(path))
    return log.gradient(found, target=target)


def compiled_like(name: str) -> Any:
    return lambda step: tf.function(step, reduce_retracing="many sizes" in name)


def watching(name: str, recorder: Any) -> Any:
    return recorder if isinstance(recorder, GradFlowCallback) else lambda step: recorder(compiled_like(name)(step))


def test_a_model_that_is_compiled_anew_between_two_fits(tmp_path: Path) -> None:
    """Another loss, another optimizer, a frozen layer: each log is of its own fit."""

    def trained(*directories: Path) -> Any:
        keras.utils.clear_session(free_memory=False)
        keras.utils.set_random_seed(7)
        model = network(6, 5, 2)
        found = []
        for number, (optimizer, loss, frozen) in enumerate([("sgd", "mse", False), ("adam", "mae", True)]):
            model.layers[0].trainable = not frozen
            model.compile(optimizer, loss)
            callbacks = [GradFlowCallback(directories[number], update_freq=1)] if directories else []
            history = model.fit(batch(*data(rows=16)), epochs=3, verbose=0, callbacks=callbacks)
            found.append(history.history["loss"])
        return found, [weight.numpy().tolist() for weight in model.weights]

    recorded = trained(tmp_path / "one", tmp_path / "two")

    assert recorded == trained()
    one, two = (tb_gradflow.open_log(tmp_path / name).report() for name in ("one", "two"))
    assert {each.status for each in one.variables.values()} == {"connected"}
    assert [each.status for each in two.variables.values()] == ["frozen", "frozen", "connected", "connected"]
    assert one.healthy
    assert two.healthy
