"""Which Keras the model in `fit` belongs to."""

from __future__ import annotations

import sys
from typing import Any

import keras

from tb_gradflow.errors import SetupError
from tb_gradflow.trace.fit.keras2 import LegacyFitting, is_legacy
from tb_gradflow.trace.fit.keras3 import Fitting


def check_backend() -> None:
    """Raises SetupError if Keras uses a backend other than TensorFlow."""
    # A program that imports Keras 2 trains with it, whatever backend Keras 3 has.
    if keras.backend.backend() != "tensorflow" and "tf_keras" not in sys.modules:
        raise SetupError(
            f"GradFlowCallback records TensorFlow, but Keras runs on {keras.backend.backend()}: set "
            'KERAS_BACKEND="tensorflow" before Keras is imported'
        )


def fitting(model: Any) -> Fitting:
    """For whichever Keras the model belongs to."""
    return (LegacyFitting if is_legacy(model) else Fitting)(model)
