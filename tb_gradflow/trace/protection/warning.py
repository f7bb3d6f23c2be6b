"""Warnings to the user of a training, which never end it."""

from __future__ import annotations

import warnings


def warn(message: str) -> None:
    """Shows a warning to the user of a training."""
    with warnings.catch_warnings():
        # If warnings are errors, this warning must not become one: it would end the training.
        warnings.simplefilter("default")
        warnings.warn(message, RuntimeWarning, stacklevel=3)
