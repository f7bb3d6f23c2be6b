"""Records `train_on_batch` with the callback of `fit`: each batch is a step of one long training."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tb_gradflow.trace.fit.train_function import owner
from tb_gradflow.trace.program.faults import report
from tb_gradflow.trace.protection.iterators import Kept, OneBatch, rerouted

_specs: dict[Any, Any] = {}
"""One type object for all batches of one kind, so that it is recognised quickly."""


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
        run, plain = model.train_function, recorder.plain
        if plain is not None and run is not plain and owner(model) is recorder:

            def choose(batches: Kept) -> tuple[Any, Any]:
                if hasattr(batches.source, "element_spec"):
                    return run, batches.source  # Keras 2 creates its own iterator
                batch = _one_batch(next(batches))
                # The type of plain Python values is not known in advance.
                return (plain, batches.again()) if batch is None else (run, batch)

            vars(model)["train_function"] = rerouted(plain, choose, report)

    def ended(self) -> None:
        """Called when the batch has been trained on, or an error has ended that."""
        if self.has_begun:
            self.has_begun = False
            self.recorder.on_train_batch_end(0)


def _one_batch(batch: Any) -> OneBatch | None:
    """A batch in the form in which `fit` passes it to the training function; None if that is not known."""
    flat = tf.nest.flatten(batch)
    if not all(each is None or isinstance(each, (np.ndarray, tf.Tensor)) for each in flat):
        return None
    tensors = [None if each is None else tf.convert_to_tensor(each) for each in flat]
    kind = tuple(None if each is None else (each.dtype, tuple(each.shape)) for each in tensors)
    whole = tf.nest.pack_sequence_as(batch, tensors)
    key = (kind, _structure(batch))
    if key not in _specs:
        _specs[key] = tf.nest.map_structure(
            lambda each: None if each is None else tf.TensorSpec(each.shape, each.dtype), whole
        )
    return OneBatch(whole, _specs[key])


def _structure(value: Any) -> Any:
    """The nesting of a batch."""
    if isinstance(value, dict):
        return tuple((key, _structure(each)) for key, each in sorted(value.items()))
    return tuple(map(_structure, value)) if isinstance(value, (list, tuple)) else None
