"""The TensorFlow versions that the recorder works with."""

from __future__ import annotations

import importlib.metadata
import re
import sys

OLDEST = (2, 16)


def require(version: str) -> None:
    """Raises ImportError if this version of TensorFlow is too old to be recorded."""
    if _is_before(version, OLDEST):
        oldest = ".".join(map(str, OLDEST))
        raise ImportError(
            f"tb_gradflow records with TensorFlow {oldest} or newer, and {version} is installed: "
            f'`pip install --upgrade "tensorflow>={oldest}"`. Logs can be read with any version.'
        )


def keras_version() -> str:
    """The version of Keras 3, which a program may not have imported; empty if it is not installed."""
    if "keras" in sys.modules:
        return str(sys.modules["keras"].__version__)
    try:
        return importlib.metadata.version("keras")
    except importlib.metadata.PackageNotFoundError:
        return ""


def _is_before(version: str, other: tuple[int, int]) -> bool:
    found = re.match(r"(\d+)\.(\d+)", version)
    return found is not None and tuple(map(int, found.groups())) < other
