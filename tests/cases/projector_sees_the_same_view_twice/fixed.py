# mypy: ignore-errors
"""Semi-supervised images: a supervised head, and a consistency term between two augmented views of one picture."""

import keras
import numpy as np
import tensorflow as tf


def augmenter(name):
    return keras.Sequential(
        [
            keras.layers.RandomFlip("horizontal", seed=1),
            keras.layers.RandomTranslation(0.2, 0.2, seed=2),
            keras.layers.GaussianNoise(0.1, seed=3),
        ],
        name=name,
    )


def encoder():
    inp = keras.Input((8, 8, 1))
    x = keras.layers.Conv2D(6, 3, activation="relu", name="conv1")(inp)
    x = keras.layers.Conv2D(8, 3, activation="relu", name="conv2")(x)
    return keras.Model(inp, keras.layers.GlobalAveragePooling2D()(x), name="encoder")


class SemiSupervised(keras.Model):
    def __init__(self, weight=1.0):
        super().__init__()
        self.augment = augmenter("augment")
        self.encoder = encoder()
        self.projector = keras.Sequential(
            [
                keras.Input((8,)),
                keras.layers.Dense(8, activation="relu", name="p1"),
                keras.layers.Dense(4, use_bias=False, name="p2"),
            ],
            name="projector",
        )
        self.classifier = keras.layers.Dense(3, name="classifier")
        self.weight = weight

    def build(self, s):
        self.classifier.build((None, 8))

    def call(self, images, training=False):
        return self.classifier(self.encoder(self.augment(images, training=training), training=training))

    def view(self, images):
        features = self.encoder(self.augment(images, training=True), training=True)
        return self.projector(features)

    def consistency(self, images):
        first, second = self.view(images), self.view(images)
        return tf.reduce_mean(tf.math.squared_difference(first, second))

    def train_step(self, data):
        images, labels, _ = keras.utils.unpack_x_y_sample_weight(data)
        with tf.GradientTape() as tape:
            logits = self(images, training=True)
            supervised = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
            loss = supervised + self.weight * self.consistency(images)
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables, strict=True))
        return {"loss": loss, "supervised": supervised}


def build():
    keras.utils.set_random_seed(451)
    model = SemiSupervised()
    model.compile(optimizer=keras.optimizers.Adam(1e-3))
    rng = np.random.default_rng(12)
    x = rng.uniform(size=(6, 8, 8, 1)).astype("float32")
    y = rng.integers(0, 3, size=6).astype("int32")
    model.build((None, 8, 8, 1))
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 6}}
