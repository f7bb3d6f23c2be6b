"""How a result shows itself: as text in a terminal and in a program, and in a notebook."""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from collections.abc import Iterator

from tb_gradflow.serve.terminal.text import Look, Printer


class Shown(ABC):
    """A result that is lines of text."""

    @abstractmethod
    def _lines(self, look: Look) -> Iterator[str]:
        """The lines."""

    def text(self, look: Look | None = None) -> str:
        """The result as text; without a look, as plain text of a common width."""
        return "\n".join(self._lines(look or Look()))

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        """The HTML that a notebook shows."""
        return f"<pre>{html.escape(self.text())}</pre>"

    def _repr_pretty_(self, printer: Printer, cycle: bool) -> None:
        """The text that IPython shows in a terminal, and a notebook that shows no HTML."""
        printer.text(self.text())
