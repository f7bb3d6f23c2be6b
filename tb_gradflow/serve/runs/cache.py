"""A bounded cache for values that never change and are slow to compute."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Cache(Generic[Value]):
    """Keeps the most recently used values, up to a total cost.

    Thread-safe; if two threads need the same value at once, it is computed once.
    """

    def __init__(self, limit: int, cost: Callable[[Value], int] = lambda value: 1) -> None:
        self._limit = limit
        self._cost = cost
        self._total = 0
        self._values: OrderedDict[Hashable, Value] = OrderedDict()
        self._making: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()

    def find(self, key: Hashable) -> Value | None:
        """The value of `key`; None if it is missing."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of `key`, computed if it is missing. Exceptions of `make` are not remembered."""
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
