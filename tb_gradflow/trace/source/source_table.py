"""The lines of the user's code that a trace refers to, each once and by its number."""

from __future__ import annotations

from collections.abc import Sequence

from tb_gradflow.record.schema import Source
from tb_gradflow.trace.source.frames import Frame
from tb_gradflow.trace.source.user_line import in_log, origin_of


class SourceTable:
    """Lines of code. None are kept if `keep` is false."""

    def __init__(self, keep: bool) -> None:
        self.keep = keep
        self._index: dict[Source, int] = {}

    def of(self, frames: Sequence[Frame], op_type: str) -> tuple[int | None, str | None]:
        origin = origin_of(frames, op_type, keep_source=self.keep)
        if origin.source is None:
            return None, origin.api
        return self._index.setdefault(origin.source, len(self._index)), origin.api

    def place(self, source: Source | None) -> int | None:
        """The number of a line; null if there is none, or none is kept."""
        return self._index.setdefault(source, len(self._index)) if self.keep and source is not None else None

    @property
    def files(self) -> list[str]:
        """The files that the lines are in, each once."""
        return list(dict.fromkeys(source.file for source in self._index))

    def all(self) -> tuple[Source, ...]:
        return tuple(in_log(source) for source in self._index)
