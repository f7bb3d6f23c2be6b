"""One real training step, looked at and undone: what `tb_gradflow.explain` measures.

The step runs compiled, like the steps of `fit`, because only a traced step shows its structure. Everything that it
changes is put back: weights, optimizer, metrics, random state.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.autograph.core import ag_ctx

from tb_gradflow.errors import SetupError
from tb_gradflow.record.schema import FORMAT, Session, StepRecord, Trace
from tb_gradflow.trace.inputs import NameInputs, arguments_of, batch_of_keras
from tb_gradflow.trace.step import InstrumentedStep, Settings, owned_variables
from tb_gradflow.trace.variables import Owned, Variables, raw_variable
from tb_gradflow.version import VERSION


@dataclass(frozen=True, slots=True)
class Explained:
    """What one step showed.

    Attributes:
        session: As in a log.
        trace: The step's structure.
        record: The step's numbers; null if the step raised before it was complete.
    """

    session: Session
    trace: Trace
    record: StepRecord | None


def explain_model(model: Any, x: Any, y: Any, sample_weight: Any, batch_size: int | None) -> Explained:
    """One training step of a compiled Keras model on the first `batch_size` rows, or on all of them."""
    if not getattr(model, "compiled", False):
        raise SetupError(f"the model {model.name!r} is not compiled: call `model.compile(...)` first")
    rows = _first_rows((x, y, sample_weight), batch_size)
    _build(model, rows)
    batch = keras.utils.pack_x_y_sample_weight(*rows)

    def run(instrumented: Callable[..., Any]) -> Any:
        function = model._make_function(instrumented)
        _, measurements = function(iter([batch]))
        return measurements

    with _undone(lambda: _state_of(model)):
        return _explained(model.train_step, run, lambda: owned_variables(model), str(model.name), batch_of_keras)


def explain_function(loss_fn: Callable[..., Any], args: Sequence[Any], variables: Sequence[Any]) -> Explained:
    """One gradient of `loss_fn(*args)` with respect to `variables`."""
    owned = [_owned(variable) for variable in variables]

    # The user's code is converted as `tf.function` would convert it; the recorder around it is not.
    enabled = ag_ctx.ControlStatusCtx(ag_ctx.Status.ENABLED)
    converted = tf.__internal__.autograph.tf_convert(loss_fn, enabled)

    def step(*arguments: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = converted(*arguments)
        tape.gradient(loss, [item.variable for item in owned])
        return loss

    def run(instrumented: Callable[..., Any]) -> Any:
        _, measurements = tf.function(instrumented, autograph=False)(*args)
        return measurements

    with _undone(lambda: [item.variable for item in owned]):
        name = getattr(loss_fn, "__name__", "loss")
        return _explained(step, run, lambda: Variables(owned), name, arguments_of(loss_fn))


def _explained(
    step: Callable[..., Any],
    run: Callable[..., Any],
    variables: Callable[[], Variables],
    name: str,
    inputs: NameInputs,
) -> Explained:
    traces: list[Trace] = []

    def on_trace(trace: Trace, error: BaseException | None) -> None:
        traces.append(trace)

    instrumented = InstrumentedStep(step, variables, Settings(exact=False), on_trace, inputs)
    session = _session(name)
    try:
        measurements = run(lambda *arguments: instrumented(*arguments))
    except Exception:
        # A step that raises by itself (no gradient for any variable, none registered) has shown its structure.
        if not traces:
            raise
        return Explained(session, traces[-1], None)
    values = {key: value.numpy() for key, value in measurements.items()}
    record = StepRecord(
        trace=int(values["trace"]),
        step=0,
        wall_time=time.time(),
        losses=tuple(float(value) for value in values["losses"]),
        gradients=np.ascontiguousarray(values["gradients"], "<f4").tobytes(),
        variables=np.ascontiguousarray(values["variables"], "<f4").tobytes(),
    )
    return Explained(session, next(trace for trace in traces if trace.index == record.trace), record)


def _session(name: str) -> Session:
    return Session(
        format=FORMAT,
        id=f"{time.time_ns() // 1_000_000:013d}",
        tool=VERSION,
        tensorflow=tf.__version__,
        keras=keras.__version__,
        model=name,
        expected=(),
    )


def _owned(variable: Any) -> Owned:
    name = getattr(variable, "path", None) or variable.name.removesuffix(":0")
    return Owned(raw_variable(variable), name, bool(variable.trainable), tracked=True)


def _build(model: Any, rows: Any) -> None:
    """Makes the variables that a first step would make, so that their first values are known and can be put back."""
    if _unbuilt(model):
        # What goes wrong in here shows in what is still unbuilt afterwards.
        with contextlib.suppress(Exception):
            keras.src.backend.compute_output_spec(model, rows[0], training=False)
    if left := _unbuilt(model):
        # An optimizer that is built now would not know the variables that these make later.
        raise SetupError(
            f"the model {model.name!r} is not built: its layers {', '.join(left[:5])} have no weights yet. "
            "Run one batch through it first, for example `model.fit(x[:1], y[:1])`"
        )
    with contextlib.suppress(Exception):
        model._symbolic_build(data_batch=rows)


def _unbuilt(model: Any) -> list[str]:
    return [str(layer.name) for layer in model._flatten_layers() if not layer.built]


def _first_rows(batch: Any, size: int | None) -> Any:
    return tf.nest.map_structure(lambda rows: None if rows is None else tf.convert_to_tensor(rows[:size]), batch)


def _state_of(model: Any) -> list[Any]:
    """Every variable that a training step of the model may change."""
    optimizers = [value for value in vars(model).values() if isinstance(value, keras.optimizers.Optimizer)]
    owners = [model, *optimizers, *model.metrics]
    generator = keras.random.global_seed_generator() if hasattr(keras.random, "global_seed_generator") else None
    variables = [variable for owner in owners for variable in owner.variables]
    return [*variables, *([generator.state] if generator is not None else [])]


@contextlib.contextmanager
def _undone(state: Callable[[], list[Any]]) -> Iterator[None]:
    """Puts every variable of `state` back to what it was, and Python's and NumPy's generators too."""
    before = {id(raw_variable(variable)): raw_variable(variable).numpy() for variable in state()}
    python, numpy = random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        for variable in state():
            raw = raw_variable(variable)
            if id(raw) in before:
                raw.assign(before[id(raw)])
        random.setstate(python)
        np.random.set_state(numpy)
