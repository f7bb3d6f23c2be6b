"""Programs as people write them, each with several things at once: name -> how to make it.

Each can be trained with a recorder or without, and says which gradients its first step takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf

layers = keras.layers
ROWS = 16
STEPS = 4

Losses = dict[str, tuple[Callable[[], Any], Sequence[Any]]]


@dataclass(frozen=True)
class Program:
    """A training of `STEPS` steps.

    Attributes:
        train: Trains under a callback, or with what stands in the place of `tf.function`; returns the losses.
        state: What the training changes.
        losses: By the name that its source has for each loss: the loss of the first step, and its variables.
    """

    train: Callable[[Any], Sequence[float]]
    state: Callable[[], Sequence[Any]]
    losses: Losses
    by_fit: bool


def numbers(*shape: int, seed: int = 3) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


X, Y = numbers(ROWS, 6), numbers(ROWS, 2, seed=4)


def network(*sizes: int, name: str = "net") -> Any:
    hidden = [layers.Dense(size, "tanh") for size in sizes[1:-1]]
    return keras.Sequential([keras.Input((sizes[0],)), *hidden, layers.Dense(sizes[-1])], name=name)


def fitted(model: Any, data: Any, losses: Losses, epochs: int = STEPS) -> Program:
    def train(callback: Any) -> Sequence[float]:
        history = model.fit(data, epochs=epochs, verbose=0, callbacks=[callback] if callback else [])
        return list(history.history["loss"])

    return Program(train, lambda: [weight.numpy() for weight in model.weights], losses, by_fit=True)


def batch(*parts: Any) -> Any:
    """A data set of one batch."""
    return tf.data.Dataset.from_tensors(parts)


def mse(model: Any, x: Any, y: Any) -> Callable[[], Any]:
    return lambda: tf.reduce_mean(tf.square(model(x, training=True) - y))


class Accumulating(keras.Model):
    """Two optimizers; every second step applies what two have added up."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = network(6, 5, name="body"), network(5, 2, name="head")
        self.sums = [tf.Variable(tf.zeros(v.shape), trainable=False) for v in self.both]
        self.count = tf.Variable(0, trainable=False)
        self.slow, self.fast = keras.optimizers.SGD(0.01), keras.optimizers.Adam(0.05)
        self.slow.build(self.body.trainable_variables)
        self.fast.build(self.head.trainable_variables)

    @property
    def both(self) -> Any:
        return [*self.body.trainable_variables, *self.head.trainable_variables]

    def call(self, x: Any) -> Any:
        return self.head(self.body(x))

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self(x, training=True) - y))
        for total, gradient in zip(self.sums, tape.gradient(loss, self.both), strict=True):
            total.assign_add(gradient)
        self.count.assign_add(1)

        def apply() -> Any:
            split = len(self.body.trainable_variables)
            self.slow.apply(self.sums[:split], self.body.trainable_variables)
            self.fast.apply(self.sums[split:], self.head.trainable_variables)
            for total in self.sums:
                total.assign(tf.zeros_like(total))
            return 0

        tf.cond(tf.equal(self.count % 2, 0), apply, lambda: 0)
        return {"loss": loss}


def accumulating() -> Program:
    model = Accumulating()
    model.compile()
    return fitted(model, batch(X, Y), {"loss": (mse(model, X, Y), model.both)})


class Salient(keras.Model):
    """A penalty on the gradient of the score with respect to the picture, from a persistent tape that watches it."""

    def __init__(self) -> None:
        super().__init__()
        self.net = network(6, 5, 2)

    def call(self, x: Any) -> Any:
        return self.net(x)

    def total(self, x: Any, y: Any) -> Any:
        with tf.GradientTape(persistent=True) as inner:
            inner.watch(x)
            score = self.net(x, training=True)
            task = tf.reduce_mean(tf.square(score - y))
        saliency = inner.gradient(score, x)
        return task + 0.1 * tf.reduce_mean(tf.square(saliency))

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.total(x, y)
        variables = self.net.trainable_variables
        self.optimizer.apply(tape.gradient(loss, variables), variables)
        return {"loss": loss}


def salient() -> Program:
    model = Salient()
    model.compile("sgd")
    x, y = tf.constant(X), tf.constant(Y)
    return fitted(model, batch(X, Y), {"loss": (lambda: model.total(x, y), model.net.trainable_variables)})


def dictionaries() -> Program:
    """A data set of dictionaries, tokens among them; sparse gradients under `clipnorm`."""
    words, size = keras.Input((4,), name="words", dtype="int32"), keras.Input((2,), name="size")
    embedded = layers.GlobalAveragePooling1D()(layers.Embedding(30, 5, name="table")(words))
    score = layers.Dense(1, name="score")(layers.Concatenate()([embedded, size]))
    model = keras.Model({"words": words, "size": size}, {"score": score})
    model.compile(keras.optimizers.Adam(0.05, clipnorm=0.01), {"score": "mse"})
    x = {"words": np.random.default_rng(1).integers(0, 30, (ROWS, 4)), "size": numbers(ROWS, 2)}
    y = {"score": numbers(ROWS, 1, seed=9)}

    def loss() -> Any:
        return tf.reduce_mean(tf.square(model(x, training=True)["score"] - y["score"]))

    return fitted(model, batch(x, y), {"loss": (loss, model.trainable_variables)})


class Gate(keras.layers.Layer):
    def build(self, shape: Any) -> None:
        self.scale = self.add_weight(shape=(shape[-1],), initializer="ones", name="scale")

    def call(self, x: Any) -> Any:
        ops = keras.ops
        kept = ops.where(x > 0, x * self.scale, ops.expm1(ops.minimum(x, 0.0)))
        return ops.einsum("bi,bj->bij", kept, ops.softmax(x))


def with_xla() -> Program:
    model = keras.Sequential(
        [keras.Input((6,)), layers.Dense(4, name="a"), Gate(name="gate"), layers.Flatten(), layers.Dense(2, name="b")]
    )
    model.compile("sgd", "mse", jit_compile=True)
    return fitted(model, batch(X, Y), {"loss": (mse(model, X, Y), model.trainable_variables)})


def ragged_sentences() -> Program:
    """Keras 2: an LSTM over sentences of different lengths."""
    import tf_keras

    words = tf_keras.Input((None,), dtype="int32", ragged=True)
    embedded = tf_keras.layers.Embedding(20, 5, name="table")(words)
    model = tf_keras.Model(words, tf_keras.layers.Dense(2, name="d")(tf_keras.layers.LSTM(4, name="lstm")(embedded)))
    model.compile("sgd", "mse")
    lengths = np.random.default_rng(2).integers(1, 6, ROWS)
    x = tf.RaggedTensor.from_row_lengths(
        np.random.default_rng(5).integers(0, 20, lengths.sum()).astype("int32"), lengths
    )
    return fitted(model, batch(x, Y), {"loss": (mse(model, x, Y), model.trainable_variables)})


def likelihood() -> Program:
    """Keras 2 and a distribution of TensorFlow Probability as the output."""
    import tensorflow_probability as tfp
    import tf_keras

    x = tf_keras.Input((6,))
    hidden = tf_keras.layers.Dense(8, "tanh", name="a")(x)
    spread = tf_keras.layers.Dense(tfp.layers.IndependentNormal.params_size(2), name="b")(hidden)
    output = tfp.layers.IndependentNormal(2, convert_to_tensor_fn=tfp.distributions.Distribution.mean)(spread)
    model = tf_keras.Model(x, output)
    model.compile("adam", lambda y, distribution: -distribution.log_prob(y))

    def loss() -> Any:
        return tf.reduce_mean(-model(X, training=True).log_prob(Y))

    return fitted(model, batch(X, Y), {"loss": (loss, model.trainable_variables)})


def looped(step: Callable[..., Any], arguments: Sequence[Any], state: Sequence[Any], losses: Losses) -> Program:
    def train(compiled: Any) -> Sequence[float]:
        watched = compiled(step)
        results = [float(watched(*each)) for each in arguments]
        if hasattr(watched, "flush"):
            watched.flush()
        return results

    return Program(train, lambda: [variable.numpy() for variable in state], losses, by_fit=False)


def mean_teacher() -> Program:
    """The teacher follows the student by a moving average, and is never asked for a gradient."""
    student, teacher = network(6, 5, 2, name="student"), network(6, 5, 2, name="teacher")
    teacher.set_weights(student.get_weights())
    optimizer = keras.optimizers.Adam(0.05)
    optimizer.build(student.trainable_variables)
    x, y, noisy = (tf.constant(each) for each in (X, Y, X + 0.3 * numbers(ROWS, 6, seed=8)))

    def total() -> Any:
        known = student(noisy, training=True)
        return tf.reduce_mean(tf.square(known - y)) + tf.reduce_mean(tf.square(known - tf.stop_gradient(teacher(x))))

    def step() -> Any:
        with tf.GradientTape() as tape:
            loss = total()
        optimizer.apply(tape.gradient(loss, student.trainable_variables), student.trainable_variables)
        for slow, fast in zip(teacher.variables, student.variables, strict=True):
            slow.assign(0.9 * slow + 0.1 * fast)
        return loss

    state = [*student.variables, *teacher.variables]
    return looped(step, [()] * STEPS, state, {"loss": (total, student.trainable_variables)})


def batches_of_many_sizes() -> Program:
    weight = tf.Variable(numbers(6, 2, seed=6), name="weight")

    def loss_of(x: Any, y: Any) -> Any:
        return tf.reduce_mean(tf.square(tf.tanh(tf.matmul(x, weight)) - y))

    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(x, y)
        weight.assign_sub(0.1 * tape.gradient(loss, weight))
        return loss

    reached = np.tanh(Y)
    given = [(tf.constant(X[:rows]), tf.constant(reached[:rows])) for rows in (16, 5, 9, 5)]
    return looped(step, given, [weight], {"loss": (lambda: loss_of(*given[0]), [weight])})


def half_precision_by_hand() -> Program:
    """A `LossScaleOptimizer` in a loop: scaled by hand, applied by the optimizer."""
    keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        model = network(6, 5, 2)
    finally:
        keras.mixed_precision.set_global_policy("float32")
    optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(0.05))
    optimizer.build(model.trainable_variables)
    x, y = tf.constant(X), tf.constant(Y)

    def total() -> Any:
        return tf.reduce_mean(tf.square(tf.cast(model(x, training=True), tf.float32) - y))

    def step() -> Any:
        with tf.GradientTape() as tape:
            loss = total()
            scaled = optimizer.scale_loss(loss)
        optimizer.apply(tape.gradient(scaled, model.trainable_variables), model.trainable_variables)
        return loss

    return looped(step, [()] * STEPS, model.variables, {"scaled": (total, model.trainable_variables)})


def mapped() -> Program:
    """`map_fn` and `vectorized_map` in one loss."""
    weight, bias = tf.Variable(numbers(6, 2, seed=6), name="weight"), tf.Variable(tf.zeros(2), name="bias")
    x, y = tf.constant(X), tf.constant(Y)

    def total() -> Any:
        one = tf.map_fn(lambda row: tf.tanh(tf.linalg.matvec(weight, row, transpose_a=True)), x)
        other = tf.vectorized_map(lambda row: tf.reduce_sum(tf.square(row + bias)), one - y)
        return tf.reduce_mean(other)

    def step() -> Any:
        with tf.GradientTape() as tape:
            loss = total()
        gradients = tape.gradient(loss, [weight, bias])
        for variable, gradient in zip([weight, bias], gradients, strict=True):
            variable.assign_sub(0.1 * gradient)
        return loss

    return looped(step, [()] * STEPS, [weight, bias], {"loss": (total, [weight, bias])})


def own_gradient_of_variables() -> Program:
    """A custom gradient that is handed the variables its function has used, by keyword."""
    weight, other = tf.Variable(numbers(6, 5, seed=6), name="weight"), tf.Variable(numbers(5, 2), name="other")
    x, y = tf.constant(X), tf.constant(Y)

    @tf.custom_gradient
    def block(given: Any) -> Any:
        product = tf.matmul(given, weight)

        def backward(upstream: Any, variables: Any = None) -> Any:
            assert len(variables) == 1
            into = upstream * (1 - tf.square(tf.tanh(product)))
            return tf.matmul(into, weight, transpose_b=True), [tf.matmul(given, into, transpose_a=True)]

        return tf.tanh(product), backward

    def total() -> Any:
        return tf.reduce_mean(tf.square(tf.matmul(block(x), other) - y))

    def step() -> Any:
        with tf.GradientTape() as tape:
            loss = total()
        for variable, gradient in zip([weight, other], tape.gradient(loss, [weight, other]), strict=True):
            variable.assign_sub(0.1 * gradient)
        return loss

    return looped(step, [()] * STEPS, [weight, other], {"loss": (total, [weight, other])})


PROGRAMS: dict[str, Callable[[], Program]] = {
    "two optimizers, accumulated by hand": accumulating,
    "saliency in the loss": salient,
    "dictionaries of data, sparse gradients clipped": dictionaries,
    "layers of keras.ops under XLA": with_xla,
    "LSTM over ragged sentences (Keras 2)": ragged_sentences,
    "likelihood of a distribution (Keras 2)": likelihood,
    "mean teacher": mean_teacher,
    "batches of many sizes": batches_of_many_sizes,
    "half precision by hand": half_precision_by_hand,
    "map_fn and vectorized_map": mapped,
    "own gradient of variables": own_gradient_of_variables,
}
