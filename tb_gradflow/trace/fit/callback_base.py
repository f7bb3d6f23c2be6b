"""What a callback of both Keras 3 and Keras 2 is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import keras

if TYPE_CHECKING:  # Keras ships no types; this much of its class is used

    class _Callback:
        model: Any
        params: Mapping[str, Any]

        def set_model(self, model: Any) -> None: ...

else:
    _Callback = keras.callbacks.Callback


class KerasCallback(_Callback):
    """A callback that Keras 2, too, calls for each batch of a training, with tensors as they are."""

    _supports_tf_logs = True

    def _implements_train_batch_hooks(self) -> bool:
        return True

    def _implements_test_batch_hooks(self) -> bool:
        return False

    def _implements_predict_batch_hooks(self) -> bool:
        return False
