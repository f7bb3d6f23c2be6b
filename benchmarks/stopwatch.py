"""Times the steps of a training."""

from __future__ import annotations

import time
from typing import Any

import keras


class Stopwatch(keras.callbacks.Callback):
    """Seconds of each step; stands first, so that all other callbacks are inside what it measures."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._began = time.perf_counter()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.seconds.append(time.perf_counter() - self._began)
