"""Connects the recorder to TensorFlow's sessions."""

from __future__ import annotations

from typing import Any

from tb_gradflow.trace.protection.beside import Failed
from tb_gradflow.trace.sessions import bypasses, requests, runs
from tb_gradflow.trace.sessions.notes import note
from tb_gradflow.trace.sessions.runs import Current


def install(current: Current, failed: Failed) -> None:
    """Permanently replaces the functions that build gradients in a graph, and that run it."""

    def noted(graph: Any, request: requests.Request) -> None:
        recording = current()
        if recording is not None:
            note(graph, recording, request)

    requests.install(lambda: current() is not None, noted, failed)
    runs.install(current, failed)
    bypasses.install(current, failed)
