"""The parts of a Keras 3 or Keras 2 (tf_keras) model that the callback needs during `fit`.

Both build a training function from `model.train_step`, keep it as `model.train_function` and read it again for each
batch. So another one is built where the step runs eagerly, and run in its place.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tb_gradflow.trace.graph.variables import Variables, local
from tb_gradflow.trace.step.instrumented_step import owned_variables
from tb_gradflow.trace.step.named_inputs import Named, batch_of_keras

STEP = "one_step_on_data"
"""Part of the name that Keras 3 gives the function of one step."""

TrainFunction = Callable[[Any], Any]
"""Called with an iterator."""

Around = Callable[[], contextlib.AbstractContextManager[None]]
"""Returns the context in which a training function runs."""


class Fitting:
    """A Keras 3 model while it is trained."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def is_of(self, model: Any) -> bool:
        """Whether it is this model."""
        return self._model is model

    @property
    def keras(self) -> str:
        """The version of its Keras."""
        return version("keras")

    @property
    def is_eager(self) -> bool:
        """Whether its steps are run eagerly."""
        return bool(self._model.run_eagerly) or tf.config.functions_run_eagerly()

    @property
    def strategy(self) -> Any:
        """The `tf.distribute.Strategy` that it is trained under."""
        return self._model.distribute_strategy

    @property
    def steps_per_execution(self) -> int:
        return int(self._model.steps_per_execution)

    def counter(self) -> Any:
        """The variable in which its optimizer counts the steps of an execution of several; None if nobody needs to."""
        optimizer = getattr(self._model, "optimizer", None)
        return local(optimizer.iterations) if optimizer is not None and self.steps_per_execution > 1 else None

    @property
    def iterations(self) -> int | None:
        """The number of steps of its optimizer; None without an optimizer."""
        optimizer = getattr(self._model, "optimizer", None)
        return int(local(optimizer.iterations).numpy()) if optimizer is not None else None

    @property
    def step(self) -> Callable[..., Any]:
        """Its training step, as Keras calls it."""
        step: Callable[..., Any] = self._model.train_step
        return step

    def variables(self) -> Variables:
        return owned_variables(self._model)

    def inputs(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Named:
        """The names of the arguments of a step."""
        return batch_of_keras(args, kwargs)

    def function_of(self, step: Callable[..., Any]) -> tuple[TrainFunction, Around]:
        """A training function that runs `step`, built as Keras builds the model's own, and the context to run it in."""
        step = tf.autograph.experimental.do_not_convert(step)
        model, plain = self._model, self._model.train_function
        compiled = getattr(model, "train_tf_function", None)
        try:
            with self._stepping(step):
                model.make_train_function(force=True)
            function = model.train_function
        finally:
            model.train_function = plain
            if compiled is not None:
                model.train_tf_function = compiled

        # Keras requests the model's step when it traces the function, in its first run or in a later one.
        return function, lambda: self._stepping(step)

    @contextlib.contextmanager
    def _stepping(self, step: Callable[..., Any]) -> Iterator[None]:
        # Bypasses Keras's own `__setattr__`, which would track it.
        attributes = vars(self._model)
        own = attributes.get("train_step")
        attributes["train_step"] = step
        try:
            yield
        finally:
            del attributes["train_step"]
            if own is not None:
                attributes["train_step"] = own


def version(package: str) -> str:
    """The version of a package that is loaded."""
    return str(sys.modules[package].__version__)
