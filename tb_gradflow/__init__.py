"""See where the gradient goes in a TensorFlow or Keras model, and why it stops.

`import tb_gradflow` is cheap: it imports neither TensorFlow nor TensorBoard until a name is used that needs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tb_gradflow.api import explain, open_log
    from tb_gradflow.trace.callback import GradFlowCallback

__all__ = ["GradFlowCallback", "explain", "open_log"]


def __getattr__(name: str) -> Any:
    # TensorBoard imports this package to find the plugin; it must not pay for TensorFlow.
    if name == "GradFlowCallback":
        try:
            from tb_gradflow.trace.callback import GradFlowCallback
        except ModuleNotFoundError as missing:
            if missing.name and missing.name.partition(".")[0] in ("tensorflow", "keras"):
                raise ImportError(
                    f"GradFlowCallback records a training with TensorFlow, and {missing.name} is not installed: "
                    "`pip install tensorflow`, or `pip install tensorboard-plugin-gradflow[tensorflow]`"
                ) from missing
            raise
        return GradFlowCallback
    if name in ("explain", "open_log"):
        from tb_gradflow import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
