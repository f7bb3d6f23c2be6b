"""Leaves a program as if a step had never run."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tb_gradflow.trace.variables import raw_variable


@contextlib.contextmanager
def undone(state: Callable[[], list[Any]]) -> Iterator[None]:
    """Puts every variable of `state` back to what it was, and Python's and NumPy's generators too."""
    before = {id(raw_variable(variable)): raw_variable(variable).numpy() for variable in state()}
    python, numpy = random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        for variable in state():
            raw = raw_variable(variable)
            if id(raw) in before:
                raw.assign(before[id(raw)])
        random.setstate(python)
        np.random.set_state(numpy)
