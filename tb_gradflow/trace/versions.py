"""Which TensorFlow the recorder works with."""

from __future__ import annotations

import re

OLDEST = (2, 16)


def require(version: str) -> None:
    """Raises ImportError if this version of TensorFlow is too old to be recorded."""
    found = re.match(r"(\d+)\.(\d+)", version)
    if found is not None and tuple(map(int, found.groups())) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise ImportError(
            f"tb_gradflow records with TensorFlow {oldest} or newer, and {version} is installed: "
            f'`pip install --upgrade "tensorflow>={oldest}"`. Logs are read with any version.'
        )
