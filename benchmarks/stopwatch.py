"""Times the steps of a training."""

from __future__ import annotations

import time
from typing import Any

import keras


class Stopwatch(keras.callbacks.Callback):
    """Seconds of each step, from its beginning to that of the next one, or to the end of the epoch: what callbacks do
    behind a step belongs to it. Stands first, so that what they do in front of it does too.
    """

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []
        self._began: float | None = None

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        now = time.perf_counter()
        self._ended(now)
        self._began = now

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._ended(time.perf_counter())
        self._began = None

    def _ended(self, now: float) -> None:
        if self._began is not None:
            self.seconds.append(now - self._began)
