"""The places where a program keeps its variables: attributes, closures, dictionaries, lists.

A step that computes `self.w = self.w - rate * gradient` puts a tensor where the variable was, and from then on trains
nothing. That shows in the places, and they are put back after a look.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from tb_gradflow.trace.variables import raw_variable

# Deep enough for a list of layers in an attribute of a model in a closure.
_DEPTH = 6
_MOST_PLACES = 20_000


@dataclass(frozen=True, slots=True)
class _Place:
    """Something that holds a variable.

    Attributes:
        name: How code calls it, such as `self.w`.
        variable: The variable that it held.
        get: What it holds now.
        put: Puts something there.
    """

    name: str
    variable: Any
    get: Callable[[], Any]
    put: Callable[[Any], None]


class Bindings:
    """The places, as they are at construction, that can be reached from `roots` (functions, models)."""

    def __init__(self, roots: Sequence[Any]) -> None:
        self._places = list(_places(roots))

    @property
    def variables(self) -> list[Any]:
        """The variables found, each once."""
        return list({id(raw_variable(place.variable)): place.variable for place in self._places}.values())

    def rebound(self) -> dict[int, str]:
        """For each `tf.Variable`, by identity, that has lost its place to a tensor since: the place."""
        return {
            id(raw_variable(place.variable)): place.name
            for place in self._places
            if isinstance(_held(place), tf.Tensor)
        }

    def restore(self) -> None:
        """Puts the variables back."""
        for place in self._places:
            if _held(place) is not place.variable:
                place.put(place.variable)


def _held(place: _Place) -> Any:
    try:
        return place.get()
    except (KeyError, IndexError, AttributeError, ValueError):
        return None


def _places(roots: Sequence[Any]) -> Iterator[_Place]:
    seen: set[int] = set()
    level = list(roots)
    for _ in range(_DEPTH):
        following: list[Any] = []
        for holder in level:
            if id(holder) in seen or len(seen) > _MOST_PLACES:
                continue
            seen.add(id(holder))
            for place, value in _slots(holder):
                if isinstance(value, (tf.Variable, keras.Variable)):
                    yield place
                elif _may_hold(value):
                    following.append(value)
        level = following


def _slots(holder: Any) -> Iterator[tuple[_Place, Any]]:
    if isinstance(holder, types.MethodType):
        yield from _slots(holder.__func__)
        yield from _slots(holder.__self__)
    elif isinstance(holder, types.FunctionType):
        yield from _closure(holder)
        for name in holder.__code__.co_names:
            if name in holder.__globals__:
                yield _item(name, holder.__globals__, name)
    elif isinstance(holder, dict):
        for key in list(holder):
            yield _item(repr(key), holder, key)
    elif isinstance(holder, list):
        for index in range(len(holder)):
            yield _item(f"[{index}]", holder, index)
    elif isinstance(holder, tuple):
        for index, value in enumerate(holder):
            yield _Place(f"[{index}]", value, lambda value=value: value, lambda value: None), value  # type: ignore[misc]
    elif hasattr(holder, "__dict__"):
        for name in list(vars(holder)):
            yield _item(f"self.{name}", vars(holder), name)


def _closure(function: Any) -> Iterator[tuple[_Place, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            value = cell.cell_contents
        except ValueError:  # nothing in it yet
            continue

        def get(cell: Any = cell) -> Any:
            return cell.cell_contents

        def put(value: Any, cell: Any = cell) -> None:
            cell.cell_contents = value

        yield _Place(name, value, get, put), value


def _item(name: str, container: Any, key: Any) -> tuple[_Place, Any]:
    def get() -> Any:
        return container[key]

    def put(value: Any) -> None:
        container[key] = value

    return _Place(name, container[key], get, put), container[key]


def _may_hold(value: Any) -> bool:
    """Whether to look inside: the user's objects and Keras's, not TensorFlow's own nor whole modules."""
    if isinstance(value, (types.FunctionType, types.MethodType, dict, list, tuple)):
        return True
    if isinstance(value, (types.ModuleType, type, tf.Tensor, tf.Variable, keras.Variable)):
        return False
    return hasattr(value, "__dict__")
