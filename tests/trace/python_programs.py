"""Programs of every kind of training, made of ingredients from `python_side`."""

from __future__ import annotations

import contextlib
import functools
import io
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import keras
import numpy as np
import tensorflow as tf
import tf_keras

import tb_gradflow
from tb_gradflow.recorded import Recorded
from tests.trace.python_side import BETWEEN, INGREDIENTS, Ingredient, World

ROWS = 8
STEPS = 14


@dataclass(frozen=True)
class Recipe:
    """A program, and how it is recorded.

    Attributes:
        layer: What the model's middle layer does besides computing.
        loss: The same of what computes the loss.
        nested_layer: Whether the layer's `call` is a `tf.function`.
        own_step: Whether a model has a `train_step`.
        returns: Whether the step of a loop returns its loss.
        last_rows: The number of rows in each last batch.
        options: Those of the recorder.
    """

    layer: tuple[str, ...]
    loss: tuple[str, ...]
    nested_layer: bool = False
    own_step: bool = True
    returns: bool = True
    last_rows: int = ROWS
    options: dict[str, Any] = field(default_factory=dict)


@dataclass
class Outcome:
    """What a program has done, for a comparison bit for bit."""

    events: list[Any]
    outputs: list[Any]
    weights: list[bytes]
    kept: list[bytes]
    printed: str


class Parts:
    """The ingredients of a program that runs."""

    def __init__(self, recipe: Recipe, world: World) -> None:
        self.layer = [made(name, world) for name in recipe.layer]
        self.loss = [made(name, world) for name in recipe.loss]
        self.world = world

    def __iter__(self) -> Iterator[Ingredient]:
        return iter([*self.layer, *self.loss])

    def after_step(self) -> None:
        self.world.step += 1
        for each in self:
            each.after_step()


def made(name: str, world: World) -> Ingredient:
    return {**INGREDIENTS, **BETWEEN}[name](world)


def applied(ingredients: list[Ingredient], value: Any) -> Any:
    for each in ingredients:
        value = each.apply(value)
    return value


def middle_layer(kit: Any, parts: Parts, *, nested: bool) -> Any:
    class Middle(kit.layers.Layer):
        def call(self, x: Any) -> Any:
            return applied(parts.layer, x)

    if nested:
        middle: Any = Middle
        middle.call = tf.function(Middle.call)
    return Middle()


def network(kit: Any, recipe: Recipe, parts: Parts) -> Any:
    class Net(kit.Model):
        def __init__(self) -> None:
            super().__init__()
            self.hidden = kit.layers.Dense(4, activation="tanh")
            self.middle = middle_layer(kit, parts, nested=recipe.nested_layer)
            self.head = kit.layers.Dense(1)

        def call(self, x: Any, training: Any = None) -> Any:
            return self.head(self.middle(self.hidden(x)))

    def train_step(self: Any, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            loss = applied(parts.loss, tf.reduce_mean((self(x, training=True) - y) ** 2))
        self.optimizer.apply_gradients(finite(tape.gradient(loss, self.trainable_variables), self.trainable_variables))
        return {"own": loss}

    if recipe.own_step:
        Net.train_step = train_step
    return Net()


def finite(gradients: Any, variables: Any) -> list[Any]:
    """What is not finite counts as zero."""
    return [
        (tf.where(tf.math.is_finite(gradient), gradient, 0.0), variable)
        for gradient, variable in zip(gradients, variables, strict=True)
        if gradient is not None
    ]


def data(recipe: Recipe, batches: int) -> list[tuple[Any, Any]]:
    x = np.random.default_rng(0).normal(size=(batches, ROWS, 3)).astype("float32")
    found: list[tuple[Any, Any]] = [(rows, rows[:, :1]) for rows in x]
    rows, labels = found[-1]
    found[-1] = rows[: recipe.last_rows], labels[: recipe.last_rows]
    return found


Record = Callable[[str], Any]
"""Returns what records a part of the program, by its name; `None` if nothing does."""


def fitted(
    kit: Any,
    recipe: Recipe,
    parts: Parts,
    record: Record,
    outputs: list[Any],
    *,
    of: Sequence[int] = (0, 1),
    **options: Any,
) -> Any:
    """Two fits of a model, of which some are recorded."""
    model = network(kit, recipe, parts)
    model.own_loss = lambda y, out: applied(parts.loss, tf.reduce_mean((out - y) ** 2))
    model.compile(kit.optimizers.Adam(0.05), loss=None if recipe.own_step else model.own_loss, **options)

    class After(kit.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            outputs.append({name: np.asarray(value).tobytes() for name, value in (logs or {}).items()})
            parts.after_step()

    rows = [np.concatenate(each) for each in zip(*data(recipe, 4), strict=True)]
    for number in range(2):
        recorder = record(f"fit {number}") if number in of else None
        callbacks = [After(), *([] if recorder is None else [recorder])]
        with told(outputs):
            model.fit(*rows, batch_size=ROWS, epochs=2, shuffle=False, verbose=0, callbacks=callbacks)
        if number == 0:
            for ingredient in parts:
                with told(outputs):
                    ingredient.between(model)
    return model.variables


def on_batches(kit: Any, recipe: Recipe, parts: Parts, record: Record, outputs: list[Any], **options: Any) -> Any:
    """`train_on_batch`."""
    model = network(kit, recipe, parts)
    model.own_loss = lambda y, out: applied(parts.loss, tf.reduce_mean((out - y) ** 2))
    model.compile(kit.optimizers.Adam(0.05), loss=None if recipe.own_step else model.own_loss, **options)
    for x, y in data(recipe, 4) * 3:
        with told(outputs):
            result = model.train_on_batch(x, y, return_dict=True)
            outputs.append({name: np.asarray(value).tobytes() for name, value in result.items()})
        parts.after_step()
    return model.variables


def looped(recipe: Recipe, parts: Parts, record: Record, outputs: list[Any], compiled: Callable[..., Any]) -> Any:
    """A loop of the user's own."""
    hidden, head = keras.layers.Dense(4, activation="tanh"), keras.layers.Dense(1)
    middle = middle_layer(keras, parts, nested=recipe.nested_layer)
    for layer, width in ((hidden, 3), (head, 4)):
        layer.build((None, width))
    variables = [each.value for each in (*hidden.weights, *head.weights)]
    optimizer = keras.optimizers.Adam(0.05)
    optimizer.build([*hidden.weights, *head.weights])

    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = applied(parts.loss, tf.reduce_mean((head(middle(hidden(x))) - y) ** 2))
        pairs = finite(tape.gradient(loss, variables), [*hidden.weights, *head.weights])
        optimizer.apply_gradients(pairs)
        return loss if recipe.returns else None

    run = compiled(step, record)
    for x, y in data(recipe, STEPS // 2) * 2:
        with told(outputs):
            result = run(tf.constant(x), tf.constant(y))
            outputs.append(None if result is None else result.numpy().tobytes())
        parts.after_step()
    return [*hidden.weights, *head.weights, *optimizer.variables]


@contextlib.contextmanager
def told(outputs: list[Any]) -> Iterator[None]:
    """The program catches what is raised, and goes on."""
    try:
        yield
    except Exception as error:
        outputs.append((type(error).__name__, str(error).split("\n")[0]))


def as_function(step: Any, record: Record) -> Any:
    return (record("step") or tf.function)(step)


def as_function_around(step: Any, record: Record) -> Any:
    function = tf.function(step, reduce_retracing=True)
    watch = record("step")
    return function if watch is None else watch(function)


def as_xla(step: Any, record: Record) -> Any:
    function = tf.function(step, jit_compile=True)
    watch = record("step")
    return function if watch is None else watch(function)


def as_typed(step: Any, record: Record) -> Any:
    return step


def as_plain_function(step: Any, record: Record) -> Any:
    return tf.function(step)


@dataclass(frozen=True)
class Kind:
    """A kind of training.

    Attributes:
        run: Runs a recipe.
        way: How it is recorded: by a callback, a watched step, or hooks.
        in_xla: Whether XLA compiles the step.
        eager: Whether it runs eagerly.
        fits: Whether it has two fits.
        kit: `keras` or `tf_keras`.
    """

    run: Callable[..., Any]
    way: str
    in_xla: bool = False
    eager: bool = False
    fits: bool = False
    kit: Any = keras


def fit_of(kit: Any, way: str = "callback", **options: Any) -> Kind:
    return Kind(
        lambda *args: fitted(kit, *args, **options),
        way,
        in_xla=bool(options.get("jit_compile")),
        eager=bool(options.get("run_eagerly")),
        fits=True,
        kit=kit,
    )


def batches_of(kit: Any, **options: Any) -> Kind:
    return Kind(
        lambda *args: on_batches(kit, *args, **options), "hooks", eager=bool(options.get("run_eagerly")), kit=kit
    )


def loop_of(compiled: Callable[..., Any], way: str, **more: Any) -> Kind:
    return Kind(functools.partial(looped, compiled=compiled), way, **more)


# Keras 3 chooses XLA itself for a model that allows it.
KINDS: dict[str, Kind] = {
    "fit": fit_of(keras, jit_compile=False),
    "fit, XLA": fit_of(keras, jit_compile=True),
    "fit, eager": fit_of(keras, run_eagerly=True),
    "fit, the second": fit_of(keras, of=[1], jit_compile=False),
    "fit, two steps an execution": fit_of(keras, steps_per_execution=2, jit_compile=False),
    "fit, Keras 2": fit_of(tf_keras),
    "fit, Keras 2, eager": fit_of(tf_keras, run_eagerly=True),
    "watched": loop_of(as_function, "watch"),
    "watched function": loop_of(as_function_around, "watch"),
    "watched, XLA": loop_of(as_xla, "watch", in_xla=True),
    "hooked fit": fit_of(keras, "hooks", jit_compile=False),
    "hooked fit, Keras 2": fit_of(tf_keras, "hooks"),
    "hooked function": loop_of(as_plain_function, "hooks"),
    "hooked eager loop": loop_of(as_typed, "hooks", eager=True),
    "hooked train_on_batch": batches_of(keras, jit_compile=False),
    "hooked train_on_batch, eager": batches_of(keras, run_eagerly=True),
    "hooked train_on_batch, Keras 2": batches_of(tf_keras),
}


def outcome(kind: Kind, recipe: Recipe, *, recorded: bool) -> Outcome:
    """Runs a program from its beginning."""
    for kit in (keras, tf_keras):
        kit.backend.clear_session()
        kit.utils.set_random_seed(7)
    world = World(kind.kit)
    outputs: list[Any] = []
    with contextlib.redirect_stdout(io.StringIO()) as printed, recording(kind, recipe, recorded=recorded) as record:
        parts = Parts(recipe, world)
        try:
            variables = kind.run(recipe, parts, record, outputs)
        finally:
            for each in parts:
                each.close()
    weights = [np.asarray(each).tobytes() for each in variables]
    kept = [np.asarray(each()).tobytes() for each in world.kept]
    shutil.rmtree(world.directory)
    return Outcome(world.events, outputs, weights, kept, printed.getvalue())


@contextlib.contextmanager
def recording(kind: Kind, recipe: Recipe, *, recorded: bool) -> Iterator[Record]:
    if not recorded:
        yield lambda name: None
        return
    with tempfile.TemporaryDirectory() as directory:
        if kind.way == "hooks":
            recorder = Recorded(lambda: directory, recipe.options)
            recorder.start()
            try:
                yield lambda name: None
            finally:
                recorder.stop()
            return
        made = tb_gradflow.watch if kind.way == "watch" else tb_gradflow.GradFlowCallback
        yield lambda name: made(f"{directory}/{name}", **recipe.options)
