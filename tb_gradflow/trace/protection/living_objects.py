"""Finds functions, instances and holders among the objects of the process, without disturbing other threads.

Up to Python 3.13 (gh-127058), `gc.get_objects` also returns tuples that another thread is just filling. As long as
somebody else refers to such a tuple, it cannot be resized: `tuple(generator)` in that thread raises `SystemError: bad
argument to internal function`. So nothing here asks for all objects, and tuples are left out before any other thread
can run.

And nothing is collected meanwhile. `gc.get_referrers` walks the lists of the collector, and asks every object for what
it refers to. An eager tensor with attributes of its own makes its dictionary only then, up to Python 3.12, which may
start a collection. That moves the objects to another list, whose end the walk does not know: the process crashes.
"""

from __future__ import annotations

import builtins
import gc
from collections.abc import Iterator
from itertools import chain, filterfalse, starmap
from types import FunctionType
from typing import Any

from tb_gradflow.store.collecting import without_collections


def functions() -> list[FunctionType]:
    """All Python functions, except those of code that was executed with other builtins, such as `namedtuple`'s."""
    # Every function refers to its builtins. This type has no subclasses. `isinstance` would ask each object for its
    # `__class__`, which takes longer than everything else here.
    return [each for each in holders_of(vars(builtins)) if type(each) is FunctionType]


def instances_of(*kinds: type) -> Iterator[Any]:
    """The instances of classes that are written in Python, and of their subclasses."""
    # Every such instance refers to its class.
    known = {each for kind in kinds for each in _with_subclasses(kind)}
    yield from [each for each in holders_of(*known) if type(each) in known] if known else ()


def _with_subclasses(kind: type) -> Iterator[type]:
    yield kind
    subclasses: list[type] = type.__subclasses__(kind)
    for derived in subclasses:
        yield from _with_subclasses(derived)


def holders_of(*values: Any) -> list[Any]:
    """The objects that refer directly to one of these values, except for tuples."""
    # One call in C from the search to the list without tuples: between two bytecodes, another thread could run.
    with without_collections():
        return list(filterfalse(tuple.__instancecheck__, chain.from_iterable(starmap(gc.get_referrers, [values]))))


def closures_of(cell: Any) -> list[tuple[Any, ...]]:
    """The tuples that hold a variable of a closure. A tuple of cells is made at once, and never resized."""
    with without_collections():
        return [each for each in gc.get_referrers(cell) if type(each) is tuple]
