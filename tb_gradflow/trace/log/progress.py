"""Says what is going on where something takes so long that people wonder."""

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
def told_if_long(what: str) -> Iterator[None]:
    """If the context is open for so long that people wonder, a line says `what`, and another one when it is over."""
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
