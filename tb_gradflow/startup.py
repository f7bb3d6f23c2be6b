"""The part of `tb-gradflow run` inside the program that it starts: it does nothing until the program imports
TensorFlow.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tb_gradflow import tracebacks
from tb_gradflow.recorded import Recorded


def begin(told: Mapping[str, Any]) -> None:
    """Waits until TensorFlow is imported.

    Args:
        told: `log_dir`, the `options` of the recorder, and `manifest`: the file that lists the runs, and what was
            seen.
    """

    def write(**line: Any) -> None:
        import json

        with open(told["manifest"], "a", encoding="utf-8") as manifest:
            manifest.write(json.dumps(line) + "\n")

    def tell(name: str, is_there: bool) -> None:
        write(run=name, is_there=is_there)

    def see(sentence: str) -> None:
        write(seen=sentence)

    def log_dir() -> str:
        # Registered here, once TensorFlow is being used: exit handlers run in reverse order, so this one runs before
        # those that TensorFlow has registered by now.
        import atexit

        atexit.register(recorded.stop)
        where: str = told["log_dir"]
        return where

    recorded = Recorded(log_dir, told["options"], tell=tell, see=see, begins=tracebacks.install)
    recorded.start()
