"""Records each `fit` and `train_on_batch` of a Keras model, with a callback that the program need not pass."""

from __future__ import annotations

import functools
import inspect
import os
import random
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tb_gradflow.trace.program import eager_loops, hooks
from tb_gradflow.trace.program.recording import SHARE, Recording, keep_with, kept_with
from tb_gradflow.trace.protection.attention import end_what_is_over, is_inside, is_left_alone, left_alone
from tb_gradflow.trace.protection.faults import report, reported
from tb_gradflow.trace.protection.functions import protected

if TYPE_CHECKING:
    from tb_gradflow.trace.callback import GradFlowCallback


class Batches:
    """The calls of `train_on_batch` of one model: each batch is a step of one long training.

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


class _OfThread(threading.local):
    batches: Batches | None = None


_of_thread = _OfThread()

# Other methods of a model that use data: a gradient taken in one of them does not belong to a training.
_OTHERS = ("evaluate", "predict", "test_on_batch", "predict_on_batch")


def install(keras: Any) -> None:
    """Permanently replaces the functions with which a model of this Keras, 3 or 2, is trained."""
    if not _is_on_tensorflow(keras):
        return
    replacements = {"fit": _fitting, "train_on_batch": _training_on_batch, "make_train_function": _making}
    for name, wrap in {**replacements, **dict.fromkeys(_OTHERS, _alone)}.items():
        # The program may have replaced one of them in the subclass that Keras exports.
        owner = next((each for each in keras.Model.__mro__ if name in vars(each)), None)
        if owner is not None:
            setattr(owner, name, protected(vars(owner)[name], wrap, report))


def _is_on_tensorflow(keras: Any) -> bool:
    backend = getattr(getattr(keras, "backend", None), "backend", None)
    return backend is None or backend() == "tensorflow"


def _fitting(original: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def fit(self: Any, *args: Any, **kwargs: Any) -> Any:
        # A training that is longer than an eager step of another thread: its own first recorded step waits for that.
        end_what_is_over()
        recording = None if is_inside() else hooks.current()
        if recording is None or eager_loops.is_part_of_a_step():
            if recording is not None and (tape := eager_loops.open_tape()) is not None:
                recording.warn_once(_inside_a_tape(*tape))
            return original(self, *args, **kwargs)
        eager_loops.close()
        with left_alone():
            try:
                given = signature.bind(self, *args, **kwargs)
            except TypeError:  # for which the original has a better error
                return original(self, *args, **kwargs)
            callbacks = given.arguments.get("callbacks")
            known = _known(recording, self) if _may_record(callbacks) else None
            if known is None:
                return original(self, *args, **kwargs)
            recorder = known.recorder
            if hasattr(callbacks, "on_train_batch_begin") and hasattr(callbacks, "callbacks"):
                return _with_one_more(callbacks, recorder, self, lambda: original(self, *args, **kwargs))
            given.arguments["callbacks"] = [*_listed(callbacks), recorder]
            try:
                return original(*given.args, **given.kwargs)
            finally:
                recorder.flush()

    return fit


def _inside_a_tape(file: str, line: int) -> str:
    where = f"{os.path.basename(file)}:{line}"
    return (
        f"tb_gradflow does not record this `fit`: it runs while the tf.GradientTape of {where} is open, and belongs to "
        "that step. If it does not, leave the tape's `with` block first: a generator that was left in it keeps it open."
    )


def _with_one_more(listed: Any, recorder: Any, model: Any, fit: Callable[[], Any]) -> Any:
    """Keras uses an existing list of callbacks unchanged, and so does the program later."""
    recorder.set_params(getattr(listed, "params", None) or {})
    recorder.set_model(model)
    listed.callbacks.append(recorder)
    try:
        return fit()
    finally:
        listed.callbacks.remove(recorder)
        recorder.flush()


def _training_on_batch(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def train_on_batch(self: Any, *args: Any, **kwargs: Any) -> Any:
        recording = _recording()
        if recording is None or not tf.executing_eagerly():
            return original(self, *args, **kwargs)
        eager_loops.close()
        with left_alone():
            batches = _known(recording, self)
            if batches is None:
                return original(self, *args, **kwargs)
            before, _of_thread.batches = _of_thread.batches, batches
            try:
                return original(self, *args, **kwargs)
            finally:
                _of_thread.batches = before
                batches.ended()

    return train_on_batch


def _making(original: Callable[..., Any]) -> Callable[..., Any]:
    """Keras calls this before each batch, after the model is built."""

    @functools.wraps(original)
    def make_train_function(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = original(self, *args, **kwargs)
        batches = _of_thread.batches
        if batches is None or batches.model is not self or batches.has_begun:
            return made
        if made is not None:  # Keras 2 assigns the result
            self.train_function = made
        batches.begun()
        return made if made is None else self.train_function

    return make_train_function


def _alone(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def run(*args: Any, **kwargs: Any) -> Any:
        if _recording() is None:
            return original(*args, **kwargs)
        eager_loops.close()
        with left_alone():
            return original(*args, **kwargs)

    return run


def _recording() -> Recording | None:
    return None if is_left_alone() or eager_loops.is_part_of_a_step() else hooks.current()


def _may_record(callbacks: Any) -> bool:
    listed = _listed(getattr(callbacks, "callbacks", callbacks))
    return not any(isinstance(each, _callback_class()) for each in listed)


def _listed(callbacks: Any) -> list[Any]:
    if callbacks is None:
        return []
    return list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks]


def _known(recording: Recording, model: Any) -> Batches | None:
    """The model with its recorder; None if there can be none."""
    kept = kept_with(model, recording)
    if kept is None:
        kept = keep_with(model, recording, None)
        with reported():
            place = recording.begin(str(getattr(model, "name", None) or type(model).__name__))
            if place is not None:
                recorder = _callback_class()(place.log_dir, **recording.options)
                recorder.share = SHARE
                kept.value = Batches(model, recorder)
                recording.keeps(kept.value.recorder)
    found: Batches | None = kept.value
    return found


def _callback_class() -> type[GradFlowCallback]:
    """Imports Keras 3, which a program of Keras 2 may not have done: see `tb_gradflow.__getattr__`."""
    state = random.getstate()
    try:
        from tb_gradflow.trace.callback import GradFlowCallback

        return GradFlowCallback
    finally:
        random.setstate(state)
