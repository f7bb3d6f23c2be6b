"""Space on Python's stack for what a function calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

_Function = TypeVar("_Function", bound=Callable[..., object])

# The stack consists of chunks of 16 KiB, or of the power of two that the first frame in one needs: a frame of this many
# words (8 bytes each) takes a little more than half of a chunk of 512 KiB, which leaves space for a thousand others.
_WORDS = 33_000


def with_stack_space(function: _Function) -> _Function:
    """The same function, which must be a plain Python function, with space for the calls inside it.

    From Python 3.11 to 3.13, a call for which a chunk of the stack has no space maps another one, and unmaps it on
    return: where that happens in a loop, each call takes a hundred times as long. TensorFlow traces a step some hundred
    frames deep, and a few frames of the recorder around it shifted what is called at the end of a chunk: the trace of a
    ResNet50 took 39 s in place of 30, with half a million page faults in place of 210,000. With this it takes 34 s and
    126,000.
    """
    function.__code__ = function.__code__.replace(co_stacksize=_WORDS)
    return function
