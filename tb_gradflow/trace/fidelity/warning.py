"""Warnings to the user of a training, which never end it."""

from __future__ import annotations

import warnings


def warn(message: str) -> None:
    """Tells the user of a training something in a warning."""
    with warnings.catch_warnings():
        # Where warnings are errors, this one must not become one: it would end the training.
        warnings.simplefilter("default")
        warnings.warn(message, RuntimeWarning, stacklevel=3)
