"""Errors that are the user's own, and come out of what the recorder does in the place of their step."""

from __future__ import annotations


class Refused(Exception):
    """The user's own step raised, or their data while they were read.

    Attributes:
        own: What it raised.
    """

    def __init__(self, own: BaseException) -> None:
        super().__init__(str(own))
        self.own = own
