"""Where a program keeps its variables and tensors: attributes, closures, lists."""

from __future__ import annotations

import gc
import types
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from tb_gradflow.trace.variables import Owned


def are_kin(tensor: Any, owned: Owned) -> bool:
    """Whether a tensor and a variable are attributes of one object, cells of one closure or items of one container; or
    the tensor is an item of such a container, as in a cache of the object."""
    return not _keepers(tensor, containers=_NESTED).isdisjoint(_keepers_of_variable(owned))


def attribute_of(tensor: Any, owned: Owned) -> str | None:
    """The attribute, as code calls it, that bears the variable's own name and holds a tensor of its shape; null if
    there is none."""
    own = owned.name.rpartition("/")[2].partition(":")[0]
    if tensor.shape != owned.variable.shape or tensor.dtype != owned.variable.dtype.base_dtype or not own:
        return None
    for names, is_object in _named_in(tensor):
        for name in names:
            if name.strip("_") == own.strip("_"):
                return f"self.{name}" if is_object else name
    return None


def name_of(tensor: Any) -> str | None:
    """What a tensor is called where it is kept; null if it is kept nowhere by a name."""
    for names, is_object in _named_in(tensor):
        for name in names:
            if name.isidentifier():
                return f"self.{name}" if is_object else name
    return None


def _named_in(value: Any) -> Iterator[tuple[list[str], bool]]:
    """The names that a value is kept under, and whether they are attributes of an object."""
    for holder in gc.get_referrers(value):
        if isinstance(holder, types.CellType):
            yield [name for name, cell in _closed_over(holder) if cell is holder], False
        elif isinstance(holder, dict):
            names = [name for name, each in holder.items() if each is value and isinstance(name, str)]
            yield names, names != [] and _is_plain_object(_owner(holder))
        elif _is_plain_object(holder):
            yield [name for name, each in vars(holder).items() if each is value], True


def _closed_over(cell: Any) -> Iterator[tuple[str, Any]]:
    for closure in gc.get_referrers(cell):
        if isinstance(closure, tuple):
            for function in gc.get_referrers(closure):
                if isinstance(function, types.FunctionType) and function.__closure__ is closure:
                    yield from zip(function.__code__.co_freevars, closure, strict=True)


def _keepers_of_variable(owned: Owned) -> set[int]:
    """Keepers of the variable, and of the Keras variable around it."""
    found = _keepers(owned.variable)
    for holder in gc.get_referrers(owned.variable):
        wrapper = _owner(holder)
        if getattr(wrapper, "_value", None) is owned.variable:
            found |= _keepers(wrapper)
    return found


# A cache, what TensorFlow wraps around it as an attribute of a module, and a list in it.
_NESTED = 3


def _keepers(value: Any, *, containers: int = 0) -> set[int]:
    """The objects, closures and containers that hold a value, by identity; and what holds those, so many containers
    far."""
    found: set[int] = set()
    for holder in gc.get_referrers(value):
        if isinstance(holder, types.CellType):
            found.update(id(each) for each in gc.get_referrers(holder) if isinstance(each, tuple))
        elif isinstance(holder, (dict, list)) or _is_plain_object(holder):
            owner = _owner(holder)
            if not isinstance(owner, types.ModuleType):
                found.add(id(owner))
            if containers and owner is holder and isinstance(holder, (dict, list)):
                found |= _keepers(holder, containers=containers - 1)
    return found


def _is_plain_object(holder: Any) -> bool:
    other = (types.ModuleType, types.FrameType, types.FunctionType, type, tf.Tensor, dict, list, tuple)
    return not isinstance(holder, other) and hasattr(holder, "__dict__")


def _owner(holder: Any) -> Any:
    """The object whose attributes a dictionary holds, or the holder itself."""
    if isinstance(holder, dict):
        for each in gc.get_referrers(holder):
            if getattr(each, "__dict__", None) is holder:
                return each
    return holder
