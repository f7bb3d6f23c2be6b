"""The part of `tb-gradflow run` inside of the program that it starts: it does nothing until the program imports
TensorFlow.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from tb_gradflow import tracebacks
from tb_gradflow.on_import import OnImport

# Whichever comes first loads the recorder.
_TENSORFLOW = ("tensorflow", "keras", "tf_keras")


def begin(told: Mapping[str, Any]) -> None:
    """Waits until TensorFlow is imported.

    Args:
        told: `log_dir`, the `options` of the recorder, and `manifest`: the file that lists the runs.
    """
    names = [*_TENSORFLOW, *_OWN]
    state: dict[str, Any] = {}

    def begins(name: str) -> None:
        if name in _TENSORFLOW:
            tracebacks.install()

    def imported(name: str) -> None:
        if "tensorflow" not in sys.modules:
            return
        try:
            if not state:
                state["program"] = _started(told)
            state["program"].hook(name)
        except Exception as error:  # a fault in the recorder must never reach the training
            _complain(error)

    OnImport(names, imported, begins).install()


_OWN = (
    "tb_gradflow.trace.watch",
    "tb_gradflow.trace.summaries",
    "tb_gradflow.trace.explain.one_step",
    "tb_gradflow.trace.explain.tensor_functions",
)


def _started(told: Mapping[str, Any]) -> Any:
    import atexit
    import json

    from tb_gradflow.trace.program import hooks
    from tb_gradflow.trace.program.recording import Recording

    def tell(name: str, is_there: bool) -> None:
        with open(told["manifest"], "a", encoding="utf-8") as manifest:
            manifest.write(json.dumps({"run": name, "is_there": is_there}) + "\n")

    hooks.start(Recording(told["log_dir"], told["options"], tell))
    atexit.register(hooks.stop)
    return hooks


def _complain(error: Exception) -> None:
    sys.stderr.write(
        f"tb-gradflow: this program is not recorded. Please report this: {type(error).__name__}: {error}\n"
    )
