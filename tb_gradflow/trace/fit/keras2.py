"""The parts of a Keras 2 (tf_keras) model that the callback needs during `fit`; and which Keras a model belongs to."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any

import keras
import tensorflow as tf

from tb_gradflow.errors import SetupError
from tb_gradflow.trace.fit.keras3 import Fitting, version
from tb_gradflow.trace.graph.variables import Owned, Variables, has_weights, local
from tb_gradflow.trace.protection.foreign import suppressed


class LegacyFitting(Fitting):
    """A Keras 2 model, some of whose attributes have other names."""

    @property
    def keras(self) -> str:
        return version("tf_keras")

    @property
    def steps_per_execution(self) -> int:
        count = self._model._steps_per_execution
        return 1 if count is None else int(count.numpy())

    def variables(self) -> Variables:
        model = self._model

        held: dict[int, str] | None = None

        def owned() -> Iterator[Owned]:
            nonlocal held
            if not has_weights(model):
                return
            trainable = {id(variable) for variable in model.trainable_variables}
            if held is None and len(trainable) < len(model.variables):
                held = {}
                with suppressed():  # the attributes of a user's layer may do anything
                    held = _held(model)
            for variable in model.variables:
                raw = local(variable)
                # The vocabulary of a TextVectorization is listed too: it is kept in a table, not in a variable.
                if isinstance(raw, tf.Variable):
                    yield Owned(
                        raw,
                        _path(variable),
                        id(variable) in trainable,
                        tracked=True,
                        held="" if id(variable) in trainable else (held or {}).get(id(variable), ""),
                    )

        def ignored() -> list[Any]:
            optimizers = [value for value in vars(model).values() if _is_legacy_optimizer(value)]
            slots = [variable for optimizer in optimizers for variable in _slots(optimizer)]
            totals = [variable for metric in model.metrics for variable in metric.variables]
            return [local(variable) for variable in (*slots, *totals, model._train_counter)]

        return Variables(owned, ignored)


_OF_LISTED_LAYERS = ("Functional", "Sequential")


def _held(model: Any) -> dict[int, str]:
    """The weights of trainable layers in a frozen model, by `id`, with its name. Freezing a model freezes its layers,
    so where some are trainable and others not, they were made trainable after that; layers that a class creates later
    may not have been there to be frozen."""
    found: dict[int, str] = {}
    for outer in model.submodules:
        if {each.__name__ for each in type(outer).__mro__}.isdisjoint(_OF_LISTED_LAYERS) or outer.trainable:
            continue
        inner = [each for each in outer.layers if each.weights]
        if len({each.trainable for each in inner}) == 2:
            found |= {id(each): outer.name for layer in inner if layer.trainable for each in layer.trainable_weights}
    return found


def check_backend(caller: str) -> None:
    """Raises SetupError if Keras uses a backend other than TensorFlow. `caller` is what the user called."""
    if keras.backend.backend() != "tensorflow":
        raise SetupError(
            f"{caller} works with TensorFlow, but Keras runs on {keras.backend.backend()}: set "
            'KERAS_BACKEND="tensorflow" before Keras is imported'
        )


def fitting(model: Any) -> Fitting:
    """For whichever Keras the model belongs to."""
    return (LegacyFitting if is_legacy(model) else Fitting)(model)


def is_legacy(model: Any) -> bool:
    """Whether a model is a Keras 2 model."""
    legacy = sys.modules.get("tf_keras")
    return legacy is not None and isinstance(model, legacy.Model)


def _path(variable: Any) -> str:
    return str(variable.name).removesuffix(":0")


def _is_legacy_optimizer(value: Any) -> bool:
    legacy = sys.modules["tf_keras"]
    return isinstance(value, (legacy.optimizers.Optimizer, legacy.optimizers.legacy.Optimizer))


def _slots(optimizer: Any) -> Iterable[Any]:
    variables = optimizer.variables
    listed: Iterable[Any] = variables() if callable(variables) else variables
    return listed
