"""Interface of the non-finite monitors, and the result they return."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from tb_gradflow.record.schema import GRADIENT_STATISTICS
from tb_gradflow.trace.protection.errors import Refused
from tb_gradflow.trace.protection.training import Execution
from tb_gradflow.trace.step.instrumented_step import InstrumentedStep
from tb_gradflow.trace.step.replicas import Measured

# For two compiled versions of a step that round differently.
_TOLERANCE = 1e-3


Again = Callable[[], Callable[..., Any]]
"""Compiles the instrumented step once more."""


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """The recorder's version of a step.

    Attributes:
        instrumented: The step, which has run before.
        function: What runs it, compiled as the user's own step is.
        again: Compiles it once more, to measure the forward pass as well.
    """

    instrumented: InstrumentedStep
    function: Callable[..., Any]
    again: Again


@dataclass(frozen=True, slots=True)
class CaughtStep:
    """The first step with a gradient that is not finite, run again.

    Attributes:
        values: The statistics that it measured.
        ago: Number of steps that have begun since then, including this one.
    """

    values: Measured
    ago: int


class NonfiniteMonitor(abc.ABC):
    """Runs the steps that are not recorded, and checks whether their gradients are finite."""

    def __init__(self) -> None:
        self._has_run = False

    @property
    @abc.abstractmethod
    def fault(self) -> Exception | None:
        """An exception of the monitor itself, not of the user's step; `None` while there is none."""

    def run(self, execution: Execution, /, *args: Any, **kwargs: Any) -> Any:
        """One step, or one execution of several steps: does exactly what the user's own does. The arguments are those
        of a watched step; those of an execution of `fit` are drawn for it.

        Raises `Refused` for an error at run time once a step has run, because then it is the user's error. Before that,
        its origin is not known.
        """
        try:
            results = self._run(execution, *args, **kwargs)
        except Exception as error:
            if not self._has_run or error is not execution.step_error:
                raise
            raise Refused(error) from None
        self._has_run = True
        return results

    @abc.abstractmethod
    def _run(self, execution: Execution, /, *args: Any, **kwargs: Any) -> Any:
        """Runs monitored steps, and keeps what is needed to run them again."""

    @abc.abstractmethod
    def settled(self) -> bool:
        """Whether a step that has run had a gradient that is not finite. Call it before anything else changes the
        model, such as a recorded step."""

    @abc.abstractmethod
    def caught_by_now(self) -> bool:
        """The same, for a call after every step: cheap, because it may answer some steps late."""

    @abc.abstractmethod
    def measure(self) -> CaughtStep | None:
        """Runs the caught step again and measures it; the training is left as it was. `None` if it may not run twice,
        or if it does something else the second time."""


def caught_step(measured: Measured, ago: int) -> CaughtStep | None:
    """The step with these statistics; `None` if all of them are finite, as in a step that drew other random numbers."""
    values = {name: value.numpy() for name, value in measured.items()}
    nonfinite = [GRADIENT_STATISTICS.index(column) for column in ("nan_count", "inf_count")]
    wrong = np.any(values["gradients"][:, nonfinite] > 0) or not np.all(np.isfinite(values["losses"]))
    return CaughtStep(values, ago) if wrong else None


def same(one: Any, other: Any) -> bool:
    """Whether two runs of a step returned the same numbers."""
    pairs = zip(_numbers(one), _numbers(other), strict=True)
    return all(np.allclose(a, b, _TOLERANCE, equal_nan=True) for a, b in pairs)


def _numbers(results: Any) -> Sequence[Any]:
    flat = [each for each in tf.nest.flatten(results, expand_composites=True) if isinstance(each, tf.Tensor)]
    return [each.numpy() for each in flat if each.dtype.is_floating]
