"""Errors that a user can act on.

GradFlowError
├── LogError                 the log cannot be read
│   ├── NewerLogError        it was written by a newer tb-gradflow
│   └── DamagedRecord        one record of it is damaged; the others may be whole
├── SetupError               the recorder was given arguments that it cannot work with (a ValueError too)
├── UnhealthyGradients       a report is not healthy, and somebody asserted that it is (an AssertionError too)
└── IncorrectGradients       a gradient is not the derivative, and somebody asserted that it is (an AssertionError too)
"""

from __future__ import annotations


class GradFlowError(Exception):
    """Base class of everything that this package raises on purpose."""


class LogError(GradFlowError):
    """The log cannot be read: it is missing, damaged, or contains something else."""


class NewerLogError(LogError):
    """The log was written in a newer format, which this version does not know."""


class DamagedRecord(LogError):
    """One record of a log is not what it should be: the text names it, and what in it is wrong."""


class SetupError(GradFlowError, ValueError):
    """Invalid arguments, or a directory that cannot be written; raised before any training."""


class UnhealthyGradients(GradFlowError, AssertionError):
    """The report of a model that was asserted to be healthy and is not."""


class IncorrectGradients(GradFlowError, AssertionError):
    """The check of gradients that were asserted to be correct and are not."""
