"""Which TensorFlow the recorder works with."""

from __future__ import annotations

import re

OLDEST = (2, 16)

OLDEST_WITH_REPLICAS = (2, 18)
"""With TensorFlow 2.16 a recorded step of replicas was seen to wait for ever."""


def require(version: str) -> None:
    """Raises ImportError if this version of TensorFlow is too old to be recorded."""
    if _is_before(version, OLDEST):
        oldest = ".".join(map(str, OLDEST))
        raise ImportError(
            f"tb_gradflow records with TensorFlow {oldest} or newer, and {version} is installed: "
            f'`pip install --upgrade "tensorflow>={oldest}"`. Logs are read with any version.'
        )


def replicas_unsupported(version: str) -> str | None:
    """Why steps of several replicas cannot be recorded with this version of TensorFlow; null if they can."""
    if not _is_before(version, OLDEST_WITH_REPLICAS):
        return None
    oldest = ".".join(map(str, OLDEST_WITH_REPLICAS))
    return (
        f"it has several replicas, which are recorded with TensorFlow {oldest} or newer, and {version} is installed: "
        f'`pip install --upgrade "tensorflow>={oldest}"`.'
    )


def _is_before(version: str, other: tuple[int, int]) -> bool:
    found = re.match(r"(\d+)\.(\d+)", version)
    return found is not None and tuple(map(int, found.groups())) < other
