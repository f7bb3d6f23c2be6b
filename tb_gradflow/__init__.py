"""See where the gradient goes in a TensorFlow or Keras model, and why it stops.

`import tb_gradflow` is cheap: it imports TensorFlow or TensorBoard only when a name that needs them is used.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tb_gradflow import summary
    from tb_gradflow.api import check_gradients, compare, explain, open_log
    from tb_gradflow.trace.callback import GradFlowCallback
    from tb_gradflow.trace.watch import watch

__all__ = ["GradFlowCallback", "check_gradients", "compare", "explain", "open_log", "summary", "watch"]


# The module of each public name, and whether it needs TensorFlow.
_HOMES = {
    "GradFlowCallback": ("tb_gradflow.trace.callback", True),
    "check_gradients": ("tb_gradflow.api", False),
    "compare": ("tb_gradflow.api", False),
    "explain": ("tb_gradflow.api", True),
    "open_log": ("tb_gradflow.api", False),
    "watch": ("tb_gradflow.trace.watch", True),
}


def __getattr__(name: str) -> Any:
    # TensorBoard imports this package to find the plugin; it must not pay for TensorFlow.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "summary":
        return importlib.import_module("tb_gradflow.summary")
    home, needs_tensorflow = _HOMES[name]
    # `check_gradients` of a function of tensors needs the recorder. For NumPy arrays TensorFlow stays unloaded.
    if needs_tensorflow or (name == "check_gradients" and "tensorflow" in sys.modules):
        _load_recorder(name)
    return getattr(importlib.import_module(home), name)


def _load_recorder(name: str) -> None:
    import random  # takes longer than the rest of this module

    # Importing Keras 3 draws numbers from Python's random sequence. A program of Keras 2 may not have imported Keras 3,
    # and Keras 2 takes the seeds of its initializers from the same sequence.
    state = random.getstate()
    try:
        importlib.import_module("tb_gradflow.trace.callback")
    except ModuleNotFoundError as missing:
        if missing.name and missing.name.partition(".")[0] in ("tensorflow", "keras"):
            raise ImportError(
                f"{name} needs TensorFlow, and {missing.name} is not installed: "
                "`pip install tensorflow`, or `pip install tensorboard-plugin-gradflow[tensorflow]`"
            ) from missing
        raise
    finally:
        random.setstate(state)


def load_ipython_extension(shell: Any) -> None:
    """Called by `%load_ext tb_gradflow` in a notebook: registers the magic `%%gradflow`."""
    importlib.import_module("tb_gradflow.notebook").load(shell)


def __dir__() -> list[str]:
    return sorted(__all__)
