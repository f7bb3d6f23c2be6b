"""A bounded memory for things that never change and are slow to make."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Cache(Generic[Value]):
    """Keeps what was used last, up to a total cost.

    Safe to use from several threads; two that want the same thing at once make it once.
    """

    def __init__(self, limit: int, cost: Callable[[Value], int] = lambda value: 1) -> None:
        self._limit = limit
        self._cost = cost
        self._total = 0
        self._values: OrderedDict[Hashable, Value] = OrderedDict()
        self._making: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of `key`, made if it is not there. What `make` raises is not remembered."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
            making = self._making.setdefault(key, threading.Lock())
        with making:
            with self._lock:
                if key in self._values:
                    return self._values[key]
            try:
                value = make()
                self._put(key, value)
            finally:
                with self._lock:
                    self._making.pop(key, None)
        return value

    def _put(self, key: Hashable, value: Value) -> None:
        with self._lock:
            self._values[key] = value
            self._total += self._cost(value)
            while self._total > self._limit and len(self._values) > 1:
                _, dropped = self._values.popitem(last=False)
                self._total -= self._cost(dropped)
