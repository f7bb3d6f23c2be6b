"""Tapes that can be asked again after they have answered: for the gradient of each term of a loss."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tensorflow.python.eager import imperative_grad, tape

from tb_gradflow.trace.tf_internals.patching import replaced


class Asked:
    """A request for a gradient, as TensorFlow prepared it, that can be repeated for other targets.

    Attributes:
        output_gradients: What the user gave in the place of ones, one for each target; null if nothing.
    """

    def __init__(self) -> None:
        self._tape: Any = None
        self._sources: Sequence[Any] = ()
        self._original: Callable[..., Any] | None = None
        self.output_gradients: Sequence[Any] | None = None

    @property
    def is_known(self) -> bool:
        """Whether a tape was asked at all."""
        return self._original is not None

    def note(
        self, original: Callable[..., Any], tape: Any, sources: Sequence[Any], output_gradients: Sequence[Any] | None
    ) -> None:
        """The first request is the user's; those inside of it are of custom gradients."""
        if self._original is None:
            self._original, self._tape = original, tape
            self._sources, self.output_gradients = list(sources), output_gradients

    def again(self, targets: Sequence[Any], output_gradients: Sequence[Any], count: int) -> list[Any]:
        """The gradients of other tensors that the tape has seen, for the first `count` of the same sources."""
        assert self._original is not None
        found: list[Any] = self._original(
            self._tape, list(targets), list(self._sources[:count]), output_gradients=list(output_gradients)
        )
        return found


@contextlib.contextmanager
def tapes_kept() -> Iterator[None]:
    """Tapes that are made while the context is open keep their records after an answer."""

    def keeping(original: Callable[..., Any]) -> Callable[..., Any]:
        def push_new_tape(persistent: bool = False, watch_accessed_variables: bool = True) -> Any:
            return original(persistent=True, watch_accessed_variables=watch_accessed_variables)

        return push_new_tape

    with contextlib.ExitStack() as undo:
        replaced(undo, tape, "push_new_tape", keeping)
        yield


@contextlib.contextmanager
def request_noted() -> Iterator[Asked]:
    """While the context is open, the first request for a gradient is noted."""
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
