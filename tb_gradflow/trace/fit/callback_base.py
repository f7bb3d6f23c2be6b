"""Base class of a callback for both Keras 3 and Keras 2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import keras

if TYPE_CHECKING:  # Keras has no types; this is the part of its class that is used

    class _Callback:
        model: Any
        params: Mapping[str, Any]

        def set_model(self, model: Any) -> None: ...

else:
    _Callback = keras.callbacks.Callback


class KerasCallback(_Callback):
    """A callback that Keras 2 also calls for each batch of a training, with tensors unchanged."""

    _supports_tf_logs = True

    def _implements_train_batch_hooks(self) -> bool:
        return True

    def _implements_test_batch_hooks(self) -> bool:
        return False

    def _implements_predict_batch_hooks(self) -> bool:
        return False
