"""Text for a terminal: fitted to its width, in colour if it supports that. Knows nothing of reports."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from tb_gradflow.plain import clean, one_line

Role = Literal["error", "warning", "info", "good", "strong", "dim", "code"]

# Colours of the terminal's own palette, so that they fit its background; bold or dim where there is no hue.
_CODES: dict[Role, str] = {
    "error": "1;31",
    "warning": "1;33",
    "info": "1;34",
    "good": "1;32",
    "strong": "1",
    "dim": "2",
    "code": "36",
}

WIDTH = 100
"""Longer lines are hard to read, however wide the terminal."""
NARROWEST = 40

_QUOTED = re.compile(r"`[^`]+`")


@dataclass(frozen=True, slots=True)
class Look:
    """The appearance of text.

    Attributes:
        width: Columns.
        colour: Whether the reader's terminal shows colours.
    """

    width: int = WIDTH
    colour: bool = False

    def paint(self, text: str, role: Role) -> str:
        """One line in the colour of its role."""
        return f"\x1b[{_CODES[role]}m{text}\x1b[0m" if self.colour and text else text

    def prose(self, text: str, indent: str = "", first: str | None = None) -> list[str]:
        """Sentences wrapped into lines; text in backticks, which are kept, has the colour of code."""
        lines = self.wrapped(text, indent, first)
        if not self.colour:
            return lines
        return _QUOTED.sub(lambda quoted: self._each_line(quoted[0]), "\n".join(lines)).split("\n")

    def wrapped(self, text: str, indent: str = "", first: str | None = None) -> list[str]:
        """The same without colours. A word that is longer than a line is split."""
        return textwrap.wrap(
            clean(text),
            max(NARROWEST, self.width),
            initial_indent=indent if first is None else first,
            subsequent_indent=indent,
            break_on_hyphens=False,
        )

    def short(self, text: str, room: int) -> str:
        """A line that fits; if necessary, its middle is left out."""
        text = one_line(text)
        if len(text) <= room or room < 8:
            return text
        head = (room - 1) // 2
        return f"{text[:head]}…{text[len(text) - (room - 1 - head) :]}"

    def _each_line(self, quoted: str) -> str:
        parts = quoted.split("\n")
        indents = [part[: len(part) - len(part.lstrip())] for part in parts]
        return "\n".join(
            indent + self.paint(part.lstrip(), "code") for indent, part in zip(indents, parts, strict=True)
        )


class Printer(Protocol):
    """The part of IPython's printer that is used here."""

    def text(self, text: str, /) -> None: ...


def count(number: int, one: str, many: str | None = None) -> str:
    """`1 run`, `2 runs`."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def table(rows: Sequence[Sequence[str]], gap: str = "  ") -> list[list[str]]:
    """The same cells, padded to columns, except the last column."""
    widths = [max(map(len, column)) for column in zip(*(row[:-1] for row in rows), strict=True)]
    return [[*(f"{cell:<{width}}{gap}" for cell, width in zip(row, widths, strict=False)), row[-1]] for row in rows]
