"""What clips gradients between the tape and the weights: functions that the step calls, and optimizers."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from tb_gradflow.analyse.graph.op_sets import SUMS
from tb_gradflow.trace.capture.optimizer_updates import Applied, CalledClip, Moved
from tb_gradflow.trace.capture.symbols import Symbols
from tb_gradflow.trace.numerics.fusion import elements_of
from tb_gradflow.trace.source.frames import Frame

CLIPPING = ("clip_by_global_norm", "clip_by_norm", "clip_by_value")
"""The functions of TensorFlow, in `tf` and in its modules for compatibility; Keras's `ops.clip` calls the last one."""

MODULES = (tf, tf.compat.v1, tf.compat.v2)

# A clipped gradient may still be cast, divided by a number, or added to another one, before it is applied.
_SAME, _FACTORS = {"Identity", "Cast", "Reshape"}, {"Mul", "RealDiv"}
_FAR = 64


class CalledClips:
    """The clips that a step calls after it has requested a gradient.

    Args:
        symbols: How the step's tensors relate to its graph.
    """

    def __init__(self, symbols: Symbols) -> None:
        self._symbols = symbols
        self._after: dict[Any, tuple[CalledClip, Any]] = {}

    def note(self, by: str, limit: Any, given: Any, result: Any, frames: Sequence[Frame]) -> None:
        """A function has clipped tensors, and has returned these."""
        pairs = [
            (one, other)
            for one, other in zip(map(elements_of, _listed(given)), map(elements_of, _listed(result)), strict=True)
            if tf.is_tensor(one) and tf.is_tensor(other) and self._symbols.knows(one) and self._symbols.knows(other)
        ]
        constant = tf.get_static_value(limit) if tf.is_tensor(limit) else limit
        number = float(constant) if np.size(constant) == 1 and isinstance(constant, (int, float, np.number)) else None
        if pairs:
            clip = CalledClip(by, number, tuple(one for one, _ in pairs), tuple(other for _, other in pairs), frames)
            for one, other in pairs:
                self._after[self._symbols.symbol(other).ref()] = clip, one

    def behind(self, gradient: Any) -> tuple[CalledClip, ...]:
        """Those that a gradient has passed, the last one first."""
        found: list[CalledClip] = []
        value = elements_of(gradient)
        pending = [self._symbols.symbol(value)] if self._after and self._symbols.knows(value) else []
        seen = set[Any]()
        while pending and len(seen) < _FAR:
            symbol = pending.pop(0)
            if symbol.ref() in seen:
                continue
            seen.add(symbol.ref())
            if symbol.ref() in self._after:
                clip, before = self._after[symbol.ref()]
                found += [] if clip in found else [clip]
                pending.append(self._symbols.symbol(before))
            else:
                pending.extend(_passed(symbol.op))
        return tuple(found)


def _passed(op: Any) -> Iterator[Any]:
    """The inputs of an op that are a gradient if its output is one."""
    if op.type in _SAME | SUMS:
        yield from op.inputs if op.type in SUMS else op.inputs[:1]
    elif op.type in _FACTORS and op.inputs[1].shape.rank == 0:
        yield op.inputs[0]
    elif op.type == "Mul" and op.inputs[0].shape.rank == 0:
        yield op.inputs[1]


def _listed(given: Any) -> list[Any]:
    return list(given) if isinstance(given, (list, tuple)) else [given]


def noted_by(name: str, here: Callable[[], Any]) -> Callable[[Any], Any]:
    """Lets the observer of the thread know of each call of a function of that name, one of `CLIPPING`."""

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(original)

        @functools.wraps(original)
        def clip(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if (look := here()) is not None:
                bound = signature.bind(*args, **kwargs)
                given, *limits = bound.arguments.values()
                limit = limits[1] if name == "clip_by_value" else limits[0]
                clipped = result[0] if name == "clip_by_global_norm" else result
                look.listener.clipped(f"tf.{name}", limit, given, clipped)
            return result

        return clip

    return wrap


@dataclass(frozen=True, slots=True)
class Clipping:
    """A clip whose effect is measured.

    Attributes:
        by: Its name, such as `clipnorm` or `tf.clip_by_norm`.
        limit: Its limit; `None` if that is not a constant.
        moved: The updates whose gradient it clips.
        called: The call; `None` if the optimizer clips.
        before: The tensors that it clips.
    """

    by: str
    limit: float | None
    moved: tuple[Moved, ...]
    called: CalledClip | None
    before: tuple[Any, ...]


def clippings_of(moved: Sequence[Moved]) -> list[Clipping]:
    """The clips in a step that makes these updates. What an optimizer clips is not known where it adds up gradients of
    several steps, or where it clips by the norm of all of them and updates some more than once."""
    called: dict[int, list[Moved]] = {}
    clips: dict[int, CalledClip] = {}
    applied: dict[int, list[Moved]] = {}
    for each in moved:
        for clip in each.given.clips:
            called.setdefault(id(clip), []).append(each)
            clips[id(clip)] = clip
        if each.applied.clip is not None and each.applied.optimizer.accumulates == 1:
            applied.setdefault(id(each.applied), []).append(each)
    found = [
        Clipping(clips[key].by, clips[key].limit, tuple(listed), clips[key], clips[key].before)
        for key, listed in called.items()
    ]
    for listed in applied.values():
        found += _by_optimizer(listed[0].applied, listed)
    return found


def _by_optimizer(applied: Applied, moved: Sequence[Moved]) -> Iterator[Clipping]:
    assert applied.clip is not None
    by, limit = applied.clip
    if by == "global_clipnorm":
        if len(moved) == len(applied.given):
            yield Clipping(by, limit, tuple(moved), None, tuple(elements_of(each.given.gradient) for each in moved))
        return
    for each in moved:
        yield Clipping(by, limit, (each,), None, (elements_of(each.given.gradient),))
