"""Converts numbers to what JSON can represent."""

from __future__ import annotations

import math
from typing import Any


def finite(value: Any) -> Any:
    """The same JSON value with null instead of NaN and infinities, which JSON cannot represent."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [finite(each) for each in value]
    return value
