"""Gives variables the values that a program's first step would have given them, if it has raised instead: TensorFlow
creates them while it traces that step, and sets their values before it runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import keras

from tb_gradflow.trace.graph.variables import raw_variable


def give_first_values(model: Any) -> None:
    """To those variables of a Keras model, its metrics and its optimizers that have none: such as new layers,
    metrics and optimizers of the same configuration have. Others stay without."""
    for owner in _owners(model):
        if any(map(_is_empty, owner.variables)):
            with contextlib.suppress(Exception):  # a user's own class may have no configuration
                _fill(owner)


def _owners(model: Any) -> Iterator[Any]:
    layers = model._flatten_layers(include_self=False)
    yield from (each for each in layers if not list(each._flatten_layers(include_self=False)))
    yield from model.metrics
    yield from (each for each in vars(model).values() if isinstance(each, keras.optimizers.Optimizer))


def _fill(owner: Any) -> None:
    if isinstance(owner, keras.metrics.Metric):
        owner.reset_state()
        return
    new = type(owner).from_config(owner.get_config())
    if isinstance(owner, keras.optimizers.Optimizer):
        new.build(owner._trainable_variables)
    else:
        new.build_from_config(owner.get_build_config())
    for own, other in zip(owner.variables, new.variables, strict=True):
        if _is_empty(own):
            own.assign(other)


def _is_empty(variable: Any) -> bool:
    return not bool(raw_variable(variable).is_initialized())
