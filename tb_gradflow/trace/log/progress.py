"""Logs what the recorder is doing if it takes unusually long."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterator

_LOGGER = logging.getLogger("tb_gradflow")

PATIENCE = 2.0
"""Seconds."""


@contextlib.contextmanager
def told_if_long(what: str = "compiling the recorded step (once)") -> Iterator[None]:
    """If the context stays open long enough for users to wonder, a line says `what`, and another line follows when it
    is over.
    """
    patience = PATIENCE
    began = time.monotonic()
    timer = threading.Timer(patience, lambda: _LOGGER.warning("tb_gradflow: %s …", what))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        took = time.monotonic() - began
        if took > patience:
            _LOGGER.warning("tb_gradflow: %s took %.1f s.", what, took)
