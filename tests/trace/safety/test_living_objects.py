"""Searching the objects of the process: what is found, and that no other thread notices."""

from __future__ import annotations

import builtins
import gc
import itertools
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import pytest

from tb_gradflow.trace.protection.living_objects import closures_of, functions, holders_of, instances_of
from tests.serve.processes import environment


class Kind:
    pass


# `tests/conftest.py` hides from the collector what is made before the tests run.
@pytest.fixture
def value() -> Kind:
    return Kind()


def everything() -> list[Any]:
    return [each for each in gc.get_objects() if type(each) is FunctionType]


TENSORS_WITH_ATTRIBUTES = """\
import gc, tensorflow as tf
from tb_gradflow.trace.protection.living_objects import closures_of, functions
gc.disable()
tensors = [tf.constant(1.0) for _ in range(600)]
for tensor in tensors:
    tensor.mine = 1
gc.set_threshold(gc.get_count()[0] + 50)
gc.enable()
assert SEARCH
assert gc.isenabled()
"""


# Python 3.11.7 crashed here: see the module.
@pytest.mark.parametrize("search", ["functions()", "closures_of(tensors) == []"])
def test_tensors_that_allocate_while_they_are_visited(search: str) -> None:
    code = TENSORS_WITH_ATTRIBUTES.replace("SEARCH", search)

    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(tensorflow=True), capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr


def errors_of_a_thread_during(search: Callable[[Any], Any], value: Kind) -> list[SystemError]:
    """What a thread runs into that fills tuples from a generator while the search is run again and again, for half a
    second, or until something happens: as often as the objects of the process allow, but a few times at least."""
    errors: list[SystemError] = []
    is_over = threading.Event()

    def fill() -> None:
        while not is_over.is_set():
            try:
                tuple(value for _ in range(300))
            except SystemError as error:
                errors.append(error)

    thread = threading.Thread(target=fill)
    thread.start()
    try:
        end = time.monotonic() + 0.5
        for number in itertools.count():
            search(value)
            if errors or (number >= 5 and time.monotonic() > end):
                break
    finally:
        is_over.set()
        thread.join()
    return errors


@pytest.fixture(autouse=True)
def _threads_that_alternate_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize(
    "search",
    [lambda _: functions(), lambda _: list(instances_of(Kind)), holders_of],
    ids=["functions", "instances", "holders"],
)
def test_a_thread_that_fills_tuples_notices_nothing(search: Callable[[Any], Any], value: Kind) -> None:
    assert errors_of_a_thread_during(search, value) == []


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="fixed in CPython 3.14 (gh-127058)")
@pytest.mark.parametrize("search", [lambda _: everything(), gc.get_referrers], ids=["all objects", "referrers"])
def test_other_searches_would_break_that_thread(search: Callable[[Any], Any], value: Kind) -> None:
    assert errors_of_a_thread_during(search, value) != []


def test_all_functions_are_found() -> None:
    def inner() -> None:
        pass

    found = {id(each) for each in functions()}

    assert id(inner) in found
    assert id(inner) in found
    assert found == {id(each) for each in everything() if getattr(each, "__builtins__", None) is vars(builtins)}


def test_the_instances_of_a_class_are_found() -> None:
    class Base:
        pass

    class Derived(Base):
        pass

    one, other = Base(), Derived()

    found = list(instances_of(Base))

    assert sorted(map(id, found)) == sorted([id(one), id(other)])


def test_the_holders_of_an_object_are_found(value: Kind) -> None:
    kept = {"place": value}
    inside = (value, value)

    def closing() -> Any:
        return value, inside

    (cell,) = [each for each in closing.__closure__ or () if each.cell_contents is value]

    found = holders_of(value)

    assert any(each is kept for each in found)
    assert any(each is cell for each in found)
    assert not any(isinstance(each, tuple) for each in found)
    assert any(each is closing.__closure__ for each in closures_of(cell))
