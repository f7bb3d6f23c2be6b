"""What Keras 2 asks of a callback, and Keras 3 does not."""

from __future__ import annotations


class LegacyHooks:
    """Answers that make Keras 2 call a callback for each batch of a training, with tensors as they are."""

    _supports_tf_logs = True

    def _implements_train_batch_hooks(self) -> bool:
        return True

    def _implements_test_batch_hooks(self) -> bool:
        return False

    def _implements_predict_batch_hooks(self) -> bool:
        return False
