"""The places where a program keeps its variables and tensors: attributes, closures, dictionaries, lists.

A step that computes `self.w = self.w - rate * gradient` replaces the variable by a tensor, and from then on trains
nothing. The recorder detects this from these places, and restores them after a trial step.
"""

from __future__ import annotations

import functools
import gc
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import keras
import tensorflow as tf

from tb_gradflow.trace.fidelity.generators import GENERATORS
from tb_gradflow.trace.graph.variables import Owned, raw_variable
from tb_gradflow.trace.protection.living_objects import closures_of, holders_of

# Deep enough for a list of layers in an attribute of a model in a closure.
_DEPTH = 6
_MOST_PLACES = 20_000
_MOST_ENTRIES = 10_000
_MOST_VALUES = 100_000


@dataclass(frozen=True, slots=True)
class Binding:
    """Something that holds a value.

    Attributes:
        name: Its name in code, such as `self.w`.
        value: The original value.
        get: Returns the current value.
        put: Sets the value.
    """

    name: str
    value: Any
    get: Callable[[], Any]
    put: Callable[[Any], None]


class Bindings:
    """The places that can be reached from `roots` (functions, models), as they are at construction.

    Attributes:
        generators: The generators of random numbers there, each once.
    """

    def __init__(self, roots: Sequence[Any]) -> None:
        found = list(_places(roots))
        self._places = [place for place in found if not _is_a(place.value, GENERATORS)]
        drawing = [place.value for place in found if _is_a(place.value, GENERATORS)]
        self.generators = list({id(each): each for each in drawing}.values())

    @property
    def variables(self) -> list[Any]:
        """The variables found, each once."""
        return list({id(raw_variable(place.value)): place.value for place in self._places}.values())

    def rebound(self) -> dict[int, str]:
        """For each `tf.Variable`, by identity, that has since been replaced by a tensor: the place."""
        return {id(raw_variable(place.value)): place.name for place in self._places if _is_a(_held(place), tf.Tensor)}

    def restore(self) -> None:
        """Restores the variables."""
        for place in self._places:
            if _held(place) is not place.value:
                place.put(place.value)


def _held(place: Binding) -> Any:
    """The current value of a place; `None` if the place no longer exists."""
    try:
        return place.get()
    except (KeyError, IndexError, AttributeError, ValueError):
        return None


def _places(roots: Sequence[Any]) -> Iterator[Binding]:
    """The places of variables and of generators that can be reached from `roots`."""
    seen: set[int] = set()
    level = [each for root in roots for each in _parts(root)]
    for _ in range(_DEPTH):
        following: list[Any] = []
        for holder in level:
            if id(holder) in seen or len(seen) > _MOST_PLACES:
                continue
            seen.add(id(holder))
            for place in _slots(holder):
                if _is_a(place.value, (tf.Variable, keras.Variable, *GENERATORS)):
                    yield place
                elif _may_hold(place.value):
                    following.extend(_parts(place.value))
        level = following


def _parts(holder: Any) -> Sequence[Any]:
    return (holder.__func__, holder.__self__) if _is_a(holder, types.MethodType) else (holder,)


def _slots(holder: Any) -> Iterator[Binding]:
    """The places in `holder`. Empty for data: a container of ten thousand elements does not contain variables or
    settings."""
    if _is_a(holder, (dict, list, tuple)) and len(holder) > _MOST_ENTRIES:
        return
    if _is_a(holder, types.FunctionType):
        yield from _closure(holder)
        for name in holder.__code__.co_names:
            if name in holder.__globals__:
                yield _item(name, holder.__globals__, name)
    elif _is_a(holder, dict):
        for key in list(holder):
            yield _item(repr(key), holder, key)
    elif _is_a(holder, list):
        for index in range(len(holder)):
            yield _item(f"[{index}]", holder, index)
    elif _is_a(holder, tuple):
        for index, value in enumerate(holder):
            yield Binding(f"[{index}]", value, functools.partial(holder.__getitem__, index), _kept)
    elif _has_attributes(holder):
        for name in list(vars(holder)):
            yield _item(f"self.{name}", vars(holder), name)


def _kept(value: Any) -> None:
    """A tuple cannot be changed."""


def _closure(function: Any) -> Iterator[Binding]:
    """The variables that a function has from the functions around it."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            value = cell.cell_contents
        except ValueError:  # nothing in it yet
            continue

        def get(cell: Any = cell) -> Any:
            return cell.cell_contents

        def put(value: Any, cell: Any = cell) -> None:
            cell.cell_contents = value

        yield Binding(name, value, get, put)


def _item(name: str, container: Any, key: Any) -> Binding:
    def get() -> Any:
        return container[key]

    def put(value: Any) -> None:
        container[key] = value

    return Binding(name, container[key], get, put)


def _may_hold(value: Any) -> bool:
    """Whether to search inside: the user's objects and Keras's, but not TensorFlow's own or whole modules."""
    if _is_a(value, (types.FunctionType, types.MethodType, dict, list, tuple)):
        return True
    return not _is_a(value, (types.ModuleType, type, tf.Tensor)) and _has_attributes(value)


def kin_of(owned: Owned) -> set[int]:
    """The tensors, by identity, that are attributes of one object with a variable, cells of one closure or items of one
    container; or items of a container there, as in a cache of the object.
    """
    found, seen, level = set[int](), set[int](), _keepers_of_variable(owned)
    for _ in range(_NESTED + 1):
        following = []
        for value in chain.from_iterable(map(_values_in, level)):
            if id(value) in seen or len(seen) > _MOST_VALUES:
                continue
            seen.add(id(value))
            if _is_a(value, tf.Tensor):
                found.add(id(value))
            elif _is_a(value, (dict, list)):
                following.append(value)
        level = following
    return found


def attribute_of(tensor: Any, owned: Owned) -> str | None:
    """The attribute, as in code, that has the variable's own name and holds a tensor of its shape; None if there is
    none.
    """
    own = owned.name.rpartition("/")[2].partition(":")[0]
    if tensor.shape != owned.variable.shape or tensor.dtype != owned.variable.dtype.base_dtype or not own:
        return None
    for names, is_object in _named_in(tensor):
        for name in names:
            if name.strip("_") == own.strip("_"):
                return f"self.{name}" if is_object else name
    return None


def name_of(tensor: Any) -> str | None:
    """The name under which a tensor is kept; None if there is no such name."""
    for names, is_object in _named_in(tensor):
        for name in names:
            if name.isidentifier():
                return f"self.{name}" if is_object else name
    return None


def _named_in(value: Any) -> Iterator[tuple[list[str], bool]]:
    """The names under which a value is kept, and whether they are attributes of an object."""
    for holder in holders_of(value):
        if isinstance(holder, types.CellType):
            yield [name for name, cell in _closed_over(holder) if cell is holder], False
        elif isinstance(holder, dict):
            names = [name for name, each in holder.items() if each is value and isinstance(name, str)]
            yield names, names != [] and _is_plain_object(_owner(holder))
        elif _is_plain_object(holder):
            yield [name for name, each in vars(holder).items() if each is value], True


def _closed_over(cell: Any) -> Iterator[tuple[str, Any]]:
    for closure in closures_of(cell):
        for function in holders_of(closure):
            if isinstance(function, types.FunctionType) and function.__closure__ is closure:
                yield from zip(function.__code__.co_freevars, closure, strict=True)


def _keepers_of_variable(owned: Owned) -> list[Any]:
    """The holders of the variable, and of the Keras variable around it."""
    # A list of wrappers would be found as a holder of each.
    wrappers = tuple(
        wrapper
        for wrapper in map(_owner, holders_of(owned.variable))
        if getattr(wrapper, "_value", None) is owned.variable
    )
    found = [keeper for wrapper in wrappers for keeper in _keepers(wrapper)]
    found.extend(_keepers(owned.variable))
    return found


# A cache; TensorFlow's wrapper around it as an attribute of a module; and a list in it.
_NESTED = 3


def _keepers(value: Any) -> Iterator[Any]:
    """The objects, closures and containers that hold a value."""
    for holder in holders_of(value):
        if isinstance(holder, types.CellType):
            yield from closures_of(holder)
        elif isinstance(holder, (dict, list)) or _is_plain_object(holder):
            owner = _owner(holder)
            if not isinstance(owner, types.ModuleType):
                yield owner


def _values_in(holder: Any) -> Iterable[Any]:
    """What an object, a closure or a container holds. A container of ten thousand elements is data."""
    if isinstance(holder, tuple):
        return chain.from_iterable(map(gc.get_referents, holder))
    if isinstance(holder, (dict, list)):
        return gc.get_referents(holder) if len(holder) <= _MOST_ENTRIES else ()
    # Attributes are held by the dictionary, by the object (slots; from Python 3.13 on, all), or by both.
    return gc.get_referents(holder, vars(holder))


def _is_a(value: Any, kinds: Any) -> bool:
    try:
        return isinstance(value, kinds)
    except Exception:  # a proxy asks for its object, which may be gone; an object may answer any question with 0
        return False


def _has_attributes(value: Any) -> bool:
    try:
        return isinstance(vars(value), (dict, types.MappingProxyType))
    except Exception:  # as above
        return False


def _is_plain_object(holder: Any) -> bool:
    other = (types.ModuleType, types.FrameType, types.FunctionType, type, tf.Tensor, dict, list, tuple)
    return not _is_a(holder, other) and _has_attributes(holder)


def _owner(holder: Any) -> Any:
    """The object whose attributes a dictionary holds, or the holder itself."""
    if isinstance(holder, dict):
        for each in holders_of(holder):
            if getattr(each, "__dict__", None) is holder:
                return each
    return holder
