"""What the callback needs of the model that `fit` trains, of Keras 3 or of Keras 2 (tf_keras).

Both build a compiled training function from `model.train_step`, keep it as `model.train_function` and read it anew for
each batch. So a second one is built, and run, while another step stands in the place of the model's own.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf
from tensorflow.python.distribute import distribute_lib

from tb_gradflow.errors import SetupError
from tb_gradflow.trace.inputs import Named, batch_of_keras
from tb_gradflow.trace.step import owned_variables
from tb_gradflow.trace.step_of_batch import StepOfBatch
from tb_gradflow.trace.variables import Owned, Variables, local, raw_variable

TrainFunction = Callable[[Any], Any]


class Fitting:
    """A model of Keras 3 while it is trained.

    Args:
        model: The model.
        shows_graph: Whether Keras's TensorBoard callback is there too, which takes the graph of the model's own
            training function as soon as a first step has run, whichever that was.
    """

    def __init__(self, model: Any, *, shows_graph: bool) -> None:
        self._model = model
        self.shows_graph = shows_graph

    @property
    def keras(self) -> str:
        """The version of its Keras."""
        return _version("keras")

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
        """How many steps its optimizer has made; null without an optimizer."""
        optimizer = getattr(self._model, "optimizer", None)
        return int(local(optimizer.iterations).numpy()) if optimizer is not None else None

    @property
    def learning_rate(self) -> Any:
        """The variable that holds it; null if a schedule or nothing does."""
        optimizer = getattr(self._model, "optimizer", None)
        rate = raw_variable(getattr(optimizer, "_learning_rate", None))
        return rate if isinstance(rate, tf.Variable) else None

    @property
    def counters(self) -> Sequence[Any]:
        """Variables that its training function changes outside of its step."""
        return ()

    @property
    def step(self) -> Callable[..., Any]:
        """Its training step, as Keras calls it."""
        step: Callable[..., Any] = self._model.train_step
        return step

    def build(self) -> None:
        """Makes the variables of its optimizer, as Keras does in the first step.

        A step that makes variables is traced twice by TensorFlow. What the optimizer is asked to update is known
        beforehand where the step is Keras's own. With replicas Keras itself makes those of all trainable variables,
        from 3.6 on; before that the first step does, where they are not known beforehand.
        """
        optimizer = getattr(self._model, "optimizer", None)
        own_step = type(self._model).train_step is not keras.Model.train_step or "train_step" in vars(self._model)
        several = self.strategy.num_replicas_in_sync > 1
        if optimizer is None or optimizer.built or (own_step and not several):
            return
        weights = self._model.trainable_weights
        # A layer that its first call builds makes variables that the optimizer would not know.
        if weights and all(layer.built for layer in self._model._flatten_layers()):
            with self.strategy.scope(), keras.name_scope(optimizer.name, caller=optimizer):
                optimizer.build(weights)
            optimizer.built = True

    @property
    def must_begin_alone(self) -> bool:
        """Whether its next step makes the variables of its optimizer with several replicas: a step that is recorded
        would fail at this."""
        optimizer = getattr(self._model, "optimizer", None)
        return self.strategy.num_replicas_in_sync > 1 and optimizer is not None and not optimizer.built

    def variables(self) -> Variables:
        return owned_variables(self._model)

    def inputs(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Named:
        """The names of what a step is given."""
        return batch_of_keras(args, kwargs)

    def function_of(self, step: Callable[..., Any]) -> TrainFunction:
        """A training function that runs `step`, built as Keras builds the model's own."""
        step = tf.autograph.experimental.do_not_convert(step)
        model, plain = self._model, self._model.train_function
        compiled = getattr(model, "train_tf_function", None)
        with self._stepping(step):
            model.make_train_function(force=True)
        function, model.train_function = model.train_function, plain
        if compiled is not None:
            model.train_tf_function = compiled

        def run(iterator: Any) -> Any:
            # Keras asks for the model's step when it traces the function, in its first run or in a later one.
            with self._stepping(step):
                result = function(iterator)
            if self.shows_graph:
                _trace(compiled if compiled is not None else plain, iterator)
            return result

        return run

    @property
    def is_of_batches(self) -> bool:
        """Whether its training function does nothing but run its step on the next batch, on one device."""
        model = self._model
        return (
            self.steps_per_execution == 1
            and isinstance(self.strategy.extended, distribute_lib._DefaultDistributionExtended)
            and all(
                name not in vars(model) and getattr(type(model), name, None) is getattr(keras.Model, name, None)
                for name in ("make_train_function", "_make_function")
            )
        )

    def step_of_batch(self, step: Callable[..., Any], whole: TrainFunction) -> StepOfBatch:
        """`step`, compiled as the function inside of the model's training function is that runs the model's own.

        `whole` is a training function that Keras has built; see `StepOfBatch`.
        """

        # Not a lambda: TensorFlow leaves the user's lines out of an error in a function that is called `<lambda>`.
        def one_step_on_data(batch: Any) -> Any:
            return _returned(self.strategy.run(step, args=(batch,)))

        alone = tf.autograph.experimental.do_not_convert(one_step_on_data)
        return StepOfBatch(tf.function(alone, reduce_retracing=True, jit_compile=self._model.jit_compile), whole)

    @contextlib.contextmanager
    def _stepping(self, step: Callable[..., Any]) -> Iterator[None]:
        # Past Keras's own `__setattr__`, which would track it.
        attributes = vars(self._model)
        own = attributes.get("train_step")
        attributes["train_step"] = step
        try:
            yield
        finally:
            del attributes["train_step"]
            if own is not None:
                attributes["train_step"] = own


class LegacyFitting(Fitting):
    """A model of Keras 2, which has other names for some of it."""

    @property
    def keras(self) -> str:
        return _version("tf_keras")

    @property
    def steps_per_execution(self) -> int:
        count = self._model._steps_per_execution
        return 1 if count is None else int(count.numpy())

    @property
    def is_of_batches(self) -> bool:
        """Its training function counts its steps besides."""
        return False

    @property
    def counters(self) -> Sequence[Any]:
        return (local(self._model._train_counter),)

    def build(self) -> None:
        """Keras 2 is left to do this by itself."""

    @property
    def must_begin_alone(self) -> bool:
        return False

    def variables(self) -> Variables:
        model = self._model

        def owned() -> Iterator[Owned]:
            trainable = {id(variable) for variable in model.trainable_variables}
            for variable in model.variables:
                raw = local(variable)
                # The words that a TextVectorization knows are listed too: they stand in a table, not in a variable.
                if isinstance(raw, tf.Variable):
                    yield Owned(raw, _path(variable), id(variable) in trainable, tracked=True)

        def ignored() -> list[Any]:
            optimizers = [value for value in vars(model).values() if _is_legacy_optimizer(value)]
            slots = [variable for optimizer in optimizers for variable in _slots(optimizer)]
            totals = [variable for metric in model.metrics for variable in metric.variables]
            return [local(variable) for variable in (*slots, *totals, model._train_counter)]

        return Variables(owned, ignored)


def _returned(results: Any) -> Any:
    """What the user's step returns, as Keras's function returns it: with tensors for lists. The guard puts its own
    beside that, in a tuple."""
    if type(results) is dict:
        return {name: _returned(each) for name, each in results.items()}
    if type(results) is tuple:
        return tuple(map(_returned, results))
    return tf.convert_to_tensor(results) if isinstance(results, list) else results


def check_backend() -> None:
    """Raises SetupError where Keras computes with something else than TensorFlow."""
    # Who loads Keras 2 trains with that, whatever backend Keras 3 has.
    if keras.backend.backend() != "tensorflow" and "tf_keras" not in sys.modules:
        raise SetupError(
            f"GradFlowCallback records TensorFlow, and Keras runs on {keras.backend.backend()}: "
            'set KERAS_BACKEND="tensorflow" before Keras is imported'
        )


def fitting(model: Any, beside: Sequence[Any] | None) -> Fitting:
    """For whichever Keras the model is of, and the callbacks of the same `fit`; null if nobody knows those."""
    shows_graph = beside is None or any(_is_tensorboard(each) for each in beside)
    return (LegacyFitting if is_legacy(model) else Fitting)(model, shows_graph=shows_graph)


def _is_tensorboard(callback: Any) -> bool:
    legacy = sys.modules.get("tf_keras")
    kinds = [each.callbacks.TensorBoard for each in (keras, legacy) if each is not None]
    return isinstance(callback, tuple(kinds))


def is_legacy(model: Any) -> bool:
    """Whether a model is of Keras 2."""
    legacy = sys.modules.get("tf_keras")
    return legacy is not None and isinstance(model, legacy.Model)


def _trace(own: Any, iterator: Any) -> None:
    """Traces the model's own function, which its next run needs anyway."""
    if hasattr(own, "function_spec") and not hasattr(own, "_concrete_variable_creation_fn"):
        # What the user's own step raises, it raises when it runs.
        with contextlib.suppress(Exception):
            own.get_concrete_function(iterator)


def _version(package: str) -> str:
    return str(sys.modules[package].__version__)


def _path(variable: Any) -> str:
    return str(variable.name).removesuffix(":0")


def _is_legacy_optimizer(value: Any) -> bool:
    legacy = sys.modules["tf_keras"]
    return isinstance(value, (legacy.optimizers.Optimizer, legacy.optimizers.legacy.Optimizer))


def _slots(optimizer: Any) -> Iterable[Any]:
    variables = optimizer.variables
    listed: Iterable[Any] = variables() if callable(variables) else variables
    return listed
