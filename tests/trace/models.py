"""Models of the kinds that people train, each built anew from the seed that is set before."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

layers = keras.layers


def functional() -> Any:
    x = keras.Input((6,))
    hidden = layers.Dense(8, "relu", name="hidden")(x)
    model = keras.Model(x, layers.Dense(2, name="out")(hidden), name="functional")
    model.compile("adam", "mse", metrics=["mae"])
    return model


def sequential() -> Any:
    model = keras.Sequential(
        [keras.Input((6,)), layers.Dense(8, "tanh"), layers.Dropout(0.3), layers.BatchNormalization(), layers.Dense(2)]
    )
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9, clipnorm=1.0), "mse")
    return model


class Subclassed(keras.Model):
    def __init__(self) -> None:
        super().__init__(name="subclassed")
        self.first = layers.Dense(8, name="first")
        self.second = layers.Dense(2, name="second")

    def call(self, x: Any, training: bool = False) -> Any:
        return self.second(tf.nn.relu(self.first(x)))


def subclassed() -> Any:
    """Not built before `fit`."""
    model = Subclassed()
    model.compile("adam", "mse")
    return model


class Headed(Subclassed):
    """A part of it is built before `fit`, the rest by its first call."""

    def __init__(self) -> None:
        super().__init__()
        x = keras.Input((6,))
        self.backbone = keras.Model(x, layers.Dense(6, "relu", name="early")(x), name="backbone")

    def call(self, x: Any, training: bool = False) -> Any:
        return super().call(self.backbone(x, training=training))


def partly_built() -> Any:
    model = Headed()
    model.compile("adam", "mse")
    return model


class Halves(Subclassed):
    """Its loss is a sum, and the running total that it is added to as well: TensorFlow makes one sum of both."""

    def __init__(self) -> None:
        super().__init__()
        self.total = keras.metrics.Mean(name="loss")

    @property
    def metrics(self) -> list[Any]:
        return [self.total]

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            error = tf.reduce_mean(tf.square(self(x, training=True) - y)) / 3
            mirrored = tf.reduce_mean(tf.square(self(-x, training=True) - y)) / 3
            loss = error + mirrored
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        self.total.update_state(loss)
        return {"loss": self.total.result()}


def halves() -> Any:
    model = Halves()
    model.compile("adam")
    return model


class OwnStep(Subclassed):
    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            error = tf.reduce_mean(tf.square(self(x, training=True) - y))
        gradients = tape.gradient(error, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"error": error}


def own_step() -> Any:
    model = OwnStep()
    model.compile("adam")
    return model


class CompiledStep(Subclassed):
    """The step is a `tf.function` of its own, as people write it who come from plain TensorFlow."""

    @tf.function
    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            error = tf.reduce_mean(tf.square(self(x, training=True) - y))
        gradients = tape.gradient(error, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"error": error}


def compiled_step() -> Any:
    model = CompiledStep()
    model.compile("adam")
    return model


class Gan(keras.Model):
    """Two tapes and two optimizers in one step, and a penalty on the gradient of an inner tape."""

    def __init__(self) -> None:
        super().__init__(name="gan")
        self.generator = keras.Sequential([keras.Input((2,)), layers.Dense(6, "tanh"), layers.Dense(6)], name="make")
        self.critic = keras.Sequential([keras.Input((6,)), layers.Dense(8, "tanh"), layers.Dense(1)], name="judge")
        self.make_optimizer = keras.optimizers.Adam(1e-3)
        self.judge_optimizer = keras.optimizers.Adam(2e-3)

    def call(self, noise: Any) -> Any:
        return self.generator(noise)

    def train_step(self, data: Any) -> Any:
        real, noise = data
        with tf.GradientTape() as tape:
            fake = self.generator(noise)
            with tf.GradientTape() as inner:
                inner.watch(fake)
                score = self.critic(fake)
            slope = inner.gradient(score, fake)
            penalty = tf.reduce_mean(tf.square(tf.norm(slope + 1e-6, axis=1) - 1.0))
            d_loss = tf.reduce_mean(score) - tf.reduce_mean(self.critic(real)) + penalty
        judged = tape.gradient(d_loss, self.critic.trainable_variables)
        self.judge_optimizer.apply_gradients(zip(judged, self.critic.trainable_variables, strict=True))
        with tf.GradientTape() as tape:
            g_loss = -tf.reduce_mean(self.critic(self.generator(noise)))
        made = tape.gradient(g_loss, self.generator.trainable_variables)
        self.make_optimizer.apply_gradients(zip(made, self.generator.trainable_variables, strict=True))
        return {"d_loss": d_loss, "g_loss": g_loss}


def gan() -> Any:
    model = Gan()
    model.compile()
    return model


def attention() -> Any:
    """Scaled products and GELU: factors that TensorFlow's optimizer merges where nobody looks between them."""
    x = keras.Input((6,))
    tokens = layers.Reshape((3, 2))(x)
    tokens = layers.Dense(8)(tokens)
    tokens = layers.LayerNormalization()(tokens + layers.MultiHeadAttention(2, 4)(tokens, tokens))
    tokens = tokens + layers.Dense(8)(layers.Dense(16, "gelu")(tokens))
    model = keras.Model(x, layers.Dense(2)(layers.GlobalAveragePooling1D()(tokens)))
    model.compile("adam", "mse")
    return model


class Physics(keras.Model):
    """Derivatives of derivatives in the loss, where sums run over what the inner tapes make and are given."""

    def __init__(self) -> None:
        super().__init__(name="physics")
        self.field = keras.Sequential([layers.Dense(8, "tanh"), layers.Dense(8, "tanh"), layers.Dense(2)])

    def call(self, x: Any) -> Any:
        return self.field(x)

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            with tf.GradientTape(persistent=True) as second:
                second.watch(x)
                with tf.GradientTape() as first:
                    first.watch(x)
                    u = self.field(x)
                slope = first.gradient(u, x)
            curvature = second.gradient(slope, x)
            residual = tf.reduce_sum(curvature, 1, keepdims=True) + u - tf.sin(y)
            loss = tf.reduce_mean(residual**2) + tf.reduce_mean(self.field(0.3 * x) ** 2)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"residual": loss}


def physics() -> Any:
    model = Physics()
    model.compile(keras.optimizers.Adam(1e-2))
    return model
