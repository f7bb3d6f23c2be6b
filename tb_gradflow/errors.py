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
    """Anything that this package raises on purpose."""


class LogError(GradFlowError):
    """The log cannot be read: there is none, it is damaged, or it holds something else."""


class NewerLogError(LogError):
    """The log was written in a format that this version does not know yet."""


class DamagedRecord(LogError):
    """One record of a log is not what it should be: the text names it, and what in it is wrong."""


class SetupError(GradFlowError, ValueError):
    """Arguments that are wrong, or a directory that cannot be written: told before any training."""


class UnhealthyGradients(GradFlowError, AssertionError):
    """The text of a report that was asserted to be healthy and is not."""


class IncorrectGradients(GradFlowError, AssertionError):
    """The text of a check of gradients that were asserted to be correct and are not."""
