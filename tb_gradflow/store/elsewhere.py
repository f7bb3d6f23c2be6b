"""Logs on another filesystem, such as gs://…: copied to this machine piece by piece, and read like local logs.

TensorBoard's `gfile` is TensorFlow's if that is installed; otherwise it reads s3://… with boto3, and other schemes with
fsspec. It is imported only for an address on another filesystem.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from typing import Any

from tb_gradflow.errors import LogError
from tb_gradflow.store.layout import PLUGIN, Tag

_PIECE = 2**20


def local_path(path: str) -> str:
    """The path of a `file://` address; anything else is unchanged."""
    return path.removeprefix("file://")


def is_elsewhere(path: str) -> bool:
    """Whether it is the address of another filesystem."""
    return "://" in path and not path.startswith("file://")


def files_below(root: str) -> Iterator[tuple[str, list[str]]]:
    """Each directory at or below an address, and the names of its files. Raises LogError if it cannot be read."""
    files = _gfile()
    try:
        if files.isdir(root):
            yield from ((directory.rstrip("/"), [*names]) for directory, _, names in files.walk(root))
            return
        # Raises if there is nothing, or if no package supports the scheme.
        files.stat(root)
    except Exception as error:  # each filesystem has its own exceptions
        if type(error).__name__ == "NotFoundError":
            raise LogError(f"{root} does not exist: expected the directory that was given to the recorder") from error
        raise _unreadable(root, error) from error
    raise LogError(f"{root} is a file: expected the directory that was given to the recorder")


def is_event_file(path: str) -> bool:
    """Whether a file is one of ours, or a file of a `tf.summary` writer that also contains our records."""
    name = path.rpartition("/")[2]
    return "tfevents" in name and (name.endswith(f".{PLUGIN}") or _mentions_us(path))


class Copy:
    """The event files of a remote directory, copied to a local directory for the lifetime of this object.

    Attributes:
        path: The local directory.
    """

    def __init__(self, address: str) -> None:
        self._address = address.rstrip("/")
        self._kept = tempfile.TemporaryDirectory(prefix="tb-gradflow-")
        self._sizes: dict[str, int] = {}
        self._foreign: dict[str, int] = {}
        self.path = self._kept.name

    def refresh(self) -> None:
        """Copies what was added since the last call. Raises LogError."""
        files = _gfile()
        try:
            for name in sorted(files.listdir(self._address)):
                path = f"{self._address}/{name}"
                size = files.stat(path).length
                if self._sizes.get(name) == size or self._foreign.get(name) == size:
                    continue
                if not is_event_file(path):
                    self._foreign[name] = size
                    continue
                self._bring(path, os.path.join(self.path, name))
                self._sizes[name] = size
        except LogError:
            raise
        except Exception as error:
            raise _unreadable(self._address, error) from error

    def _bring(self, path: str, local: str) -> None:
        # Positions in it stay valid: an event file only grows.
        with open(f"{local}.part", "wb") as copy:
            copy.writelines(_pieces(path))
        os.replace(f"{local}.part", local)


def _mentions_us(path: str) -> bool:
    sought = str(Tag("session", "", -1)).encode()
    before = b""
    for piece in _pieces(path):
        if sought in before + piece:
            return True
        before = piece[-len(sought) :]
    return False


def _pieces(path: str) -> Iterator[bytes]:
    try:
        with _gfile().GFile(path, "rb") as file:
            while piece := file.read(_PIECE):
                yield piece
    except Exception as error:
        raise _unreadable(path, error) from error


def _gfile() -> Any:
    from tensorboard.compat import tf

    return tf.io.gfile


def _unreadable(path: str, error: Exception) -> LogError:
    scheme = path.partition("://")[0]
    first = next(iter(str(error).splitlines()), "")
    return LogError(
        f"{path} cannot be read ({type(error).__name__}: {first}): reading {scheme}:// needs TensorFlow, or a "
        "package that TensorBoard can use (boto3 for s3://, fsspec for others); or copy the log to this machine"
    )
