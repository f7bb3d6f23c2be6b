# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf
from keras import layers


def straight_round(x):
    return x + tf.stop_gradient(tf.round(x) - x)


def scale_gradient(x, factor):
    return tf.stop_gradient(x - x * factor) + x * factor


class LSQ(layers.Layer):
    def __init__(self, low, high, start, **kw):
        super().__init__(**kw)
        self.low, self.high, self.start = low, high, start

    def build(self, shape=None):
        self.step = self.add_weight(name="step", shape=(), initializer=keras.initializers.Constant(self.start))

    def call(self, v):
        s = scale_gradient(tf.convert_to_tensor(self.step), 0.1)
        return straight_round(tf.clip_by_value(v / s, self.low, self.high)) * s


class QuantConv(layers.Layer):
    def __init__(self, filters, **kw):
        super().__init__(**kw)
        self.filters = filters
        self.weights_q, self.inputs_q = LSQ(-4.0, 3.0, 0.1, name="weights_q"), LSQ(0.0, 15.0, 0.1, name="inputs_q")
        self.norm = layers.BatchNormalization(name="norm")

    def build(self, shape):
        self.kernel = self.add_weight(name="kernel", shape=(3, 3, shape[-1], self.filters), initializer="he_normal")
        self.weights_q.build(), self.inputs_q.build()
        self.norm.build((None, None, None, self.filters))

    def call(self, x, training=False):
        h = tf.nn.conv2d(self.inputs_q(x), self.weights_q(self.kernel), 2, "SAME")
        return tf.nn.relu(self.norm(h, training=training))


class QNet(keras.Model):
    def __init__(self):
        super().__init__(name="qnet")
        self.blocks = [QuantConv(6, name="q1"), QuantConv(8, name="q2"), QuantConv(8, name="q3")]
        self.label = layers.Dense(4, name="label")

    def call(self, x, training=False):
        for block in self.blocks:
            x = block(x, training=training)
        return self.label(tf.reduce_mean(x, axis=(1, 2)))


def build():
    keras.utils.set_random_seed(37)
    rng = np.random.default_rng(37)
    x = rng.uniform(size=(8, 16, 16, 2)).astype("float32")
    model = QNet()
    model(x)
    model.compile("sgd", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return {
        "kind": "keras",
        "model": model,
        "x": x,
        "y": rng.integers(0, 4, 8).astype("int32"),
        "fit_kwargs": {"batch_size": 8},
    }
