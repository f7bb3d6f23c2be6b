"""The lines of the user's code that a trace refers to, each stored once and referred to by its number."""

from __future__ import annotations

import functools
import linecache
import sys
from collections.abc import Collection, Iterator, Sequence

from tb_gradflow.record.schema import Passage, Source
from tb_gradflow.trace.protection.living_objects import functions
from tb_gradflow.trace.source.frames import Frame, stack_now
from tb_gradflow.trace.source.functional_calls import line_of
from tb_gradflow.trace.source.passages import passages_of
from tb_gradflow.trace.source.user_line import in_log, is_users, origin_of, path_in_log, working_directory

_MOST_FILES = 50


class SourceTable:
    """Lines of code. None are kept if `keep` is false."""

    def __init__(self, keep: bool) -> None:
        self.keep = keep
        self._index: dict[Source, int] = {}
        self._built: dict[str, Source | None] = {}

    def of(self, frames: Sequence[Frame], op_type: str) -> tuple[int | None, str | None]:
        origin = origin_of(frames, op_type, keep_source=self.keep)
        source = origin.source
        if origin.is_layer and self.keep and origin.api is not None:
            if origin.api not in self._built:
                self._built[origin.api] = line_of(origin.api, _program())
            source = self._built[origin.api]
        return self.place(source), origin.api

    def place(self, source: Source | None) -> int | None:
        """The number of a line; None if there is none, or if none are kept."""
        return self._index.setdefault(source, len(self._index)) if self.keep and source is not None else None

    @property
    def files(self) -> list[str]:
        """The files of the lines, each once."""
        return list(dict.fromkeys(source.file for source in self._index))

    def all(self) -> tuple[Source, ...]:
        return tuple(in_log(source) for source in self._index)

    def passages(self, names: Collection[str], types: Collection[str]) -> tuple[Passage, ...]:
        """The passages for edits: from the files of the lines, and from the files that started the step.

        Args:
            names: The names of variables and layers of the trace.
            types: The classes of the layers.
        """
        if not self.keep:
            return ()
        lines: dict[str, set[int]] = {}
        for source in self._index:
            lines.setdefault(source.file, set()).add(source.line)
        for frame in stack_now():
            if is_users(frame.file):
                lines.setdefault(frame.file, set())
        # A model is often built in a separate module, whose lines do not appear in a step that consists of layers.
        for file in _program():
            if len(lines) < _MOST_FILES:
                lines.setdefault(file, set())
        shown = {file: path_in_log(file, working_directory()) for file in lines}
        # Outside of the working directory two files can have one name in the log: the one that the step comes from has
        # it, so that an edit finds one text.
        first = {name: file for file, name in reversed(shown.items())}
        return passages_of({file: lines[file] for file in first.values()}, names, types, shown)


def _program() -> tuple[str, ...]:
    """The files of the program."""
    # Every step of an eager loop asks, and to search all functions takes longer than the rest of its trace. A file that
    # has been run by its path since then is running now.
    running = frozenset(frame.file for frame in stack_now() if is_users(frame.file))
    return _searched(len(sys.modules), len(linecache.cache), running)


@functools.lru_cache(maxsize=1)
def _searched(_modules: int, _cached: int, _running: frozenset[str]) -> tuple[str, ...]:
    return tuple(file for file in dict.fromkeys(_all_files()) if is_users(file))


def _all_files() -> Iterator[str]:
    """The files of loaded modules, the cells of a notebook, and the files of functions without a module, such as a file
    that was run by its path.
    """
    # The latest first: of many modules, those are the ones that the program has just loaded.
    modules = reversed(list(sys.modules.values()))
    yield from [file for module in modules if (file := getattr(module, "__file__", None))]
    yield from list(linecache.cache)
    yield from dict.fromkeys(each.__code__.co_filename for each in functions())
