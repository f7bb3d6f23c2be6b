"""The losses that an optimizer has multiplied with a scale, and what is made of them before it is differentiated."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

# A scaled loss goes through these where it is divided by a number of batches, or another term is added to it.
_HANDING_ON = frozenset(
    {"Identity", "Cast", "Reshape", "Squeeze", "Neg", "Mul", "RealDiv", "AddV2", "Add", "AddN", "Sub", "Sum", "Mean"}
)
_FAR = 64


class ScaledLosses:
    """Scaled losses of the step's graphs, and something that is known of each."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, str], tuple[Any, Any]] = {}

    def add(self, symbol: Any, known: Any) -> None:
        """A tensor of a graph, which is kept: an id names an object only while that lives."""
        self._known[_key(symbol)] = symbol, known

    def behind(self, symbols: Iterable[Any]) -> Any:
        """What is known of the scaled loss that one of these tensors is, or is made of; null if there is none."""
        pending, seen = list(symbols), set[tuple[int, str]]()
        while self._known and pending and len(seen) < _FAR:
            symbol = pending.pop(0)
            key = _key(symbol)
            if key in self._known:
                return self._known[key][1]
            if key not in seen and symbol.op.type in _HANDING_ON:
                seen.add(key)
                pending.extend(symbol.op.inputs)
        return None


def _key(symbol: Any) -> tuple[int, str]:
    return id(symbol.graph), symbol.name
