"""What users do in the Python code of a step, besides computing: each is one ingredient of a program made by chance."""

from __future__ import annotations

import itertools
import logging
import os
import random
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf


class World:
    """What the Python code of one program shares.

    Args:
        kit: `keras` or `tf_keras`.

    Attributes:
        events: What it has done, in order, with the values that it has seen.
        step: The number of the step, for code outside it.
        kept: The variables and other state that ingredients have, to be compared in the end.
    """

    def __init__(self, kit: Any) -> None:
        self.kit = kit
        self.events: list[Any] = []
        self.step = 0
        self.kept: list[Callable[[], Any]] = []
        self.directory = tempfile.mkdtemp(prefix="world")

    def tell(self, *event: Any) -> None:
        self.events.append(event)


class Ingredient:
    """Something that a program does."""

    in_xla = True
    in_graph = True
    """Whether TensorFlow can compile it at all."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.begin()

    def begin(self) -> None:
        """When the program begins."""

    def apply(self, value: Any) -> Any:
        """In the step, on its way from the inputs to the loss: returns a tensor like this one."""
        return value

    def after_step(self) -> None:
        """In the program's loop, or in a callback of its own."""

    def between(self, model: Any) -> None:
        """After the first of two fits."""

    def close(self) -> None:
        """When the program ends."""

    def tell(self, *event: Any) -> None:
        self.world.tell(type(self).__name__, *event)


class Counter(Ingredient):
    def begin(self) -> None:
        self.numbers = itertools.count()

    def apply(self, value: Any) -> Any:
        number = next(self.numbers)
        self.tell(number)
        return value * (1.0 + 0.1 * number)


class Append(Ingredient):
    def begin(self) -> None:
        self.seen: list[Any] = []

    def apply(self, value: Any) -> Any:
        self.seen.append(value)
        self.tell(len(self.seen))
        return value + 0.1 * len(self.seen)


class Pop(Ingredient):
    def begin(self) -> None:
        self.left = [1.0 + 0.01 * number for number in range(300)]

    def apply(self, value: Any) -> Any:
        return value * self.left.pop()

    def close(self) -> None:
        self.tell(len(self.left))


class ClassAttribute(Ingredient):
    total = 0

    def begin(self) -> None:
        type(self).total = 0

    def apply(self, value: Any) -> Any:
        type(self).total += 1
        self.tell(self.total)
        return value * (1.0 + 0.1 * self.total)


class Prints(Ingredient):
    """The runner keeps what is printed."""

    def apply(self, value: Any) -> Any:
        print("traced with", value.shape)
        return value


class Telling(logging.Handler):
    def __init__(self, tell: Callable[[Any], None]) -> None:
        super().__init__()
        self.tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        self.tell(record.getMessage())


class Logs(Ingredient):
    def begin(self) -> None:
        self.logger = logging.getLogger("tests.python_side")
        self.handler = Telling(self.tell)
        self.logger.addHandler(self.handler)

    def apply(self, value: Any) -> Any:
        self.logger.warning("a step with rank %d", value.shape.rank)
        return value

    def close(self) -> None:
        self.logger.removeHandler(self.handler)


class Warns(Ingredient):
    def begin(self) -> None:
        globals().pop("__warningregistry__", None)  # where Python notes what was shown already
        self.shown = warnings.showwarning
        warnings.showwarning = self.show

    def show(self, message: Any, category: Any, *rest: Any, **more: Any) -> None:
        if category is FutureWarning:
            self.tell(str(message))

    def apply(self, value: Any) -> Any:
        warnings.warn("of the step", FutureWarning, stacklevel=1)
        return value

    def close(self) -> None:
        warnings.showwarning = self.shown


class Random(Ingredient):
    def begin(self) -> None:
        random.seed(3)

    def apply(self, value: Any) -> Any:
        return value * 2.0 if random.random() < 0.5 else value + random.random()

    def close(self) -> None:
        self.tell(random.random())


class NumpyRandom(Ingredient):
    def begin(self) -> None:
        np.random.seed(3)

    def apply(self, value: Any) -> Any:
        return value * np.random.uniform(0.5, 1.5)

    def close(self) -> None:
        self.tell(np.random.uniform())


class NumpyGenerator(Ingredient):
    def begin(self) -> None:
        self.generator = np.random.default_rng(3)

    def apply(self, value: Any) -> Any:
        return value + self.generator.normal()

    def close(self) -> None:
        self.tell(self.generator.normal())


class Time(Ingredient):
    def apply(self, value: Any) -> Any:
        self.tell(time.time() > 0.0)
        return value


class ArrayInPlace(Ingredient):
    def begin(self) -> None:
        self.array = np.ones(1, "float32")

    def apply(self, value: Any) -> Any:
        self.array += 0.1
        return value * self.array

    def close(self) -> None:
        self.tell(self.array.tolist())


class ArrayOutside(Ingredient):
    def begin(self) -> None:
        self.array = np.ones(1, "float32")

    def apply(self, value: Any) -> Any:
        return value * self.array

    def after_step(self) -> None:
        self.array *= 1.1


class Switch(Ingredient):
    on = False

    def apply(self, value: Any) -> Any:
        self.tell(self.on)
        return value * 0.5 if self.on else value

    def after_step(self) -> None:
        self.on = self.world.step >= 4


class SwitchBetween(Switch):
    def after_step(self) -> None:
        pass

    def between(self, model: Any) -> None:
        self.on = True


class Nested(Ingredient):
    def begin(self) -> None:
        numbers = itertools.count()

        @tf.function
        def nested(value: Any) -> Any:
            number = next(numbers)
            self.tell(number)
            return tf.tanh(value) * (1.0 + 0.1 * number)

        self.nested = nested

    def apply(self, value: Any) -> Any:
        return self.nested(value)


class NestedCalledBefore(Nested):
    """The program has called the function itself, so it is not traced again."""

    def begin(self) -> None:
        super().begin()
        self.nested(tf.ones((8, 4)))
        self.nested(tf.ones(()))


class NestedMadeInside(Ingredient):
    def apply(self, value: Any) -> Any:
        @tf.function
        def nested(value: Any) -> Any:
            self.tell("traced")
            return tf.sin(value)

        return nested(value) + nested(2.0 * value)


class NestedWithVariable(Ingredient):
    """A function that creates a variable is traced twice."""

    def begin(self) -> None:
        made: list[Any] = []

        @tf.function
        def nested(value: Any) -> Any:
            self.tell(len(made))
            if not made:
                made.append(tf.Variable(1.5))
            made[0].assign_add(0.25)
            return value * made[0]

        nested(tf.ones(()))
        self.nested = nested
        self.world.kept.append(made[0].numpy)

    def apply(self, value: Any) -> Any:
        return self.nested(value)


class NextPython(Ingredient):
    def begin(self) -> None:
        self.batches = iter([tf.constant(1.0 + 0.1 * number) for number in range(300)])

    def apply(self, value: Any) -> Any:
        return value * next(self.batches)

    def close(self) -> None:
        self.tell(float(next(self.batches)))


class NextData(Ingredient):
    in_xla = False

    def begin(self) -> None:
        self.batches = iter(tf.data.Dataset.range(300))

    def apply(self, value: Any) -> Any:
        return value + 0.1 * tf.cast(next(self.batches), value.dtype)

    def close(self) -> None:
        self.tell(int(next(self.batches)))


class TfPrint(Ingredient):
    in_xla = False

    def begin(self) -> None:
        self.path = os.path.join(self.world.directory, "printed")

    def apply(self, value: Any) -> Any:
        tf.print(tf.reduce_mean(value), output_stream=f"file://{self.path}")
        return value

    def close(self) -> None:
        if os.path.exists(self.path):
            with open(self.path) as lines:
                self.tell(lines.read())


class PyFunction(Ingredient):
    in_xla = False

    def apply(self, value: Any) -> Any:
        seen = tf.py_function(self.see, [tf.reduce_mean(value)], tf.float32)
        seen.set_shape([])
        return value + seen

    def see(self, value: Any) -> Any:
        self.tell(value.numpy().tobytes())
        return 0.5 * value


class NumpyFunction(Ingredient):
    in_xla = False

    def begin(self) -> None:
        self.numbers = itertools.count()

    def apply(self, value: Any) -> Any:
        number = tf.numpy_function(self.see, [], tf.float32)
        number.set_shape([])
        return value * (1.0 + 0.01 * number)

    def see(self) -> Any:
        number = next(self.numbers)
        self.tell(number)
        return np.float32(number)


class CounterVariable(Ingredient):
    def begin(self) -> None:
        self.count = tf.Variable(0.0, trainable=False)
        self.world.kept.append(self.count.numpy)

    def apply(self, value: Any) -> Any:
        self.count.assign_add(1.0)
        return value * (1.0 + 0.01 * self.count)


class MovingAverage(Ingredient):
    def begin(self) -> None:
        self.mean = tf.Variable(0.0, trainable=False)
        self.world.kept.append(self.mean.numpy)

    def apply(self, value: Any) -> Any:
        result = value - self.mean
        self.mean.assign(0.9 * self.mean + 0.1 * tf.reduce_mean(value))
        return result + self.mean


class Table(Ingredient):
    in_xla = False

    def begin(self) -> None:
        self.table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, 0.0)
        self.key = tf.constant(7, tf.int64)
        self.world.kept.append(lambda: self.table.lookup(self.key).numpy())

    def apply(self, value: Any) -> Any:
        count = self.table.lookup(self.key)
        self.table.insert(self.key, count + 1.0)
        return value * (1.0 + 0.01 * count)


class Queue(Ingredient):
    in_xla = False

    def begin(self) -> None:
        self.queue = tf.queue.FIFOQueue(300, [tf.float32], [()])
        self.queue.enqueue(1.0)
        self.world.kept.append(lambda: self.queue.size().numpy())

    def apply(self, value: Any) -> Any:
        factor = self.queue.dequeue()
        self.queue.enqueue(factor * 1.01)
        return value * factor


class SeededDropout(Ingredient):
    in_xla = False  # XLA has a generator of its own, whose numbers differ from run to run

    def apply(self, value: Any) -> Any:
        return tf.nn.dropout(value, 0.5, seed=3)


class Dropout(Ingredient):
    in_xla = False

    def apply(self, value: Any) -> Any:
        return tf.nn.dropout(value, 0.5)


class DropoutLayer(Ingredient):
    def begin(self) -> None:
        self.layer = self.world.kit.layers.Dropout(0.5, seed=3)
        self.layer.build(())

    def apply(self, value: Any) -> Any:
        return self.layer(value, training=True)


class Normal(Ingredient):
    in_xla = False

    def apply(self, value: Any) -> Any:
        return value + tf.random.normal(tf.shape(value)) + tf.random.uniform(())


class Gamma(Ingredient):
    """Its generator belongs to one compiled function."""

    in_xla = False

    def apply(self, value: Any) -> Any:
        return value + tf.random.gamma((), 2.0, seed=4)


class NormalInLoop(Ingredient):
    in_xla = False

    def apply(self, value: Any) -> Any:
        return tf.while_loop(
            lambda number, _: number < 3,
            lambda number, sum: (number + 1, sum + tf.random.normal(())),
            (0, value),
            parallel_iterations=1,  # several would draw in any order
        )[1]


class Generator(Ingredient):
    def begin(self) -> None:
        self.generator = tf.random.Generator.from_seed(5)
        self.world.kept.append(lambda: self.generator.state.numpy())

    def apply(self, value: Any) -> Any:
        return value + self.generator.normal(())


class Stateless(Ingredient):
    def begin(self) -> None:
        self.seed = tf.Variable([1, 2], trainable=False)

    def apply(self, value: Any) -> Any:
        drawn = tf.random.stateless_normal((), self.seed)
        self.seed.assign_add([0, 1])
        return value + drawn


class NanOnce(Ingredient):
    """The runner's step leaves such gradients out."""

    number = 6

    def begin(self) -> None:
        self.poison = tf.Variable(1.0, trainable=False)

    def apply(self, value: Any) -> Any:
        return value * self.poison

    def after_step(self) -> None:
        self.poison.assign(float("nan") if self.world.step == self.number else 1.0)


class NanLater(NanOnce):
    number = 11


class CheckNumerics(Ingredient):
    in_xla = False

    def begin(self) -> None:
        tf.debugging.enable_check_numerics()

    def close(self) -> None:
        tf.debugging.disable_check_numerics()


class Assertion(Ingredient):
    """The gradients depend on it: where they do not, the update of the weights races with the assertion."""

    in_xla = False

    def begin(self) -> None:
        self.count = tf.Variable(0, trainable=False)
        self.world.kept.append(self.count.numpy)

    def apply(self, value: Any) -> Any:
        with tf.control_dependencies([tf.debugging.assert_none_equal(self.count.assign_add(1), 6)]):
            return value * tf.identity(0.9)


class RaisesAtFirst(Ingredient):
    def begin(self) -> None:
        self.numbers = itertools.count()

    def apply(self, value: Any) -> Any:
        number = next(self.numbers)
        self.tell(number)
        if number == 0:
            raise ValueError("of the first trace")
        return value


class Cond(Ingredient):
    def begin(self) -> None:
        self.numbers = itertools.count()

    def apply(self, value: Any) -> Any:
        return tf.cond(tf.reduce_mean(value) > 0.1, lambda: self.branch(value), lambda: self.branch(-value))

    def branch(self, value: Any) -> Any:
        number = next(self.numbers)
        self.tell(number)
        return value * (1.0 + 0.1 * number)


class While(Ingredient):
    def begin(self) -> None:
        self.numbers = itertools.count()

    def apply(self, value: Any) -> Any:
        return tf.while_loop(lambda number, _: number < 2, self.body, (0, value), maximum_iterations=2)[1]

    def body(self, number: Any, value: Any) -> Any:
        traced = next(self.numbers)
        self.tell(traced)
        return number + 1, tf.sin(value) * (1.0 + 0.1 * traced)


class CustomGradient(Ingredient):
    def begin(self) -> None:
        self.numbers = itertools.count()

    def apply(self, value: Any) -> Any:
        @tf.custom_gradient
        def scaled(value: Any) -> Any:
            forward = next(self.numbers)

            def gradient(upstream: Any) -> Any:
                number = next(self.numbers)
                self.tell(forward, number)
                return upstream * (1.0 + 0.1 * number)

            return tf.identity(value), gradient

        return scaled(value)


class Recomputed(Ingredient):
    def begin(self) -> None:
        self.numbers = itertools.count()

    def apply(self, value: Any) -> Any:
        return tf.recompute_grad(self.body)(value)

    def body(self, value: Any) -> Any:
        number = next(self.numbers)
        self.tell(number)
        return tf.tanh(value) * (1.0 + 0.1 * number)


class InnerTape(Ingredient):
    def apply(self, value: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(value)
            square = tf.sin(value)
        self.tell("inner")
        return value + tape.gradient(square, value)


class LooksAtGraph(Ingredient):
    """What the program sees of its own graph."""

    def apply(self, value: Any) -> Any:
        if not tf.executing_eagerly():
            graph = tf.compat.v1.get_default_graph()
            self.tell(value.name, len(graph.get_operations()))
        return value


class LooksAround(Ingredient):
    def apply(self, value: Any) -> Any:
        self.tell(tf.executing_eagerly(), tf.inside_function(), isinstance(value, tf.Tensor), type(value).__name__)
        return value


class MutatedGlobal(Ingredient):
    def begin(self) -> None:
        SETTINGS["weight"] = 0.0

    def apply(self, value: Any) -> Any:
        self.tell(SETTINGS["weight"])
        return value * (1.0 + SETTINGS["weight"])

    def after_step(self) -> None:
        SETTINGS["weight"] += 0.1


SETTINGS = {"weight": 0.0}


class Freezes(Ingredient):
    def between(self, model: Any) -> None:
        model.hidden.trainable = False


class SwapsOptimizer(Ingredient):
    """Without `compile`."""

    def between(self, model: Any) -> None:
        model.optimizer = self.world.kit.optimizers.SGD(0.03)
        model.optimizer.build(model.trainable_variables)


class ReplacesStep(Ingredient):
    """Without `compile`; Keras goes on with the step that it has compiled."""

    def between(self, model: Any) -> None:
        plain = model.train_step

        def step(data: Any) -> Any:
            self.tell("replaced")
            return plain(data)

        model.train_step = step


class CompilesAgain(Ingredient):
    def between(self, model: Any) -> None:
        self.tell("compiled")
        model.compile(self.world.kit.optimizers.SGD(0.02), loss=model.own_loss)


class MakesFunctionAgain(Ingredient):
    def between(self, model: Any) -> None:
        model.make_train_function(force=True)


BETWEEN: dict[str, type[Ingredient]] = {
    each.__name__: each
    for each in (Freezes, SwapsOptimizer, ReplacesStep, CompilesAgain, MakesFunctionAgain, SwitchBetween)
}
"""Those of programs with two fits."""

INGREDIENTS: dict[str, type[Ingredient]] = {
    each.__name__: each
    for each in (
        *(Counter, Append, Pop, ClassAttribute, Prints, Logs, Warns, Random, NumpyRandom, NumpyGenerator, Time),
        *(ArrayInPlace, ArrayOutside, Switch, Nested, NestedCalledBefore, NestedMadeInside, NestedWithVariable),
        *(NextPython, NextData, TfPrint, PyFunction, NumpyFunction, CounterVariable, MovingAverage, Table, Queue),
        *(SeededDropout, Dropout, DropoutLayer, Normal, Gamma, NormalInLoop, Generator, Stateless, NanOnce, NanLater),
        *(CheckNumerics, Assertion, RaisesAtFirst, Cond, While, CustomGradient, Recomputed, InnerTape, LooksAtGraph),
        *(LooksAround, MutatedGlobal),
    )
}
