"""What is known of a step whose gradient was not finite, once it has been run again."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from tb_gradflow.record.schema import GRADIENT_STATISTICS
from tb_gradflow.trace.own_errors import Refused, StepFailed
from tb_gradflow.trace.replicas import Measured

# Of two compiled versions of a step that round in other ways.
_TOLERANCE = 1e-3


@dataclass(frozen=True, slots=True)
class Caught:
    """The step.

    Attributes:
        values: What it measured.
        ago: How many steps have begun since it did, with itself.
    """

    values: Measured
    ago: int


class Guarding(abc.ABC):
    """Runs steps that are not recorded, with a look at their gradients."""

    def __init__(self) -> None:
        self._has_run = False

    @property
    @abc.abstractmethod
    def fault(self) -> Exception | None:
        """An exception that the guard itself is to blame for; null while there is none."""

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """A step, or an execution of several: does what the user's own does.

        Raises `Refused` for an error while it runs, if it has run before: it is the user's own. Whose any other is
        cannot be known.
        """
        try:
            results = self._run(*args, **kwargs)
        except (tf.errors.OpError, StepFailed) as error:
            if not self._has_run:
                raise
            raise Refused(error.error if isinstance(error, StepFailed) else error) from None
        self._has_run = True
        return results

    @abc.abstractmethod
    def _run(self, *args: Any, **kwargs: Any) -> Any:
        """Runs guarded steps, and keeps what it takes to run them again."""

    @abc.abstractmethod
    def settled(self) -> bool:
        """Whether a step that has run had a gradient that is not finite. To be asked before anything else changes the
        model, a recorded step among them."""

    @abc.abstractmethod
    def caught_by_now(self) -> bool:
        """The same, asked after every step and answered so seldom that it costs nothing: maybe some steps late."""

    @abc.abstractmethod
    def measure(self) -> Caught | None:
        """What the step that was caught measures when it is run again; the training is left as it was. Null if it may
        not be run again, or if it does not do the same then."""


def caught(measured: Measured, ago: int) -> Caught | None:
    """Null if everything that was measured is finite: a step that draws other random numbers."""
    values = {name: value.numpy() for name, value in measured.items()}
    nonfinite = [GRADIENT_STATISTICS.index(column) for column in ("nan_count", "inf_count")]
    wrong = np.any(values["gradients"][:, nonfinite] > 0) or not np.all(np.isfinite(values["losses"]))
    return Caught(values, ago) if wrong else None


def same(one: Any, other: Any) -> bool:
    """Whether two runs of a step have the same results, as far as they are numbers."""
    pairs = zip(_numbers(one), _numbers(other), strict=True)
    return all(np.allclose(a, b, _TOLERANCE, equal_nan=True) for a, b in pairs)


def _numbers(results: Any) -> Sequence[Any]:
    flat = [each for each in tf.nest.flatten(results, expand_composites=True) if isinstance(each, tf.Tensor)]
    return [each.numpy() for each in flat if each.dtype.is_floating]
