"""Errors that a user can act on.

GradFlowError
├── LogError                 the log cannot be read
│   ├── NewerLogError        it was written by a newer tb-gradflow
│   └── DamagedRecord        one record of it is damaged; the others may be intact
├── SetupError               invalid arguments, or a directory that cannot be written (also a ValueError)
├── UnhealthyGradients       a report that was asserted to be healthy is not (also an AssertionError)
└── IncorrectGradients       a gradient that was asserted to be correct is not (also an AssertionError)
"""

from __future__ import annotations

from tb_gradflow.plain import clean


class GradFlowError(Exception):
    """Base class of the errors that this package raises on purpose."""


class LogError(GradFlowError):
    """The log cannot be read: it is missing, damaged, or contains something else."""

    def __init__(self, message: str) -> None:
        # Names from the log and of its files are in it, and a traceback prints it to a terminal.
        super().__init__(clean(message))


class NewerLogError(LogError):
    """The log was written in a newer format, which this version does not know."""


class DamagedRecord(LogError):
    """One record of a log is damaged: the message names the record and what is wrong with it."""


class SetupError(GradFlowError, ValueError):
    """Invalid arguments, or a directory that cannot be written; raised before any training."""


class UnhealthyGradients(GradFlowError, AssertionError):
    """The report of a model that was asserted to be healthy and is not."""


class IncorrectGradients(GradFlowError, AssertionError):
    """The check of gradients that were asserted to be correct and are not."""
