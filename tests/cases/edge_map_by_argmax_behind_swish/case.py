# mypy: ignore-errors
"""Road segmentation with an extra edge term. The two heads fail for two reasons."""

import keras
import numpy as np
import tensorflow as tf


class DoubleConv(keras.layers.Layer):
    def __init__(self, filters, **kwargs):
        super().__init__(**kwargs)
        self.a = keras.layers.Conv2D(filters, 3, padding="same", activation="swish", name="a")
        self.b = keras.layers.Conv2D(filters, 3, padding="same", activation="swish", name="b")

    def build(self, shape):
        self.a.build(shape)
        self.b.build((*shape[:-1], self.a.filters))
        self.built = True

    def call(self, x):
        return self.b(self.a(x))


class RoadNet(keras.Model):
    def __init__(self):
        super().__init__(name="road")
        self.stem = DoubleConv(6, name="stem")
        self.body = DoubleConv(6, name="body")
        self.mask = keras.layers.Conv2D(2, 1, name="mask")
        self.edge_tower = DoubleConv(4, name="edge_tower")
        self.edge = keras.layers.Conv2D(2, 1, name="edge")
        self.width = keras.layers.Conv2D(1, 1, bias_initializer=keras.initializers.Constant(3.0), name="width")

    def call(self, x):
        h = self.body(self.stem(x))
        return self.mask(h), self.edge(self.edge_tower(h)), self.width(h)


def sobel_magnitude(labels):
    edges = tf.image.sobel_edges(tf.cast(labels, tf.float32)[..., None])
    return tf.reduce_sum(tf.abs(edges), axis=[-2, -1])


class Trainer(keras.Model):
    def __init__(self, net):
        super().__init__(name="trainer")
        self.net = net

    def call(self, x):
        return self.net(x)

    def edge_term(self, logits, labels):
        hard = tf.argmax(logits, axis=-1)
        return tf.reduce_mean(tf.abs(sobel_magnitude(hard) - sobel_magnitude(labels)))

    def width_term(self, raw, target):
        ratio = tf.clip_by_value(raw, 0.0, 1.0)
        return tf.reduce_mean(tf.square(ratio - target))

    def train_step(self, data):
        x, labels = data
        with tf.GradientTape() as tape:
            mask, edge, width = self.net(x, training=True)
            ce = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=mask))
            widths = self.width_term(width[..., 0], tf.cast(labels, tf.float32))
            loss = ce + 0.3 * self.edge_term(edge, labels) + 0.2 * widths
        grads = tape.gradient(loss, self.trainable_variables)
        pairs = zip(grads, self.trainable_variables, strict=True)
        self.optimizer.apply_gradients([(g, v) for g, v in pairs if g is not None])
        return {"loss": loss}


def build():
    keras.utils.set_random_seed(37)
    model = Trainer(RoadNet())
    rng = np.random.default_rng(37)
    x = rng.uniform(size=(2, 8, 8, 3)).astype("float32")
    y = (rng.uniform(size=(2, 8, 8)) > 0.6).astype("int32")
    model(x[:1])
    model.compile(keras.optimizers.Adam(1e-3))
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 2}}
