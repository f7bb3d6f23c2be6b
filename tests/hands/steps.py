"""Python that a step reads or changes, data of every sort, and steps that raise."""

from __future__ import annotations

import asyncio
import itertools
import random
import sys
from collections.abc import Callable, Generator, Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tests.hands.hand import Hand, data, model, squared_step


class _State:
    factor = 1.0


def _reading(read: Callable[[], Any], name: str) -> Callable[[Hand], None]:
    """A step, and a layer in `fit`, that read Python while they are traced, and are traced for two shapes."""

    def hand(given: Hand) -> None:
        random.seed(1)
        np.random.seed(1)
        _State.factor = 1.0
        weight = tf.Variable(2.0)

        def train(x: Any) -> Any:
            factor = tf.cast(read(), tf.float32)
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(weight * factor * x))
            weight.assign_sub(0.1 * tape.gradient(loss, weight))
            return loss

        step = given.step(train)
        given.keep(*(step(tf.ones(1 + turn % 2)) for turn in range(6)), weight)

        class Read(keras.layers.Layer):
            def call(self, x: Any) -> Any:
                return x * tf.cast(read(), tf.float32)

        net = keras.Sequential([keras.Input((4,)), Read(), keras.layers.Dense(1)])
        net.compile("sgd", "mse")
        given.fit(net)
        given.keep(read(), random.random(), np.random.random())

    hand.__name__ = f"step_reads_{name}"
    return hand


def _attribute() -> float:
    _State.factor += 1.0
    return _State.factor


def _numbers() -> Callable[[], Any]:
    counter = itertools.count(1)
    return lambda: next(counter) % 7


def _popped() -> Callable[[], Any]:
    values = [float(each) for each in range(1, 400)]
    return values.pop


def _array() -> Callable[[], Any]:
    array = np.ones(1)

    def read() -> Any:
        array[0] += 0.5
        return float(array[0]) % 3

    return read


READ = (
    (lambda: np.random.random(), "numpy_random"),
    (random.random, "random"),
    (_attribute, "class_attribute"),
    (_numbers(), "count"),
    (_popped(), "popped"),
    (_array(), "array"),
    (lambda: tf.random.uniform(()), "tensorflow_random"),
)


def _data_given(make: Callable[[], Any], name: str) -> Callable[[Hand], None]:
    def hand(given: Hand) -> None:
        net = model()
        net.fit(make(), epochs=2, verbose=0, steps_per_epoch=3, callbacks=given.callbacks())
        given.keep(*net.get_weights())

    hand.__name__ = f"data_of_{name}"
    return hand


def _batches() -> Iterator[Any]:
    x, y = data()
    while True:
        for start in range(0, 24, 8):
            yield x[start : start + 8], y[start : start + 8]


def _dataset() -> Any:
    return tf.data.Dataset.from_tensor_slices(data()).batch(8).repeat()


class _Sequence(keras.utils.PyDataset):
    def __len__(self) -> int:
        return 3

    def __getitem__(self, number: int) -> Any:
        x, y = data()
        return x[8 * number :][:8], y[8 * number :][:8]


DATA = (
    (_batches, "generator"),
    (_dataset, "dataset"),
    (lambda: _dataset().shuffle(4, seed=1).prefetch(1), "shuffled_dataset"),
    (lambda: _Sequence(workers=1), "sequence"),
    (lambda: _dataset().map(lambda x, y: (x, y, tf.ones(8))), "weighted_dataset"),
)


def generator_that_raises(hand: Hand) -> None:
    def batches() -> Iterator[Any]:
        yield from itertools.islice(_batches(), 4)
        raise KeyError("no more data")

    net = model()
    try:
        net.fit(batches(), epochs=2, steps_per_epoch=3, verbose=0, callbacks=hand.callbacks())
    except Exception as error:
        hand.keep(type(error).__name__, "no more data" in str(error))
    hand.keep(*net.get_weights())
    hand.fit(net)


def generator_that_ends(hand: Hand) -> None:
    net = model()
    net.fit(itertools.islice(_batches(), 4), epochs=2, steps_per_epoch=3, verbose=0, callbacks=hand.callbacks())
    hand.keep(*net.get_weights())


def data_of_wrong_shape(hand: Hand) -> None:
    net = model()
    hand.fit(net)
    try:
        net.fit(np.ones((8, 5)), np.ones((8, 1)), verbose=0, callbacks=hand.callbacks())
    except Exception as error:
        hand.keep(type(error).__name__)
    hand.fit(net)


def iterator_in_step(hand: Hand) -> None:
    weight = tf.Variable(1.0)
    batches = iter(tf.data.Dataset.range(100).map(lambda x: tf.cast(x, tf.float32)))

    def train() -> Any:
        with tf.GradientTape() as tape:
            loss = tf.square(weight - 0.1 * next(batches))
        weight.assign_sub(0.1 * tape.gradient(loss, weight))
        return loss

    step = hand.step(train)
    hand.keep(*(step() for _ in range(6)), weight, next(batches))


def nan_after_effects(hand: Hand) -> None:
    """The step that is not finite has drawn a batch and a random number, and printed."""
    weight, generator = tf.Variable(1.0), tf.random.Generator.from_seed(4)
    batches = iter(tf.data.Dataset.range(100).map(lambda x: tf.cast(x, tf.float32)))

    def train() -> Any:
        x = next(batches)
        with tf.GradientTape() as tape:
            loss = tf.sqrt(weight * (3.0 - x)) + 0.0 * generator.uniform(()) + 0.0 * tf.random.uniform(())
        gradient = tape.gradient(loss, weight)
        weight.assign_sub(tf.where(tf.math.is_finite(gradient), 0.01 * gradient, 0.0))
        return loss

    step = hand.step(train)
    hand.keep(*(step() for _ in range(8)), weight, next(batches), generator.uniform(()), tf.random.uniform(()))


def step_that_raises(hand: Hand) -> None:
    weight = tf.Variable(1.0)

    def train(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.square(weight * x)
        # Otherwise TensorFlow may change the weight before the assertion fails, or not.
        with tf.control_dependencies([tf.debugging.assert_less(x, 3.0)]):
            weight.assign_sub(0.1 * tape.gradient(loss, weight))
        return loss

    step = hand.step(train)
    for x in (1.0, 2.0, 4.0, 1.0, 5.0, 2.0):
        try:
            hand.keep(step(tf.constant(x)))
        except tf.errors.InvalidArgumentError as error:
            hand.keep(type(error).__name__)
    hand.keep(weight)


def step_that_raises_while_traced(hand: Hand) -> None:
    weight, calls = tf.Variable(1.0), []

    def train(x: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("not yet")
        with tf.GradientTape() as tape:
            loss = tf.square(weight * x)
        weight.assign_sub(0.1 * tape.gradient(loss, weight))
        return loss

    step = hand.step(train)
    try:
        step(tf.constant(1.0))
    except RuntimeError as error:
        hand.keep(str(error))
    hand.keep(*(step(tf.constant(1.0)) for _ in range(4)), len(calls))


def step_that_prints(hand: Hand) -> None:
    weight = tf.Variable(1.0)

    def train(x: Any) -> Any:
        sys.stdout.write(f"traced with {x.shape}\n")
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(weight * x))
        weight.assign_sub(0.1 * tape.gradient(loss, weight))
        return loss

    step = hand.step(train)
    hand.keep(*(step(tf.ones(size)) for size in (1, 1, 2, 2)))


def step_that_calls_python(hand: Hand) -> None:
    """Ops that run Python, in steps that are finite and in one that is not."""
    weight, calls = tf.Variable(1.0), []

    def look(value: Any) -> Any:
        calls.append(float(value))
        return np.float32(value)

    def train(x: Any) -> Any:
        y = tf.ensure_shape(tf.numpy_function(look, [x], tf.float32), ())
        with tf.GradientTape() as tape:
            loss = tf.square(weight * y)
        weight.assign_sub(0.1 * tape.gradient(loss, weight))
        tf.print("loss", loss, output_stream="file://printed.txt")
        return loss

    step = hand.step(train)
    hand.keep(*(step(tf.constant(value)) for value in (0.0, 1.0, 2.0, np.nan, 1.0)), weight, calls)
    with open("printed.txt", encoding="utf-8") as file:
        hand.keep(file.read())


def loops_in_coroutines(hand: Hand) -> None:
    """Two eager loops that wait inside of their tapes, and one in a generator that is left there."""

    async def train(weight: Any, turns: int) -> None:
        for _ in range(turns):
            with tf.GradientTape() as tape:
                loss = tf.square(weight - 3.0)
                await asyncio.sleep(0)
                loss *= 2.0
            await asyncio.sleep(0)
            weight.assign_sub(0.1 * tape.gradient(loss, weight))
            hand.keep(loss)

    async def both() -> None:
        await asyncio.gather(train(one, 3), train(two, 4))

    def generated(weight: Any) -> Generator[Any, None, None]:
        while True:
            with tf.GradientTape() as tape:
                loss = tf.square(weight - 3.0)
                yield loss
            weight.assign_sub(0.1 * tape.gradient(loss, weight))

    one, two = tf.Variable(1.0), tf.Variable(2.0)
    asyncio.run(both())
    losses = generated(one)
    hand.keep(next(losses), next(losses), one, two)
    hand.fit(model())
    losses.close()
    hand.fit(model())


def train_function_by_hand(hand: Hand) -> None:
    net = model("adam")
    hand.fit(net)
    batches = iter(_dataset())
    for _ in range(3):
        net.train_function(batches)
    hand.keep(*net.get_weights(), next(batches)[0])
    hand.fit(net)


def loop_without_function(hand: Hand) -> None:
    net, optimizer = model(), keras.optimizers.SGD(0.1)
    x, y = map(tf.constant, data())
    for _ in range(4):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(net(x, training=True) - y))
        optimizer.apply_gradients(zip(tape.gradient(loss, net.trainable_weights), net.trainable_weights, strict=True))
        hand.keep(loss)
    hand.keep(*net.get_weights())


def attributes_of_function(hand: Hand) -> None:
    step = hand.step(squared_step(tf.Variable(1.0)))
    step.note = "mine"
    hand.keep(step(tf.constant(1.0)), step.note, step.__name__, step.__doc__, step.__wrapped__ is not None)
    concrete = step.get_concrete_function(tf.TensorSpec(()))
    hand.keep(concrete(tf.constant(1.0)), step.experimental_get_tracing_count())


def eagerly_for_a_while(hand: Hand) -> None:
    net = model()
    tf.config.run_functions_eagerly(True)
    try:
        hand.fit(net)
    finally:
        tf.config.run_functions_eagerly(False)
    hand.fit(net)


def numerics_checked(hand: Hand) -> None:
    tf.debugging.enable_check_numerics()
    try:
        hand.fit(model())
    finally:
        tf.debugging.disable_check_numerics()


def batches_by_hand(hand: Hand) -> None:
    net = model()
    x, y = data()
    for start in range(0, 24, 8):
        hand.keep(net.train_on_batch(x[start : start + 8], y[start : start + 8]))
    hand.fit(net)


def several_steps_an_execution(hand: Hand) -> None:
    hand.fit(model(steps_per_execution=2))


def run_eagerly(hand: Hand) -> None:
    hand.fit(model(run_eagerly=True))


def mixed_precision(hand: Hand) -> None:
    keras.config.set_dtype_policy("mixed_float16")
    try:
        hand.fit(model())
    finally:
        keras.config.set_dtype_policy("float32")


def other_float(hand: Hand) -> None:
    keras.config.set_floatx("float64")
    try:
        hand.fit(model())
    finally:
        keras.config.set_floatx("float32")


def deterministic(hand: Hand) -> None:
    net = model()
    hand.fit(net, shuffle=True)
    hand.keep(tf.random.uniform(()), keras.random.uniform(()), np.random.random(), random.random())


HANDS = (
    *(_reading(read, name) for read, name in READ),
    *(_data_given(make, name) for make, name in DATA),
    generator_that_raises,
    generator_that_ends,
    data_of_wrong_shape,
    iterator_in_step,
    nan_after_effects,
    step_that_raises,
    step_that_raises_while_traced,
    step_that_prints,
    step_that_calls_python,
    loops_in_coroutines,
    train_function_by_hand,
    loop_without_function,
    attributes_of_function,
    eagerly_for_a_while,
    numerics_checked,
    batches_by_hand,
    several_steps_an_execution,
    run_eagerly,
    mixed_precision,
    other_float,
    deterministic,
)
