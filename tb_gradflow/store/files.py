"""Files and directories that anybody may have put into a log directory: links in circles, pipes, devices."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from typing import BinaryIO


def walked(root: str) -> Iterator[tuple[str, list[str]]]:
    """Each directory at or below `root`, and the names of its files; what cannot be read is left out.

    Links are followed, but not around in circles. Below a link, no directory is visited twice through other links.
    """
    visited: set[str] = set()
    # With each directory, the directories of the links that lead to it.
    waiting: list[tuple[str, tuple[str, ...]]] = [(root, ())]
    while waiting:
        directory, links = waiting.pop()
        here = os.path.realpath(directory)
        names = []
        for entry in _entries(directory):
            if not _is_directory(entry):
                names.append(entry.name)
            elif not entry.is_symlink():
                waiting.append((entry.path, links))
            else:
                target = os.path.realpath(entry.path)
                is_circle = any(os.path.join(each, "").startswith(os.path.join(target, "")) for each in (*links, here))
                if not is_circle and not (links and target in visited):
                    visited.add(target)
                    waiting.append((entry.path, (*links, here)))
        yield directory, names


def _entries(directory: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as found:
            return sorted(found, key=lambda entry: entry.name)
    except OSError:
        return []


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def opened(path: str) -> BinaryIO:
    """A regular file, to read. Raises OSError for anything else: a pipe would be waited for, a device has no end."""
    return open(path, "rb", opener=_open_regular)


def _open_regular(path: str, flags: int) -> int:
    handle = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is not a regular file", path)
    return handle
