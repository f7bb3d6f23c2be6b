"""Records `train_on_batch` with the callback of `fit`: each batch is a step of one long training."""

from __future__ import annotations

from typing import Any


class Batches:
    """The calls of `train_on_batch` of one model.

    Attributes:
        model: The model.
        recorder: The callback that records it.
        has_begun: Whether a batch is being trained on.
        callbacks: The callbacks other than the recorder: none.
    """

    callbacks: tuple[Any, ...] = ()

    def __init__(self, model: Any, recorder: Any) -> None:
        self.model = model
        self.recorder = recorder
        self.has_begun = False
        self._refused: Any = None

    def begun(self) -> None:
        """Called when Keras has the model's training function and is about to call it."""
        self.has_begun = True
        recorder, model = self.recorder, self.model
        if not recorder.goes_on_with(model) and model.train_function is not self._refused:
            recorder.set_params({})
            recorder.set_model(model)
            recorder.on_train_begin()
            recorder.on_epoch_begin(0)
            self._refused = None if recorder.goes_on_with(model) else model.train_function
        recorder.on_train_batch_begin(0)

    def ended(self) -> None:
        """Called when the batch has been trained on, or an error has ended that."""
        if self.has_begun:
            self.has_begun = False
            self.recorder.on_train_batch_end(0)
