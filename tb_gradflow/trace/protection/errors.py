"""Errors of the user's code that are raised while the recorder runs the user's step."""

from __future__ import annotations


class Refused(Exception):
    """The user's own step raised an error, or reading the data did.

    Attributes:
        own: The original error.
    """

    def __init__(self, own: BaseException) -> None:
        super().__init__(str(own))
        self.own = own
