# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


def network(name):
    return keras.Sequential(
        [
            keras.Input((6,)),
            keras.layers.GaussianNoise(0.1, seed=2, name="noise"),
            keras.layers.SpectralNormalization(keras.layers.Dense(10, name="dense"), name="spectral"),
            keras.layers.LeakyReLU(0.1, name="act"),
            keras.layers.Dense(3, name="logits"),
        ],
        name=name,
    )


class MeanTeacher(keras.Model):
    """The student learns from labels and from an average of its own past."""

    def __init__(self):
        super().__init__(name="mean_teacher")
        self.student, self.teacher = network("student"), network("teacher")
        self.teacher.set_weights(self.student.get_weights())
        self.teacher.trainable = False

    def call(self, x):
        return self.student(x)

    def train_step(self, data):
        x, y = data
        target = tf.nn.softmax(self.teacher(x, training=False))
        with tf.GradientTape() as tape:
            logits = self.student(x, training=True)
            label = tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(y, logits, from_logits=True))
            agree = tf.reduce_mean(tf.math.squared_difference(tf.nn.softmax(logits), target))
            loss = label + agree
        gradients = tape.gradient(loss, self.student.trainable_variables)
        self.optimizer.apply(gradients, self.student.trainable_variables)
        for t, s in zip(self.teacher.weights, self.student.weights, strict=True):
            if t.dtype == "float32":
                t.assign(0.99 * t + 0.01 * s)
        return {"loss": loss}


def build():
    keras.utils.set_random_seed(84)
    model = MeanTeacher()
    rng = np.random.default_rng(84)
    x = rng.normal(size=(12, 6)).astype("float32")
    y = rng.integers(0, 3, size=(12,)).astype("int32")
    model(x[:1])
    model.compile("adam")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 12}}
