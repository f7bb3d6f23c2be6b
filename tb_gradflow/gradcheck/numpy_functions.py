"""Functions of NumPy arrays, with a gradient that the user wrote, or took by finite differences."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tb_gradflow.errors import SetupError
from tb_gradflow.gradcheck.leaves import copied, gradients_by_argument, is_array, leaves, like, named_leaves, replaced
from tb_gradflow.gradcheck.problem import Argument, Array, Point, Problem, not_compared

Function = Callable[..., Any]


class NumpyFunction:
    """A function of arrays, whose random numbers are the same in each call.

    Args:
        function: Returns a number, or a number and the gradient, as `scipy.optimize` takes it with `jac=True`.
        args: The point.
        gradient: Takes the same arguments and returns the gradient; `None` if the function returns it, or if there is
            none.
    """

    def __init__(self, function: Function, args: Sequence[Any], gradient: Function | None) -> None:
        self._function, self._args, self._gradient = function, tuple(args), gradient
        self._leaves = named_leaves(args, is_array)
        self._state = random.getstate(), np.random.get_state()
        found = self._called(copied(args))
        self.returns_gradient = _is_pair(found) and gradient is None
        if (count := np.size(found[0] if self.returns_gradient else found)) != 1:
            raise SetupError(
                f"check_gradients: the function returns {count} values, but a gradient needs a single one: return "
                f"their sum, or one of them"
            )

    def problem(self, *, without_gradient: bool) -> Problem:
        """The gradient to check. Raises SetupError if there is none, unless that is intended."""
        has_gradient = self._gradient is not None or self.returns_gradient
        if not has_gradient and not without_gradient:
            raise SetupError(
                "check_gradients: the function does not return a tensor, so no tape can differentiate it: pass your "
                "own gradient, `gradient=f`, or the step of your finite differences, `step=1e-4`"
            )
        if not self._leaves:
            raise SetupError(
                "check_gradients: `args` contains no floating-point numbers, arrays or lists of them; pass a complex "
                "one as its real and imaginary part"
            )
        none: list[Array | None] = [None] * len(self._leaves)
        known = self._listed(self._gradient_at(copied(self._args))) if has_gradient else none
        if has_gradient and all(each is None for each in known):
            raise SetupError(
                "check_gradients: the gradient returned only None: it has no `return`, or returns too early"
            )
        arguments = [
            Argument(name, point, gradient, float(np.finfo(point.dtype).eps))
            for (name, leaf), gradient in zip(self._leaves, known, strict=True)
            if (point := np.asarray(leaf, getattr(leaf, "dtype", np.float64))).size
            if gradient is not None or not has_gradient
        ]
        self._checked = [argument.name for argument in arguments]
        left_out = [name for (name, _), gradient in zip(self._leaves, known, strict=True) if gradient is None]
        return Problem(self._value, arguments, tuple(map(not_compared, left_out)) if has_gradient else ())

    def gradients(self, points: Sequence[Array]) -> Sequence[Array]:
        """The gradient at another point."""
        names = [name for name, _ in self._leaves]
        listed = dict(zip(names, self._listed(self._gradient_at(self._at(points))), strict=True))
        found = ((listed[name], point) for name, point in zip(self._checked, points, strict=True))
        return [np.zeros(point.shape) if gradient is None else gradient for gradient, point in found]

    def _value(self, points: Sequence[Point]) -> float:
        found = self._called(self._at(points))
        found = found[0] if self.returns_gradient else found
        value = np.asarray(found, np.float64)
        return float(value.reshape(()))

    def _at(self, points: Sequence[Any]) -> tuple[Any, ...]:
        given = dict(zip(self._checked, points, strict=True))
        others = iter([like(leaf, np.asarray(given.get(name, leaf))) for name, leaf in self._leaves])
        return tuple(replaced(each, is_array, others) for each in self._args)

    def _called(self, args: tuple[Any, ...]) -> Any:
        with self._still():
            return self._function(*args)

    def _gradient_at(self, args: tuple[Any, ...]) -> list[Any]:
        if self._gradient is None:
            return gradients_by_argument(self._called(args)[1], args)
        with self._still():
            return gradients_by_argument(self._gradient(*args), args)

    def _listed(self, by_argument: Sequence[Any]) -> list[Array | None]:
        """The gradient of each leaf. That of a nested argument is nested like it."""
        listed: list[Array | None] = []
        for given, found in zip(self._args, by_argument, strict=True):
            own = list(leaves(given, is_array))
            if len(own) == 1 and own[0][0] == "":
                listed.append(None if found is None else np.asarray(found, np.float64))
                continue
            parts = dict(leaves(found, lambda value: is_array(value) or value is None)) if found is not None else {}
            listed += [None if parts.get(name) is None else np.asarray(parts[name], np.float64) for name, _ in own]
        return listed

    @contextlib.contextmanager
    def _still(self) -> Iterator[None]:
        before = random.getstate(), np.random.get_state()
        random.setstate(self._state[0])
        np.random.set_state(self._state[1])
        try:
            yield
        finally:
            random.setstate(before[0])
            np.random.set_state(before[1])


def _is_pair(value: Any) -> bool:
    """Whether a function returned a number and something else, its gradient."""
    return isinstance(value, tuple) and len(value) == 2 and np.ndim(value[0]) == 0 and not np.isscalar(value[1])
