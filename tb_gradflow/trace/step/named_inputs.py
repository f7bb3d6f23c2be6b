"""The floating tensors of the batch, by the names that the user has for them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute.values import DistributedValues

Named = Sequence[tuple[str, Any]]
"""Tensors and their names."""

NameInputs = Callable[[Sequence[Any], Mapping[str, Any]], Named]
"""Maps the arguments of a step to the tensors in them."""


def batch_of_keras(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Named:
    """For the single argument of `train_step`: `x`, `y` and `sample_weight`, or their parts."""
    import keras

    [data] = args or kwargs.values()
    try:
        parts = keras.utils.unpack_x_y_sample_weight(data)
    except ValueError:  # a dataset in the user's own form, for a custom train_step
        parts = ()
    return list(_floating(dict(zip(("x", "y", "sample_weight"), parts, strict=True)) if parts else {"data": data}))


def arguments_of(function: Callable[..., Any]) -> NameInputs:
    """For the arguments of `function`, by its parameters."""

    def named(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Named:
        try:
            given = inspect.signature(function).bind(*args, **kwargs).arguments
        except (TypeError, ValueError):  # a callable without a signature
            given = {**{f"argument {place}": value for place, value in enumerate(args)}, **kwargs}
        return list(_floating(given))

    return named


def arguments_of_parameters(names: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Named:
    """For arguments of a function whose parameters have these names."""
    return list(_floating({**dict(zip(names, args, strict=False)), **kwargs}))


def arguments_of_graph(graph: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """The arguments of a traced function, with the tensors that stand for them in its graph."""
    given: tuple[Sequence[Any], Mapping[str, Any]] = graph.structured_input_signature or ((), {})  # none: a loop's body
    tensors = iter(graph.inputs)

    def own(spec: Any) -> Any:
        if not isinstance(spec, tf.TypeSpec):
            return spec
        parts = [next(tensors) for _ in tf.nest.flatten(spec, expand_composites=True)]
        return tf.nest.pack_sequence_as(spec, parts, expand_composites=True)

    own_tensors: tuple[Sequence[Any], Mapping[str, Any]] = tf.nest.map_structure(own, given)
    return own_tensors


def part_of_replica(
    number: int | None, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Sequence[Any], dict[str, Any]]:
    """The arguments of one of this process's replicas, from those of the step that runs them; all if there
    are none."""

    def part(value: Any) -> Any:
        return value.values[number] if number is not None and isinstance(value, DistributedValues) else value

    parts: tuple[Sequence[Any], dict[str, Any]] = tf.nest.map_structure(part, (tuple(args), dict(kwargs)))
    return parts


def _floating(given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in given.items():
        yield from _parts(name, value)


def _parts(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _parts(f"{name}[{key!r}]", part)
    elif isinstance(value, (list, tuple)):
        for place, part in enumerate(value):
            yield from _parts(f"{name}[{place}]", part)
    elif isinstance(value, (tf.RaggedTensor, tf.SparseTensor)):
        yield from _parts(name, value.values)
    elif isinstance(value, tf.Tensor) and value.dtype.is_floating:
        yield name, value
