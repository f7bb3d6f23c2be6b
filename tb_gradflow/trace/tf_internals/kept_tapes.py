"""Tapes that can compute more gradients after `gradient`: those of the terms of a loss."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tensorflow.python import pywrap_tfe
from tensorflow.python.eager import backprop, imperative_grad, tape
from tensorflow.python.ops import array_ops, gradients_util

from tb_gradflow.trace.tf_internals.patching import replaced


class Asked:
    """A request for a gradient, as TensorFlow prepared it, that can be repeated for other targets.

    Attributes:
        output_gradients: The user's `output_gradients`, one for each target; None if there are none.
    """

    def __init__(self) -> None:
        self._tape: Any = None
        self._sources: Sequence[Any] = ()
        self._original: Callable[..., Any] | None = None
        self.output_gradients: Sequence[Any] | None = None

    @property
    def is_known(self) -> bool:
        """Whether a gradient was requested at all."""
        return self._original is not None

    def note(
        self, original: Callable[..., Any], tape: Any, sources: Sequence[Any], output_gradients: Sequence[Any] | None
    ) -> None:
        """The first request is the user's; those inside it belong to custom gradients."""
        if self._original is None:
            self._original, self._tape = original, tape
            self._sources, self.output_gradients = list(sources), output_gradients

    def again(
        self, targets: Sequence[Any], output_gradients: Sequence[Any], count: int, more: Sequence[Any] = ()
    ) -> list[Any]:
        """The gradients of other tensors that the tape has recorded, for the first `count` of the same sources, then
        for `more` tensors."""
        assert self._original is not None
        sources = [*self._sources[:count], *more]
        with _outputs_added():
            found: list[Any] = self._original(
                self._tape, list(targets), sources, output_gradients=list(output_gradients)
            )
        return found


_REWRITTEN = frozenset({"If", "StatelessIf", "Case", "StatelessCase", "While", "StatelessWhile"})
"""To differentiate a branch or a loop, TensorFlow adds the intermediate values of its body to its outputs."""


@contextlib.contextmanager
def _outputs_added() -> Iterator[None]:
    """While the context is open, branches and loops that were already differentiated can be differentiated again: they
    have more outputs, and loops more inputs, than when the tape recorded them, and the gradient of these is zero.
    """
    original = backprop._gradient_function

    def gradient_function(
        name: Any, attributes: Any, count: Any, inputs: Any, outputs: Any, gradients: Any, *rest: Any
    ) -> Any:
        if name in _REWRITTEN and hasattr(outputs[0], "op"):
            added = outputs[0].op.outputs[len(gradients) :]
            gradients = [*gradients, *(array_ops.zeros_like(each) for each in added)]
            # A loop also has more inputs, the lists of its intermediate values, which the tape does not know.
            return original(name, attributes, count, inputs, outputs, gradients, *rest)[: len(inputs)]
        return original(name, attributes, count, inputs, outputs, gradients, *rest)

    pywrap_tfe.TFE_Py_RegisterGradientFunction(gradient_function)
    try:
        yield
    finally:
        pywrap_tfe.TFE_Py_RegisterGradientFunction(original)


class _Open(threading.local):
    """The recording tapes of this thread, each with whether the user created it for a single `gradient` call."""

    def __init__(self) -> None:
        self.tapes: list[tuple[Any, bool]] = []


@contextlib.contextmanager
def tapes_kept() -> Iterator[None]:
    """Tapes that are created while the context is open keep their records after `gradient`.

    TensorFlow calls functions, branches and loops differently under a persistent tape. Here they are called as without
    this context.
    """
    single: list[Any] = []
    recording = _Open()

    def keeping(original: Callable[..., Any]) -> Callable[..., Any]:
        def push_new_tape(persistent: bool = False, watch_accessed_variables: bool = True) -> Any:
            made = original(persistent=True, watch_accessed_variables=watch_accessed_variables)
            if not persistent:
                single.append(made)
            recording.tapes.append((made, not persistent))
            return made

        return push_new_tape

    def pushing(original: Callable[..., Any]) -> Callable[..., Any]:
        def push_tape(pushed: Any) -> None:
            original(pushed)
            recording.tapes.append((pushed, any(pushed is each for each in single)))

        return push_tape

    def popping(original: Callable[..., Any]) -> Callable[..., Any]:
        def pop_tape(popped: Any) -> None:
            original(popped)
            recording.tapes[:] = [each for each in recording.tapes if each[0] is not popped]

        return pop_tape

    def telling(original: Callable[..., Any]) -> Callable[..., Any]:
        def PossibleTapeGradientTypes(tensors: Any) -> Any:  # noqa: N802 - TensorFlow's name
            found = original(tensors)
            if found != gradients_util.POSSIBLE_GRADIENT_TYPES_HIGHER_ORDER:
                return found
            watching = _watching(recording.tapes, lambda: bool(original(tensors)))
            is_single = len(watching) == 1 and watching[0]
            return gradients_util.POSSIBLE_GRADIENT_TYPES_FIRST_ORDER if is_single else found

        return PossibleTapeGradientTypes

    with contextlib.ExitStack() as undo:
        replaced(undo, tape, "push_new_tape", keeping)
        replaced(undo, tape, "push_tape", pushing)
        replaced(undo, tape, "pop_tape", popping)
        replaced(undo, gradients_util, "PossibleTapeGradientTypes", telling)
        yield


def _watching(tapes: Sequence[tuple[Any, bool]], asked: Callable[[], bool]) -> list[bool]:
    """For each of these tapes alone, whether it was created for a single `gradient` call. An unknown tape counts as
    persistent.
    """
    raw = [each._tape for each, _ in tapes]
    for each in raw:
        pywrap_tfe.TFE_Py_TapeSetRemove(each)
    found = [False] if asked() else []
    for each, (_, is_single) in zip(raw, tapes, strict=True):
        pywrap_tfe.TFE_Py_TapeSetAdd(each)
        if asked():
            found.append(is_single)
        pywrap_tfe.TFE_Py_TapeSetRemove(each)
    for each in raw:
        pywrap_tfe.TFE_Py_TapeSetAdd(each)
    return found


@contextlib.contextmanager
def request_noted() -> Iterator[Asked]:
    """While the context is open, the first request for a gradient is remembered."""
    asked = Asked()

    def noting(original: Callable[..., Any]) -> Callable[..., Any]:
        def imperative_grad(
            tape: Any, target: Any, sources: Any, output_gradients: Any = None, *rest: Any, **options: Any
        ) -> Any:
            asked.note(original, tape, sources, output_gradients)
            return original(tape, target, sources, output_gradients, *rest, **options)

        return imperative_grad

    with contextlib.ExitStack() as undo:
        replaced(undo, imperative_grad, "imperative_grad", noting)
        yield asked
