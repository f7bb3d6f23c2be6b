"""The parts of a Keras 3 or Keras 2 (tf_keras) model that the callback needs during `fit`.

Both build a compiled training function from `model.train_step`, keep it as `model.train_function` and read it again for
each batch. So a second function is built, and run, while another step replaces the model's own.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf
from tensorflow.python.distribute import distribute_lib

from tb_gradflow.trace.fidelity.python_constants import TracedNumbers
from tb_gradflow.trace.fidelity.rng_sharing import RandomDraws, draws_of
from tb_gradflow.trace.fit.batch_step import StepOfBatch, StepsOfBatches
from tb_gradflow.trace.fit.keras_call import called_as_by_keras
from tb_gradflow.trace.fit.train_function import AsCompiled, keras_own, traced
from tb_gradflow.trace.graph.variables import Variables, local, raw_variable
from tb_gradflow.trace.protection.training import Execution
from tb_gradflow.trace.step.instrumented_step import owned_variables
from tb_gradflow.trace.step.named_inputs import Named, batch_of_keras

TrainFunction = Callable[[Any], Any]
"""Called with an iterator."""

Around = Callable[[], contextlib.AbstractContextManager[None]]
"""Returns the context in which a training function runs."""

OwnFunction = Callable[[Execution], Any]
"""A training function of the recorder: makes an execution instead of the model's own."""


class Fitting:
    """A Keras 3 model while it is trained.

    Args:
        model: The model.
        shows_graph: Whether Keras's TensorBoard callback is used too, which reads the graph of the model's own training
            function after the first step, whichever function ran it.
    """

    def __init__(self, model: Any, *, shows_graph: bool) -> None:
        self._model = model
        self.shows_graph = shows_graph

    @property
    def keras(self) -> str:
        """The version of its Keras."""
        return version("keras")

    @property
    def is_eager(self) -> bool:
        """Whether its steps are run eagerly."""
        return bool(self._model.run_eagerly) or tf.config.functions_run_eagerly()

    @property
    def is_for_xla(self) -> bool:
        """Whether XLA compiles its steps."""
        return bool(self._model.jit_compile)

    @property
    def strategy(self) -> Any:
        """The `tf.distribute.Strategy` that it is trained under."""
        return self._model.distribute_strategy

    @property
    def steps_per_execution(self) -> int:
        return int(self._model.steps_per_execution)

    @property
    def iterations(self) -> int | None:
        """The number of steps of its optimizer; None without an optimizer."""
        optimizer = getattr(self._model, "optimizer", None)
        return int(local(optimizer.iterations).numpy()) if optimizer is not None else None

    @property
    def learning_rate(self) -> Any:
        """The variable that holds it; None if a schedule or nothing does."""
        optimizer = getattr(self._model, "optimizer", None)
        rate = raw_variable(getattr(optimizer, "_learning_rate", None))
        return rate if isinstance(rate, tf.Variable) else None

    @property
    def state(self) -> Sequence[Any]:
        """The variables that its step is expected to change: its own, its optimizer's and its metrics'."""
        optimizer = getattr(self._model, "optimizer", None)
        of_metrics = [variable for metric in self._model.metrics for variable in metric.variables]
        of_optimizer = optimizer.variables if optimizer is not None else ()
        return [local(variable) for variable in (*self._model.variables, *of_optimizer, *of_metrics)]

    @property
    def counters(self) -> Sequence[Any]:
        """Variables that its training function changes outside of its step."""
        return ()

    @property
    def step(self) -> Callable[..., Any]:
        """Its training step, as Keras calls it."""
        step: Callable[..., Any] = self._model.train_step
        return step

    @property
    def step_as_traced(self) -> Callable[..., Any]:
        """The same as Keras traces it."""
        return self.step

    def build(self) -> None:
        """Creates the variables of its optimizer, as Keras does in the first step.

        TensorFlow traces a step twice if it creates variables. If the step is Keras's own, the variables that the
        optimizer will update are known in advance. With replicas Keras 3.6 and newer creates the optimizer's variables
        for all trainable variables; before that the first step does, if they are not known in advance.
        """
        optimizer = getattr(self._model, "optimizer", None)
        own_step = type(self._model).train_step is not keras.Model.train_step or "train_step" in vars(self._model)
        several = self.strategy.num_replicas_in_sync > 1
        if optimizer is None or optimizer.built or (own_step and not several):
            return
        weights = self._model.trainable_weights
        # A layer that is built by its first call creates variables that the optimizer would not know.
        if weights and all(layer.built for layer in self._model._flatten_layers()):
            with self.strategy.scope(), keras.name_scope(optimizer.name, caller=optimizer):
                optimizer.build(weights)
            optimizer.built = True

    @property
    def must_begin_alone(self) -> bool:
        """Whether its next step creates the variables of its optimizer with several replicas: a recorded step would
        fail at this.
        """
        optimizer = getattr(self._model, "optimizer", None)
        return self.strategy.num_replicas_in_sync > 1 and optimizer is not None and not optimizer.built

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

    def monitoring(self, step: Callable[..., Any], recorded: OwnFunction) -> OwnFunction:
        """A training function that runs `step`, which is monitored. Its batches are drawn for it where that is possible
        and takes no time; if it takes time, in the first run. `recorded` is the function that records."""
        if self.is_of_batches:
            return self.step_of_batch(step, recorded).on_next
        return self._drawn_for(self.function_of(step), most=1)

    def recording(self, step: Callable[..., Any], numbers: TracedNumbers, *, without_xla: bool = False) -> OwnFunction:
        """A training function that runs `step`, which records. Its batches are drawn in advance if that is possible.
        The step is traced with `numbers`. What is `without_xla` is compiled in seconds; not so where Keras draws the
        batches."""
        model = self._model
        of_batch = self.is_of_batches and not self.is_eager
        function = (
            self.step_of_batch(step, without_xla=without_xla, is_paired=True).on_next
            if of_batch
            else self._drawn_for(self.function_of(step), is_paired=True)
        )
        compiled, plain = getattr(model, "train_tf_function", None), model.train_function

        def run(execution: Execution) -> Any:
            result = function(execution)
            if self.shows_graph:
                with self._as_traced(numbers)():
                    _trace(compiled if compiled is not None else plain, execution.iterator)
            return result

        return run

    def as_compiled(self, numbers: TracedNumbers, failed: Callable[[Exception], None]) -> TrainFunction:
        """Its training function; if that was never traced, a replacement that traces it with `numbers`. `failed` is
        called with a fault of the replacement."""
        function: TrainFunction = self._model.train_function
        # Keras's TensorBoard callback looks at one of these; it was traced for that in the first step.
        is_looked_at = self.shows_graph and hasattr(function, "function_spec")
        if self.is_eager or is_looked_at or isinstance(function, AsCompiled) or any(traced(function)):
            return function
        stand_in = AsCompiled(function, self._as_traced(numbers), failed)
        self.freeze_as_now(stand_in)
        return stand_in

    def _as_traced(self, numbers: TracedNumbers) -> Around:
        """The context in which its training function traces the step with the numbers of its former traces."""
        return numbers.matched

    def freeze_as_now(self, stand_in: AsCompiled) -> None:
        """Has `stand_in` trace its function with the layers frozen that are frozen now."""
        stand_in.freeze_as_now(self._model)

    @property
    def is_of_batches(self) -> bool:
        """Whether its training function only runs its step on the next batch, on one device."""
        return self.steps_per_execution == 1 and self._is_keras_own

    def draws(self, *, is_monitored: bool) -> RandomDraws:
        """The positions of its steps in their random sequences. Without a monitor its own function runs between
        recorded steps.
        """
        function = keras_own(self._model.train_function)
        may_share = is_monitored and self.is_of_batches and not self.is_eager and not self.is_for_xla
        return draws_of(function, may_share=may_share, has_run=any(traced(function)))

    def _drawn_for(
        self, function: tuple[TrainFunction, Around], most: int | None = None, *, is_paired: bool = False
    ) -> OwnFunction:
        if not self._is_keras_own:
            most = 0
        return StepsOfBatches(*function, lambda: self.steps_per_execution, most, is_paired=is_paired)

    @property
    def _is_keras_own(self) -> bool:
        """Whether only Keras decides what its training function draws and does, on one device."""
        model = self._model
        return isinstance(self.strategy.extended, distribute_lib._DefaultDistributionExtended) and all(
            name not in vars(model) and getattr(type(model), name, None) is getattr(self._base, name, None)
            for name in ("make_train_function", "_make_function")
        )

    @property
    def _base(self) -> type:
        """The class of its Keras from which all models inherit."""
        base: type = keras.Model
        return base

    def step_of_batch(
        self,
        step: Callable[..., Any],
        whole: OwnFunction | None = None,
        *,
        without_xla: bool = False,
        is_paired: bool = False,
    ) -> StepOfBatch:
        """`step`, compiled like the function inside the model's training function that runs the model's own step.

        `whole` is what to run after the end of the data, and `is_paired` what it returns; see `StepOfBatch`.
        """

        # Not a lambda: TensorFlow leaves the user's lines out of an error in a function named `<lambda>`.
        def one_step_on_data(batch: Any) -> Any:
            return _returned(self.strategy.run(step, args=(batch,)))

        if self._model.jit_compile and not without_xla:
            # XLA does not sort by names.
            alone = tf.autograph.experimental.do_not_convert(one_step_on_data)
            function = tf.function(alone, reduce_retracing=True, jit_compile=self._model.jit_compile)
        else:
            function = called_as_by_keras(one_step_on_data, is_paired=is_paired)
        return StepOfBatch(function, whole, is_paired=is_paired)

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


def _returned(results: Any) -> Any:
    """The results of the user's step as Keras's function returns them: from 3.7 on with tensors for lists. A monitor
    adds its flag, in a tuple.
    """
    if type(results) is dict:
        return {name: _returned(each) for name, each in results.items()}
    if type(results) is tuple:
        return tuple(map(_returned, results))
    wraps_up = hasattr(keras.Model, "_make_function")
    return tf.convert_to_tensor(results) if isinstance(results, list) and wraps_up else results


def _trace(own: Any, iterator: Any) -> None:
    """Traces the model's own function, which its next run needs anyway."""
    if hasattr(own, "function_spec") and not hasattr(own, "_concrete_variable_creation_fn"):
        # An error in the user's own step is raised when it runs.
        with contextlib.suppress(Exception):
            own.get_concrete_function(iterator)


def version(package: str) -> str:
    """The version of a package that is loaded."""
    return str(sys.modules[package].__version__)
