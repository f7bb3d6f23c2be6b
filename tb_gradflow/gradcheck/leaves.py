"""The arrays inside a function's arguments, at any depth, and the same arguments with other arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

IsLeaf = Callable[[Any], bool]


def is_number_list(value: Any) -> bool:
    """Whether a value is a list of numbers, of which some are floating: a vector, as Python has it."""
    if not isinstance(value, (list, tuple)) or not value:
        return False
    flat = all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in value)
    return flat and any(isinstance(each, float) for each in value)


def is_array(value: Any) -> bool:
    """Whether a value is a floating number, an array of them, or a list of them."""
    if isinstance(value, (float, np.floating)):
        return True
    return is_number_list(value) or (isinstance(value, np.ndarray) and np.issubdtype(value.dtype, np.floating))


def leaves(value: Any, is_leaf: IsLeaf, name: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves inside, with their positions: `['kernel']`, `[0]`."""
    if is_leaf(value):
        yield name, value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from leaves(part, is_leaf, f"{name}[{key!r}]")
    elif isinstance(value, (list, tuple)):
        for place, part in enumerate(value):
            yield from leaves(part, is_leaf, f"{name}[{place}]")


def replaced(value: Any, is_leaf: IsLeaf, others: Iterator[Any]) -> Any:
    """The same with the next of `others` instead of each leaf."""
    if is_leaf(value):
        return next(others)
    if isinstance(value, dict):
        return {key: replaced(part, is_leaf, others) for key, part in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(replaced(part, is_leaf, others) for part in value))
    if isinstance(value, (list, tuple)):
        return type(value)(replaced(part, is_leaf, others) for part in value)
    return value


def named_leaves(args: Sequence[Any], is_leaf: IsLeaf) -> list[tuple[str, Any]]:
    """The leaves of all arguments: `0`, `1['kernel']`."""
    return [(f"{place}{name}", leaf) for place, each in enumerate(args) for name, leaf in leaves(each, is_leaf)]


def copied(args: Sequence[Any]) -> tuple[Any, ...]:
    """The arguments with copies of their arrays, which a function may modify."""
    others = iter([like(leaf, np.asarray(leaf)) for _, leaf in named_leaves(args, is_array)])
    return tuple(replaced(each, is_array, others) for each in args)


def like(value: Any, array: Any) -> Any:
    """An array as the kind of thing that another value is: a list, a number of Python's, an array."""
    if isinstance(value, (list, tuple)):
        return type(value)(array.tolist())
    # NumPy scalars have separate types, and float64 is also a Python float.
    if isinstance(value, np.generic):
        return value.dtype.type(array)
    return float(array) if isinstance(value, float) else np.array(array, value.dtype)


def gradients_by_argument(found: Any, args: Sequence[Any]) -> list[Any]:
    """The result of a gradient function, one entry for each argument; `None` for those that it leaves out."""
    if len(args) > 1 and isinstance(found, (list, tuple)) and len(found) == len(args):
        return list(found)
    if len(args) == 1 and isinstance(found, tuple) and len(found) == 1:
        return list(found)
    return [found, *([None] * (len(args) - 1))]
