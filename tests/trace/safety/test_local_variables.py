"""What a program may do with the variables of its own functions after these were read."""

from __future__ import annotations

import inspect
import sys
import weakref
from types import FrameType
from typing import Any

from tb_gradflow.trace.protection.local_variables import local_variables


class Value:
    """Something to which there are weak references."""


def here() -> FrameType:
    """The frame of the caller, which itself asks for none."""
    return sys._getframe(1)


def test_the_variables_of_a_function_are_read() -> None:
    one, two = 1, Value()

    read = local_variables(here())

    assert (read["one"], read["two"]) == (one, two)


def test_what_a_program_got_from_locals_stays_as_it_was() -> None:
    def training(rate: float) -> dict[str, Any]:
        config = locals()
        model = Value()
        local_variables(here())
        del model
        return config

    assert training(0.1) == {"rate": 0.1}


def test_what_a_program_got_from_its_frame_stays_as_it_was() -> None:
    def training(rate: float) -> dict[str, Any]:
        frame = inspect.currentframe()
        assert frame is not None
        config = inspect.getargvalues(frame).locals
        kept = dict(config)
        model = Value()
        local_variables(here())
        del frame, model
        return {name: value for name, value in config.items() if name not in kept}

    assert training(0.1) == {}


def test_a_deleted_variable_is_not_kept() -> None:
    value = Value()
    left = weakref.ref(value)

    read = local_variables(here())
    del value, read

    assert left() is None


def test_a_function_that_is_traced_keeps_its_variables() -> None:
    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        return trace

    def traced() -> list[int]:
        one, two = 1, 2
        local_variables(here())
        return [one, two]

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        kept = traced()
    finally:
        sys.settrace(before)

    assert kept == [1, 2]
