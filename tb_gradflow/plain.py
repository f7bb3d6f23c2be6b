"""Names and code from a log, and names of files, as text that cannot control a terminal or a build server."""

from __future__ import annotations

import re

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
# Text that a build server interprets as a command at the beginning of a line; wrapping may put it there.
_COMMAND = re.compile(r"(?<!\S)(:|#)\1(?=[a-z\[])")


def clean(text: str) -> str:
    """Text without the characters with which a name could control a terminal or a build server, or change a line's
    direction.
    """
    return _COMMAND.sub(r"\1 \1", _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text))


def one_line(text: str) -> str:
    """The same for text in which a line break would start a line in someone else's format."""
    return clean(" ".join(text.split("\n")))


def text_of_path(path: str) -> str:
    """A path as text that can be written: bytes of it that are not UTF-8, for which Python has halves of surrogate
    pairs, are spelled out.
    """
    return path.encode("utf-8", "backslashreplace").decode()
