"""Generators of random numbers that a program holds, those of NumPy and of Python: their states, and new ones."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)


def state_of(generator: Any) -> Any:
    """`None` if it has none, as that of the operating system."""
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    if isinstance(generator, np.random.RandomState):
        return generator.get_state()
    return None if isinstance(generator, random.SystemRandom) else generator.getstate()


def put_state(generator: Any, state: Any) -> None:
    """Lets it continue from a state."""
    if isinstance(generator, np.random.Generator):
        generator.bit_generator.state = state
    elif isinstance(generator, np.random.RandomState):
        generator.set_state(state)
    elif state is not None:
        generator.setstate(state)


def seed(generator: Any, number: int) -> None:
    """Lets it begin anew."""
    if isinstance(generator, np.random.Generator):
        generator.bit_generator.state = type(generator.bit_generator)(number).state
    else:
        generator.seed(number)
